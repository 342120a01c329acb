// Nodes are handled by teams of four; whoever needs all of them waits for the teams.
//
//   out [nodes * width]
//
// Launch: one block of 160 threads: 128 workers, and a warp that waits and then gathers.
//
// TWO DEFECTS. The workers count whole teams (nodes / 4), the waiting warp expects ceil(nodes / 4): with a ragged
// number of nodes one team never reports. And the gathered table has 100 places, which is only asserted.

namespace {

constexpr int kPlaces = 100;

}  // namespace

extern "C" __global__ void __launch_bounds__(160) gather(float* out, int nodes, int width) {
  __shared__ int team_size[64];
  __shared__ int reported;
  const int tid = threadIdx.x;
  if (tid < 64) team_size[tid] = 0;
  if (tid == 0) reported = 0;
  __syncthreads();

  if (tid < 128) {
    if (tid < nodes && atomicAdd(&team_size[tid / 4], 1) == 3) atomicAdd(&reported, 1);  // the fourth member reports
    return;
  }
  const int expected = (nodes + 3) / 4;
  while (*static_cast<volatile int*>(&reported) < expected) {  // FAULT: for ever
  }
  for (int place = tid - 128; place < nodes * width; place += 32) {
    assert(place < kPlaces && "place within the table");  // FAULT: an assertion
    out[place] = place;
  }
}
