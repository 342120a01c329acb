// Squared norms of rows, read in units of 16 elements by way of a table, four units (64 elements) at a time.
//
//   x    [rows][head_dim]
//   unit [multiple of 4]   the table: where a row's units lie; entries beyond head_dim // 16 are the marker "none"
//   norm [rows]
//
// Launch: 128 threads, one row each.
//
// TWO DEFECTS, as the width is never checked: a last step with fewer than four units follows "none" entries (an
// illegal address), and elements behind the last whole unit are left out (a wrong result).

extern "C" __global__ void __launch_bounds__(128)
row_norms(const float* __restrict__ x, const int* __restrict__ unit, float* __restrict__ norm, int rows, int head_dim) {
  const int row = blockIdx.x * 128 + threadIdx.x;
  if (row >= rows) return;
  const float* start = x + static_cast<size_t>(row) * head_dim;
  const int units = head_dim / 16;
  float sum = 0.0f;
  for (int first = 0; first < units; first += 4) {
    for (int i = first; i < first + 4; ++i) {
      const float* element = start + static_cast<size_t>(unit[i]) * 16;
      for (int e = 0; e < 16; ++e) sum = fmaf(element[e], element[e], sum);  // FAULT
    }
  }
  norm[row] = sum;
}
