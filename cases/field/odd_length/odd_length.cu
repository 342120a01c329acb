// Squared norms of samples that lie one behind the other, read two floats at a time.
//
//   x [samples][length]   norm [samples]
//
// Launch: one warp per sample.

extern "C" __global__ void __launch_bounds__(32)
sample_norms(const float* __restrict__ x, float* __restrict__ norm, int length) {
  const float* sample = x + static_cast<size_t>(blockIdx.x) * length;
  const float2* pairs = reinterpret_cast<const float2*>(sample);  // 8-byte aligned only where block * length is even
  float sum = 0.0f;
  for (int i = threadIdx.x; i < length / 2; i += 32) {
    const float2 pair = pairs[i];  // FAULT
    sum = fmaf(pair.x, pair.x, fmaf(pair.y, pair.y, sum));
  }
  if (length % 2 && threadIdx.x == 0) sum = fmaf(sample[length - 1], sample[length - 1], sum);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) norm[blockIdx.x] = sum;
}
