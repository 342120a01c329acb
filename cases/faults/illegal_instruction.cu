// One path of two is met by large inputs only; an instruction of it is overwritten after compilation.

__device__ __noinline__ float large(float x) {
  return x * x + x;  // PLANT: the overwritten instruction belongs to this line
}

extern "C" __global__ void two_paths(float* out, int n) {
  const float x = threadIdx.x;
  out[threadIdx.x] = n > 4 ? large(x) : x;
}
