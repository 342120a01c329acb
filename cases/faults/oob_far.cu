// One thread stores at an index that is not checked against the buffer's 1024 elements.

extern "C" __global__ void store_at(float* p, long long index) {
  if (threadIdx.x == 5) p[index] = 1.0f;  // FAULT
}
