// Vector loads from an offset that need not be a multiple of the vector.

extern "C" __global__ void load_vectors(const float* p, float4* out, int offset) {
  out[threadIdx.x] = *reinterpret_cast<const float4*>(p + offset + 4 * threadIdx.x);  // FAULT
}
