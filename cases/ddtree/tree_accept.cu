// Greedy accept: walk the draft tree along the target model's own choices.
//
// `target[node]` is the token the target model would put after `node`. From the root on, the child that carries the
// target's token is accepted; where no child does, the walk ends and that token is the bonus token. Children come
// after their parent in node order; were two children of a node to carry the same token, the first is taken.
//
//   token, parent, target [streams][nodes]     count [streams]: nodes in use
//   path     [streams][max_depth]              accepted nodes in order, then -1
//   accepted [streams]                         their number, 0 when not even the first draft token was right
//   bonus    [streams]                         the target's token after the last accepted node
//
// Launch: one warp per stream. 32 nodes are compared at a time; a step costs a ballot, not a loop over children.

extern "C" __global__ void __launch_bounds__(32)
tree_accept(const int* __restrict__ token, const int* __restrict__ parent, const int* __restrict__ target,
            const int* __restrict__ count, int* path, int* accepted, int* bonus, int nodes, int max_depth) {
  const int stream = blockIdx.x, lane = threadIdx.x, used = count[stream];
  token += static_cast<size_t>(stream) * nodes;
  parent += static_cast<size_t>(stream) * nodes;
  target += static_cast<size_t>(stream) * nodes;
  path += static_cast<size_t>(stream) * max_depth;

  int node = 0, steps = 0;
  while (steps < max_depth) {
    const int wanted = target[node];
    int next = -1;
    for (int base = node + 1; base < used && next < 0; base += 32) {
      const int candidate = base + lane;
      const bool match = candidate < used && parent[candidate] == node && token[candidate] == wanted;
      const unsigned matches = __ballot_sync(0xffffffffu, match);
      if (matches) next = base + __ffs(matches) - 1;
    }
    if (next < 0) break;
    if (lane == 0) path[steps] = next;
    node = next;
    ++steps;
  }
  for (int i = steps + lane; i < max_depth; i += 32) path[i] = -1;
  if (lane == 0) {
    accepted[stream] = steps;
    bonus[stream] = target[node];
  }
}
