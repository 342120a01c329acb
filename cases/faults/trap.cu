// Gives up with a trap instruction, as generated code does at a broken invariant.

extern "C" __global__ void trap_beyond(int n) {
  if (static_cast<int>(threadIdx.x) >= n) __trap();  // FAULT
}
