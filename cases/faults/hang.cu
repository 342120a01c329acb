// Waits for a flag that nobody will set.

extern "C" __global__ void wait_for(const volatile int* flag) {
  while (*flag == 0) {  // FAULT
  }
}
