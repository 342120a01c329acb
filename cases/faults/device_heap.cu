// Device-side malloc whose result is not looked at.

extern "C" __global__ void use_heap(float* out, unsigned long long bytes) {
  float* q = static_cast<float*>(malloc(bytes));
  q[threadIdx.x] = 1.0f;  // FAULT
  out[threadIdx.x] = q[threadIdx.x];
  free(q);
}
