// Fills a buffer; nothing is wrong with it, the launch is.

extern "C" __global__ void count_up(float* p, int n) {
  const long long block = blockIdx.y * static_cast<long long>(gridDim.x) + blockIdx.x;
  const long long i = block * blockDim.x + threadIdx.x;
  if (i < n) p[i] = i;
}
