// The first column of a matrix, addressed with 32-bit arithmetic.

extern "C" __global__ void mark_rows(float* p, int rows, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    const int index = row * columns;
    p[index] = row;  // FAULT
  }
}

extern "C" __global__ void read_rows(const float* p, float* out, int rows, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) out[row] = p[static_cast<size_t>(row) * columns];
}
