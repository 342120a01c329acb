// Visibility mask of draft trees, with a specialised path for small ones.
//
//   parent [streams][nodes]        parent[0] = -1, parent[i] < i
//   vis    [streams][nodes][nodes] 1: column is an ancestor of row, or row itself
//
// Launch: one block per stream, 128 threads.
//
// THE PLANTED DEFECT: after compilation one instruction of the specialised path is overwritten (the case's `plant:`),
// as a miscompile for a new architecture would leave it. Trees of fewer than 16 nodes meet it, all others never run
// it.

namespace {

// Fewer than 16 nodes: a row of the mask fits in a register. A thread follows its node's ancestors and spreads the
// bits. Kept out of line so that no instruction of it can be moved in front of the choice between the two paths.
__device__ __noinline__ void mask_of_small_tree(const int* parent, unsigned char* vis, int nodes) {
  const int row = threadIdx.x;
  if (row >= nodes) return;
  unsigned ancestors = 0;
  for (int node = row; node >= 0; node = parent[node]) ancestors |= 1u << node;
#pragma unroll 1
  for (int column = 0; column < nodes; ++column) {
    vis[row * nodes + column] = (ancestors >> column) & 1u;  // PLANT: the overwritten instruction belongs to this line
  }
}

// Any tree: a thread clears its row and marks the ancestors in it.
__device__ __noinline__ void mask_of_any_tree(const int* parent, unsigned char* vis, int nodes) {
  for (int row = threadIdx.x; row < nodes; row += blockDim.x) {
    unsigned char* out = vis + static_cast<size_t>(row) * nodes;
    for (int column = 0; column < nodes; ++column) out[column] = 0;
    for (int node = row; node >= 0; node = parent[node]) out[node] = 1;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128) tree_flat(const int* parent, unsigned char* vis, int nodes) {
  parent += static_cast<size_t>(blockIdx.x) * nodes;
  vis += static_cast<size_t>(blockIdx.x) * nodes * nodes;
  if (nodes < 16) {
    mask_of_small_tree(parent, vis, nodes);
  } else {
    mask_of_any_tree(parent, vis, nodes);
  }
}
