// Adds one to every element of a buffer of which only the first `valid` were ever written.

extern "C" __global__ void write_some(float* p, int valid) {
  if (static_cast<int>(threadIdx.x) < valid) p[threadIdx.x] = 1.0f;
}

extern "C" __global__ void add_one(const float* p, float* out) {
  out[threadIdx.x] = p[threadIdx.x] + 1.0f;  // FAULT
}
