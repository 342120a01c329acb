// Recursion whose depth is a parameter. Every level keeps an array on the stack.

__device__ __noinline__ int deep(int n, const volatile int* p) {
  int kept[16];
  for (int i = 0; i < 16; ++i) kept[i] = p[i & 3] + n;  // FAULT
  int sum = n <= 0 ? 0 : deep(n - 1, p);
  for (int i = 0; i < 16; ++i) sum += kept[i];
  return sum;
}

extern "C" __global__ void recurse(const int* p, int* out, int depth) { out[0] = deep(depth, p); }
