// Row sums through a workspace of partial sums. Nothing is wrong with this kernel: the case forgets to free the
// workspace.
//
//   x [rows][columns]   workspace [at least rows * 128]   sums [rows]
//
// Launch: one block of 128 threads per row.

extern "C" __global__ void __launch_bounds__(128)
row_sums(const float* __restrict__ x, float* workspace, float* __restrict__ sums, int columns) {
  const float* row = x + static_cast<size_t>(blockIdx.x) * columns;
  float* partial = workspace + blockIdx.x * 128;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += 128) sum += row[i];
  partial[threadIdx.x] = sum;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}
