// C = A B for column-major matrices, read and written two floats at a time.
//
//   A [K + 1 columns][M], the last one unused   B [N columns][K]   C [N columns][M]
//
// Launch: grid N, a thread per pair of rows. Columns are 8-byte aligned only where M, and K, are even.

extern "C" __global__ void multiply(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                                    int M, int K) {
  const int n = blockIdx.x;
  for (int m = 2 * threadIdx.x; m < M; m += 2 * blockDim.x) {
    float2 sum = make_float2(0.0f, 0.0f);
    for (int k = 0; k < K; k += 2) {
      const float2 b = *reinterpret_cast<const float2*>(B + n * K + k);
      const float2 a0 = *reinterpret_cast<const float2*>(A + k * M + m);
      const float2 a1 = *reinterpret_cast<const float2*>(A + (k + 1) * M + m);
      sum.x = fmaf(a1.x, b.y, fmaf(a0.x, b.x, sum.x));
      sum.y = fmaf(a1.y, b.y, fmaf(a0.y, b.x, sum.y));
    }
    *reinterpret_cast<float2*>(C + n * M + m) = sum;
  }
}
