// A barrier that only some threads of the warp call.

extern "C" __global__ void some_wait(float* out, int waiting) {
  if (static_cast<int>(threadIdx.x) < waiting) __syncthreads();  // FAULT
  out[threadIdx.x] = 1.0f;
}
