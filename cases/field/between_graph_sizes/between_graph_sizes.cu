// Writes a decode step's rows into the cache slots that were given to them, for a batch padded to the next captured
// size.
//
//   x [32][dim]   cache [64][dim]   slot [32]: of the real rows; what the padding rows have is left from an earlier step
//
// Launch: one block per row of the padded batch. THE DEFECT: padding rows are written like real ones.

extern "C" __global__ void write_rows(const float* __restrict__ x, const int* __restrict__ slot, float* cache, int dim) {
  const int row = blockIdx.x;
  float* target = cache + static_cast<size_t>(slot[row]) * dim;
  for (int i = threadIdx.x; i < dim; i += blockDim.x) target[i] = x[row * dim + i];  // FAULT
}
