// The smallest model that makes a decode step complete: embeddings in front of the attention, a token choice behind it.
// One layer, no feed-forward part: enough that a wrong mask, path or cache row changes the tokens.

// Embeddings of the tree's tokens: a query per head and a cache row, written behind the prefix. Padding nodes get
// zeros.
//   token [streams][nodes]   query_table [vocab][heads][width]   cache_table [vocab][width]
//   q [streams][nodes][heads][width]   kv [streams][prefix + nodes][width]
// Launch: grid (nodes, streams).
extern "C" __global__ void embed(const int* __restrict__ token, const float* __restrict__ query_table,
                                 const float* __restrict__ cache_table, float* q, float* kv, int prefix, int heads,
                                 int width) {
  const int node = blockIdx.x, nodes = gridDim.x, stream = blockIdx.y;
  const int id = token[stream * nodes + node], row = heads * width;
  float* query = q + (static_cast<size_t>(stream) * nodes + node) * row;
  float* cache = kv + (static_cast<size_t>(stream) * (prefix + nodes) + prefix + node) * width;
  const float* query_source = query_table + static_cast<size_t>(max(id, 0)) * row;
  const float* cache_source = cache_table + static_cast<size_t>(max(id, 0)) * width;
  for (int i = threadIdx.x; i < row; i += blockDim.x) query[i] = id < 0 ? 0.0f : query_source[i];
  for (int i = threadIdx.x; i < width; i += blockDim.x) cache[i] = id < 0 ? 0.0f : cache_source[i];
}

// The target's choice after every node: argmax over the vocabulary of (sum of the heads' outputs) . output_table.
// Equal logits: the smaller token.
//   attn [streams][nodes][heads][latent]   output_table [vocab][latent]   target [streams][nodes]
// Launch: grid (nodes, streams), 128 threads, 4 * (latent + vocab) bytes of shared memory.
extern "C" __global__ void predict(const float* __restrict__ attn, const float* __restrict__ output_table, int* target,
                                   int heads, int latent, int vocab) {
  extern __shared__ float hidden[];
  float* logit = hidden + latent;
  const int node = blockIdx.x, nodes = gridDim.x, stream = blockIdx.y;
  const float* rows = attn + (static_cast<size_t>(stream) * nodes + node) * heads * latent;
  for (int i = threadIdx.x; i < latent; i += blockDim.x) {
    float sum = 0.0f;
    for (int head = 0; head < heads; ++head) sum += rows[static_cast<size_t>(head) * latent + i];
    hidden[i] = sum;
  }
  __syncthreads();
  for (int id = threadIdx.x; id < vocab; id += blockDim.x) {
    float sum = 0.0f;
    for (int i = 0; i < latent; ++i) sum = fmaf(hidden[i], output_table[static_cast<size_t>(id) * latent + i], sum);
    logit[id] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {  // a toy vocabulary: not worth a reduction
    int best = 0;
    for (int id = 1; id < vocab; ++id) best = logit[id] > logit[best] ? id : best;
    target[stream * nodes + node] = best;
  }
}
