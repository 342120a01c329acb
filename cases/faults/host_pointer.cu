// A pointer of the host's, handed to a kernel: `where` is 0, or an address as malloc and the stack have them.

extern "C" __global__ void store_there(float* p, unsigned long long where) {
  float* target = where ? reinterpret_cast<float*>(where) : p;
  if (threadIdx.x == 5) target[0] = 1.0f;  // FAULT
}
