// A call to an address that no function begins at (`raw`; 0: call a real one).

typedef float (*Function)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ Function real = twice;

extern "C" __global__ void call_raw(float* out, unsigned long long raw) {
  const Function f = raw ? reinterpret_cast<Function>(raw) : real;
  out[threadIdx.x] = f(static_cast<float>(threadIdx.x));  // FAULT
}
