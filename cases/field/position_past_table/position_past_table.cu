// Rotary embedding of the generated positions, from a table of cosines and sines.
//
//   x, out [output][dim]   table [2048][dim]: dim/2 cosines, then dim/2 sines of a position
//
// Launch: one block per generated position; position = prompt + blockIdx.x is never compared with the table's length.

extern "C" __global__ void rotate(const float* __restrict__ x, float* __restrict__ out,
                                  const float* __restrict__ table, int prompt, int dim) {
  const int half = dim / 2;
  const float* row = x + static_cast<size_t>(blockIdx.x) * dim;
  const float* angle = table + static_cast<size_t>(prompt + blockIdx.x) * dim;
  float* target = out + static_cast<size_t>(blockIdx.x) * dim;
  for (int i = threadIdx.x; i < half; i += blockDim.x) {
    const float cosine = angle[i], sine = angle[half + i];  // FAULT
    target[i] = row[i] * cosine - row[half + i] * sine;
    target[half + i] = row[i] * sine + row[half + i] * cosine;
  }
}
