// One kernel with a check of its result; the test damages its machine code after compilation, its PTX stays whole.
#include <cstdio>
#include <cuda_runtime.h>
__global__ void plus_one(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = out[i] + 1.f;
}
int main() {
  float* out; float h[64];
  cudaMalloc(&out, 4096); cudaMemset(out, 0, 4096);
  plus_one<<<1, 64>>>(out, 64);
  cudaError_t e = cudaDeviceSynchronize();
  if (e != cudaSuccess) { fprintf(stderr, "CUDA error: %s (%d)\n", cudaGetErrorName(e), (int)e); return 2; }
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  for (float v : h) if (v != 1.f) { printf("wrong: %f\n", v); return 1; }
  printf("right\n"); return 0;
}
