// Keeps the pointer of the launch before, and stores through it although its buffer may be gone.

__device__ float* kept;

extern "C" __global__ void store_through_kept(float* p) {
  if (threadIdx.x == 0) {
    if (kept) kept[3] = 1.0f;  // FAULT
    kept = p;
  }
}
