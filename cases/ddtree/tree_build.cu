// Best-first draft tree: the `budget` most probable prefixes under per-depth top-k log-probabilities.
//
// A draft model that predicts a block of positions at once gives, for every depth, its top-k tokens with
// log-probabilities, the best first. A tree node at depth d is a choice of ranks r1..rd; its score is the sum of
// their log-probabilities. The tree is grown by best-first search: pop the best candidate, make it a node, push its
// next sibling (same parent, next rank) and its first child (next depth, rank 0), in that order. As scores only fall,
// this gives the `budget` best prefixes.
//
// THE ORDER IS DEFINED, so that a CPU heap and this kernel agree bit for bit: higher score first; of equal scores (-0
// equals +0) the candidate that was pushed earlier. Scores are float32 sums, parent's score + own log-probability, in
// that order. Log-probabilities must not be NaN; -inf is allowed.
//
//   logp  [streams][max_depth][topk]   descending along topk         draft [streams][max_depth][topk]  their tokens
//   token, parent, depth, score [streams][budget + 1]        node 0 is the root: token `root[stream]`, parent -1
//   vis   [streams][budget + 1][budget + 1]                  1: column is an ancestor of row, or row itself
//   count [streams]                                          nodes made, the root included
// Fewer than `budget` prefixes may exist; the other nodes are padding: token, parent and depth -1, score -inf, seen by
// themselves only.
//
// Launch: one warp per stream. Shared memory: 4 * (max_depth * topk + 4 * budget) bytes; budget >= 1.

namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr unsigned kDead = 0xffffffffu;  // `pushed` of a slot whose candidate left without a sibling

__device__ inline float minus_infinity() { return __int_as_float(0xff800000); }

// Unsigned integers in the order of floats; 0 is below every float. Adding +0 turns -0 into +0, which heaps call equal.
__device__ inline unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// The candidates: an unordered list in shared memory, searched by the whole warp. A heap would save comparisons, but
// its sift is a chain of dependent loads on one lane; at a few hundred candidates a scan and two reductions are
// faster.
struct Frontier {
  float* score;
  unsigned* pushed;  // when it was pushed: 0, 1, 2, ...; decides between equal scores
  int* parent;       // node it would hang under
  int* place;        // depth << 16 | rank
};

__device__ inline int best_slot(const Frontier& frontier, int used, int lane) {
  unsigned top = 0, first = kDead;
  int slot = -1;
  for (int i = lane; i < used; i += 32) {
    if (frontier.pushed[i] == kDead) continue;
    const unsigned key = ordered(frontier.score[i]);
    if (key > top || (key == top && frontier.pushed[i] < first)) {
      top = key;
      first = frontier.pushed[i];
      slot = i;
    }
  }
  const unsigned best = __reduce_max_sync(kAll, top);
  const unsigned earliest = __reduce_min_sync(kAll, top == best ? first : kDead);
  if (earliest == kDead) return -1;
  const int winner = __ffs(__ballot_sync(kAll, top == best && first == earliest)) - 1;
  return __shfl_sync(kAll, slot, winner);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32)
tree_build(const float* __restrict__ logp, const int* __restrict__ draft, const int* __restrict__ root, int* token,
           int* parent, int* depth, float* score, unsigned char* vis, int* count, int max_depth, int topk, int budget) {
  extern __shared__ float shared[];
  const int stream = blockIdx.x, lane = threadIdx.x, nodes = budget + 1, table = max_depth * topk;
  float* step = shared;  // this stream's log-probabilities
  Frontier frontier;
  frontier.score = shared + table;
  frontier.pushed = reinterpret_cast<unsigned*>(frontier.score + budget);
  frontier.parent = reinterpret_cast<int*>(frontier.pushed + budget);
  frontier.place = frontier.parent + budget;

  logp += static_cast<size_t>(stream) * table;
  draft += static_cast<size_t>(stream) * table;
  token += static_cast<size_t>(stream) * nodes;
  parent += static_cast<size_t>(stream) * nodes;
  depth += static_cast<size_t>(stream) * nodes;
  score += static_cast<size_t>(stream) * nodes;
  vis += static_cast<size_t>(stream) * nodes * nodes;

  for (int i = lane; i < table; i += 32) step[i] = logp[i];
  __syncwarp();
  if (lane == 0) {
    token[0] = root[stream];
    parent[0] = -1;
    depth[0] = 0;
    score[0] = 0.0f;
    frontier.score[0] = 0.0f + step[0];
    frontier.pushed[0] = 0;
    frontier.parent[0] = 0;
    frontier.place[0] = 1 << 16;
  }
  for (int column = lane; column < nodes; column += 32) vis[column] = column == 0;
  __syncwarp();

  int used = 1, node = 1;
  unsigned pushes = 1;
  for (; node < nodes; ++node) {
    const int slot = best_slot(frontier, used, lane);
    if (slot < 0) break;  // every prefix is a node already
    const float own = frontier.score[slot];
    const int under = frontier.parent[slot], d = frontier.place[slot] >> 16, rank = frontier.place[slot] & 0xffff;
    const bool sibling = rank + 1 < topk, child = d < max_depth;
    __syncwarp();  // every lane has read the slot before lane 0 reuses it
    if (lane == 0) {
      token[node] = draft[(d - 1) * topk + rank];
      parent[node] = under;
      depth[node] = d;
      score[node] = own;
      if (sibling) {  // takes the slot of the candidate that just became a node
        frontier.score[slot] = score[under] + step[(d - 1) * topk + rank + 1];
        frontier.place[slot] = d << 16 | (rank + 1);
      }
      frontier.pushed[slot] = sibling ? pushes : kDead;
      if (child && used < budget) {  // before node k there are at most k slots: only the last node's child finds none
        frontier.score[used] = own + step[d * topk];
        frontier.pushed[used] = pushes + sibling;
        frontier.parent[used] = node;
        frontier.place[used] = (d + 1) << 16;
      }
    }
    pushes += sibling + child;
    used = min(used + child, budget);
    // A lane reads and writes only its own columns of `vis`, so a row may be built on its parent's without a barrier.
    unsigned char* row = vis + static_cast<size_t>(node) * nodes;
    const unsigned char* above = vis + static_cast<size_t>(under) * nodes;
    for (int column = lane; column < nodes; column += 32) row[column] = column == node || above[column];
    __syncwarp();
  }

  if (lane == 0) count[stream] = node;
  for (int pad = node; pad < nodes; ++pad) {
    unsigned char* row = vis + static_cast<size_t>(pad) * nodes;
    for (int column = lane; column < nodes; column += 32) row[column] = column == pad;
    if (lane == 0) {
      token[pad] = parent[pad] = depth[pad] = -1;
      score[pad] = minus_infinity();
    }
  }
}
