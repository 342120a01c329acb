// The kernel whose machine code record_faults.py damages: what a miscompile would leave.
extern "C" __global__ void plus_one(float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = out[i] + 1.f;
}
