// Stores into dynamic shared memory, `offset` floats too far.

extern "C" __global__ void shift_in_shared(float* out, int offset) {
  extern __shared__ float s[];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  s[threadIdx.x + offset] = 1.0f;  // FAULT
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
