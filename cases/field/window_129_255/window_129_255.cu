// Best score per chunk of a batch. Chunks have 128 rows; a batch of up to 128 rows is one chunk, in a larger one the
// last chunk takes the remainder too.
//
//   score [batch][beam]   bounds [chunks]: where chunk i ends, for all but the last   best [chunks]
//
// Launch: one block of 128 threads per chunk, chunks = max(batch / 128, 1).
//
// THE DEFECT: with 129 to 255 rows there is one chunk and it is the last one, so its start is looked up as the end of
// the chunk before it, which does not exist: an unsigned 0 - 1.

extern "C" __global__ void __launch_bounds__(128)
chunk_best(const float* __restrict__ score, const int* __restrict__ bounds, float* __restrict__ best, int batch,
           int beam) {
  __shared__ float partial[4];
  const unsigned chunks = batch / 128, chunk = blockIdx.x;
  int start = 0, end = batch;
  if (batch > 128) {
    if (chunk == chunks - 1) {
      start = bounds[chunks - 2];  // FAULT
    } else {
      start = chunk * 128;
      end = bounds[chunk];
    }
  }
  float top = __int_as_float(0xff800000);
  for (int i = start * beam + threadIdx.x; i < end * beam; i += 128) top = fmaxf(top, score[i]);
  for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = top;
  __syncthreads();
  if (threadIdx.x == 0) best[chunk] = fmaxf(fmaxf(partial[0], partial[1]), fmaxf(partial[2], partial[3]));
}
