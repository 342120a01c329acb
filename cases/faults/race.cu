// A reversal through shared memory without the barrier between writing and reading.

extern "C" __global__ void reverse(float* out) {
  extern __shared__ float s[];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];  // FAULT
}
