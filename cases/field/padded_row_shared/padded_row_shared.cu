// Column sums of a tile of 256 rows, staged in shared memory with rows padded to a power of two.
//
//   x [256][words]   sum [words], modulo 2^32
//
// Launch: one block of 256 threads, 256 * pitch * 4 bytes of dynamic shared memory.

extern "C" __global__ void __launch_bounds__(256)
tile_sums(const unsigned* __restrict__ x, unsigned* __restrict__ sum, int words, int pitch) {
  extern __shared__ unsigned tile[];
  for (int i = threadIdx.x; i < 256 * words; i += 256) tile[i / words * pitch + i % words] = x[i];
  __syncthreads();
  for (int column = threadIdx.x; column < words; column += 256) {
    unsigned total = 0;
    for (int row = 0; row < 256; ++row) total += tile[row * pitch + column];
    sum[column] = total;
  }
}
