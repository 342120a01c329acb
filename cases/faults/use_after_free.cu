// Keeps a pointer to the first element of the buffer of the launch before, and stores through it although that
// buffer may be gone.

__device__ float* kept;

extern "C" __global__ void store_through_kept(float* p, int n) {
  if (threadIdx.x == 0) {
    if (kept) *kept = 1.0f;  // FAULT
    kept = p;
  }
}
