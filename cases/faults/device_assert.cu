// A device assertion on the thread's index. (NVRTC knows assert without a header.)

extern "C" __global__ void check_index(int n) {
  assert(static_cast<int>(threadIdx.x) < n && "index within tree");  // FAULT
}
