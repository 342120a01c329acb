// A call through a table of function pointers, at a byte offset that is not checked.

typedef float (*Function)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float thrice(float x) { return 3 * x; }
__device__ Function table[2] = {twice, thrice};

extern "C" __global__ void call_table(float* out, int offset) {
  const Function f = *reinterpret_cast<Function*>(reinterpret_cast<char*>(table) + offset);  // FAULT
  out[threadIdx.x] = f(static_cast<float>(threadIdx.x));
}
