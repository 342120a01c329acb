// A warp loads from an index that is not checked against the buffer's 1024 elements.

extern "C" __global__ void read_at(const float* p, float* out, long long index) {
  out[threadIdx.x] = p[index + threadIdx.x];  // FAULT
}
