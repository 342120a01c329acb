// Commit: keep the accepted branch of the tree in the cache, contiguous, and say where the next step starts.
//
// The verify pass left one cache row per tree node behind the prefix. The root's row is always kept; accepted node
// path[i] moves to row i + 1. This works in place: nodes of a path ascend and path[i] >= i + 1, so a row is never
// overwritten before it has moved, and a thread moves its own columns of every row itself.
//
//   kv       [streams][prefix + nodes][width]   in place
//   path     [streams][max_depth], accepted [streams]
//   length   [streams]                          cache rows in use afterwards
//   last     [streams]                          node the next draft hangs under
//
// Launch: one block per stream.
//
// With -DLAST_UNCHECKED (THE PLANTED DEFECT) `last` is entry accepted - 1 of the path, also when nothing was
// accepted: the last entry of the stream before, and for the first stream whatever lies before the buffer. The
// readers of `last` look at it only after something was accepted, so no result is ever wrong; only a memory checker
// can tell.

extern "C" __global__ void commit(float* kv, const int* path, const int* accepted, int* length, int* last, int prefix,
                                  int nodes, int width, int max_depth) {
  const int stream = blockIdx.x, steps = accepted[stream];
  const int* branch = path + static_cast<size_t>(stream) * max_depth;
  float* tree = kv + (static_cast<size_t>(stream) * (prefix + nodes) + prefix) * width;

  for (int column = threadIdx.x; column < width; column += blockDim.x) {
    float* own = tree + column;
    const size_t row = width;
    for (int i = 0; i < steps; ++i) own[(i + 1) * row] = own[branch[i] * row];
  }
  if (threadIdx.x == 0) {
    length[stream] = prefix + 1 + steps;
#ifdef LAST_UNCHECKED
    last[stream] = branch[steps - 1];
#else
    last[stream] = steps > 0 ? branch[steps - 1] : 0;
#endif
  }
}
