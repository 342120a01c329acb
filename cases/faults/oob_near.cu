// `<=` where `<` is meant: one element too many, and only where the last block is not full.

extern "C" __global__ void off_by_one(float* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) p[i] = i;  // FAULT
}
