// A greedy decode loop with a sliding window of 256 positions, kept in a ring.
//
// Per step and layer: the hidden vector is stored in the ring at the step's position, attends over the positions of
// the window, and is replaced by the normalised sum of itself and the attention's result. After the last layer the
// next token is the argmax over the vocabulary (equal logits: the smaller token). The first `prompt` tokens are
// given.
//
//   embedding, output_table [vocab][width]   rows of about unit length
//   given  [streams][prompt]
//   tokens [streams][generated]
//   ring   [layers][streams][RING][width]    scratch
//
// Launch: one block per stream, `width` threads (a multiple of 32, at most 512); 4 * (width + 256 + vocab) bytes of
// shared memory.
//
// THE PLANTED DEFECT: positions wrap at the window, 256, but the ring was allocated with RING = 192 rows ("prompt and
// answer of the warm-up, with room to spare"). From position 192 on the rows of the next stream or layer are
// overwritten, and for the last stream of the last layer memory behind the ring. Sixteen tokens after a short prompt
// are right.

namespace {

constexpr int kWindow = 256;

// Sum over the block. `partial` has room for one float per warp; every thread gets the sum.
__device__ float block_sum(float value, float* partial) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) sum += partial[warp];
  __syncthreads();
  return sum;
}

__device__ int argmax(const float* value, int n) {
  int best = 0;
  for (int i = 1; i < n; ++i) best = value[i] > value[best] ? i : best;
  return best;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(512)
decode_loop(const float* __restrict__ embedding, const float* __restrict__ output_table, const int* __restrict__ given,
            int* tokens, float* ring, int layers, int vocab, int prompt, int generated) {
  extern __shared__ float shared[];
  __shared__ float partial[16];
  const int stream = blockIdx.x, streams = gridDim.x, width = blockDim.x;
  const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
  float* hidden = shared;             // [width]
  float* weight = hidden + width;     // [kWindow]
  float* logit = weight + kWindow;    // [vocab]

  constexpr float kSharpness = 4.0f;  // of the attention: hidden vectors have unit length, so exp() needs no maximum

  int token = given[stream * prompt];
  for (int position = 0; position < prompt + generated - 1; ++position) {
    float own = embedding[static_cast<size_t>(token) * width + tid];
    const int seen = min(position + 1, kWindow), slot = position % kWindow;
    for (int layer = 0; layer < layers; ++layer) {
      float* rows = ring + (static_cast<size_t>(layer) * streams + stream) * RING * width;
      rows[static_cast<size_t>(slot) * width + tid] = own;
      hidden[tid] = own;
      __syncthreads();

      for (int i = warp; i < seen; i += width / 32) {  // a warp per position of the window
        float dot = 0.0f;
        for (int d = lane; d < width; d += 32) dot = fmaf(hidden[d], rows[static_cast<size_t>(i) * width + d], dot);
        for (int step = 16; step > 0; step /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, step);
        if (lane == 0) weight[i] = expf(kSharpness * dot);
      }
      __syncthreads();
      float mass = 0.0f, value = 0.0f;
#pragma unroll 8
      for (int i = 0; i < seen; ++i) {
        mass += weight[i];
        value = fmaf(weight[i], rows[static_cast<size_t>(i) * width + tid], value);
      }
      own += value / mass;
      own *= rsqrtf(block_sum(own * own, partial));
    }

    hidden[tid] = own;
    __syncthreads();
    for (int id = warp; id < vocab; id += width / 32) {
      const float* row = output_table + static_cast<size_t>(id) * width;
      float dot = 0.0f;
      for (int d = lane; d < width; d += 32) dot = fmaf(hidden[d], row[d], dot);
      for (int step = 16; step > 0; step /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, step);
      if (lane == 0) logit[id] = dot;
    }
    __syncthreads();
    if (position + 1 < prompt) {
      token = given[stream * prompt + position + 1];
    } else {
      token = argmax(logit, vocab);
      if (tid == 0) tokens[stream * generated + position + 1 - prompt] = token;
    }
    __syncthreads();
  }
}
