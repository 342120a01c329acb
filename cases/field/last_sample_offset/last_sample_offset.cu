// Sums of the first row of every sample and head. Offsets are computed in 32 bits.
//
//   x   [B][T][H][K] bytes, far larger than 2^31 elements; only the rows that are read are ever written
//   sum [B][H]

// Writes the rows that first_row_sums will read; addressed in 64 bits.
extern "C" __global__ void write_first_rows(unsigned char* x, int T, int H, int K) {
  const int head = blockIdx.x, sample = blockIdx.y;
  unsigned char* row = x + (static_cast<size_t>(sample) * T * H + head) * K;
  for (int k = threadIdx.x; k < K; k += blockDim.x) row[k] = (sample + 3 * head + 7 * k) % 251;
}

// Launch: grid (H, B), one warp.
extern "C" __global__ void first_row_sums(const unsigned char* x, int* sum, int T, int H, int K) {
  const int head = blockIdx.x, sample = blockIdx.y;
  const int offset = (sample * T * H + head) * K;  // wraps in the last sample first
  int total = 0;
  for (int k = threadIdx.x; k < K; k += 32) total += x[offset + k];  // FAULT
  total = __reduce_add_sync(0xffffffffu, total);
  if (threadIdx.x == 0) sum[sample * H + head] = total;
}
