// Tree-verify attention with absorbed MLA projections: every head attends over one shared latent cache.
//
// A request ("stream") has `prefix` committed positions and a draft tree of `q_len` nodes; the cache holds both, one
// row of LATENT + ROPE floats per position, shared by all heads. A query sees the whole prefix and, of the tree, its
// own ancestors and itself (`vis`). Scores use the whole row, values are its first LATENT floats.
//
//   q      [streams][q_len][heads][LATENT + ROPE]
//   kv     [streams][prefix + q_len][LATENT + ROPE]
//   vis    [streams][q_len][q_len]                     1: query row sees tree node column
//   out    [streams][q_len][heads][LATENT]
//   scores [streams][heads][q_len][row pitch]          scratch
//
// Launch: grid (heads, streams), 128 threads. One block owns one head of one stream: it writes the scores of all its
// rows into the scratch, and after a barrier reads them back for the softmax and the weighted sum of values.
//
// Row pitch of the scratch: `prefix + q_len`, what is written. With -DSCRATCH_LEN=4096 it is that constant instead,
// "the longest context anybody runs": THE PLANTED DEFECT. From prefix + q_len > 4096 on the tail of a row and the
// head of the next one share memory, and the tail of the last row lies behind the scratch. Which of the two survives
// in a shared cell is no matter of timing: pitch and key stride are multiples of the block size, so one and the same
// thread writes both, in program order. Inside a tile of rows the tail is written last (the next row starts with the
// wrong scores), between tiles the head is (the row ends with the wrong scores); either way the block reads back what
// belongs to another row, every time.

#ifndef LATENT
#error "define LATENT and ROPE: floats of a cache row (512 and 64 in DeepSeek-style MLA)"
#endif

namespace {

constexpr int kThreads = 128;
constexpr int kRows = 4;  // query rows per tile: each cache element loaded is used four times
constexpr int kWidth4 = (LATENT + ROPE) / 4;
constexpr int kLatent4 = LATENT / 4;
static_assert(LATENT % 4 == 0 && ROPE % 4 == 0, "rows are read as float4");

__device__ inline float minus_infinity() { return __int_as_float(0xff800000); }

__device__ inline float dot4(float4 a, float4 b, float sum) {
  sum = fmaf(a.x, b.x, sum);
  sum = fmaf(a.y, b.y, sum);
  sum = fmaf(a.z, b.z, sum);
  return fmaf(a.w, b.w, sum);
}

__device__ inline void add_scaled(float4& sum, float weight, float4 v) {
  sum.x = fmaf(weight, v.x, sum.x);
  sum.y = fmaf(weight, v.y, sum.y);
  sum.z = fmaf(weight, v.z, sum.z);
  sum.w = fmaf(weight, v.w, sum.w);
}

__device__ inline float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

__device__ inline float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
verify_attn(const float* __restrict__ q, const float* __restrict__ kv, const unsigned char* __restrict__ vis,
            float* __restrict__ out, float* __restrict__ scores, int q_len, int prefix) {
  __shared__ float4 query[kRows][kWidth4];
  __shared__ __align__(16) float weight[kThreads][kRows];
  __shared__ float row_max[kRows], row_scale[kRows];

  const int head = blockIdx.x, heads = gridDim.x, stream = blockIdx.y, tid = threadIdx.x;
  const int length = prefix + q_len;
#ifdef SCRATCH_LEN
  const int pitch = SCRATCH_LEN;
#else
  const int pitch = length;
#endif
  const float scale = 1.0f / sqrtf(static_cast<float>(LATENT + ROPE));
  const size_t first = static_cast<size_t>(stream) * q_len * heads + head;  // the block's first row in q and out
  const float4* q4 = reinterpret_cast<const float4*>(q) + first * kWidth4;
  const float4* kv4 = reinterpret_cast<const float4*>(kv) + static_cast<size_t>(stream) * length * kWidth4;
  float4* out4 = reinterpret_cast<float4*>(out) + first * kLatent4;
  const unsigned char* seen = vis + static_cast<size_t>(stream) * q_len * q_len;
  float* block_scores = scores + (static_cast<size_t>(stream) * heads + head) * q_len * pitch;

  // 1. Scores of all rows, a tile of rows at a time. A thread owns every 128th key and walks that key's cache row:
  // the 128 lines it shares with its neighbours stay in L1 until they are used up.
  for (int row0 = 0; row0 < q_len; row0 += kRows) {
    const int rows = min(kRows, q_len - row0);
    for (int i = tid; i < kRows * kWidth4; i += kThreads) {
      const int row = i / kWidth4, d = i % kWidth4;
      query[row][d] = row < rows ? q4[static_cast<size_t>(row0 + row) * heads * kWidth4 + d] : make_float4(0, 0, 0, 0);
    }
    __syncthreads();
    for (int key = tid; key < length; key += kThreads) {
      const float4* k4 = kv4 + static_cast<size_t>(key) * kWidth4;
      float sum[kRows] = {};
#pragma unroll 4
      for (int d = 0; d < kWidth4; ++d) {
        const float4 k = k4[d];
#pragma unroll
        for (int row = 0; row < kRows; ++row) sum[row] = dot4(query[row][d], k, sum[row]);
      }
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        if (row >= rows) break;
        const bool hidden = key >= prefix && !seen[(row0 + row) * q_len + key - prefix];
        block_scores[static_cast<size_t>(row0 + row) * pitch + key] = hidden ? minus_infinity() : sum[row] * scale;
      }
    }
    __syncthreads();  // before the next tile overwrites `query`; after the last one: all scores are written
  }

  // 2. Softmax and weighted values, a tile of rows at a time.
  for (int row0 = 0; row0 < q_len; row0 += kRows) {
    const int rows = min(kRows, q_len - row0);
    const float* tile_scores = block_scores + static_cast<size_t>(row0) * pitch;

    const int warp = tid / 32, lane = tid % 32;  // four warps, four rows: a warp finds maximum and sum of its row
    if (warp < rows) {
      const float* row_scores = tile_scores + static_cast<size_t>(warp) * pitch;
      float top = minus_infinity(), total = 0.0f;
      for (int key = lane; key < length; key += 32) top = fmaxf(top, row_scores[key]);
      top = warp_max(top);
      for (int key = lane; key < length; key += 32) total += expf(row_scores[key] - top);
      total = warp_sum(total);
      if (lane == 0) {
        row_max[warp] = top;
        row_scale[warp] = 1.0f / total;
      }
    }
    __syncthreads();

    for (int base = 0; base < kLatent4; base += kThreads) {  // a thread owns four neighbouring floats of the output
      const int d = base + tid;
      float4 sum[kRows] = {};
      for (int key0 = 0; key0 < length; key0 += kThreads) {
        const int keys = min(kThreads, length - key0);
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
          const float* score = tile_scores + static_cast<size_t>(row) * pitch + key0 + tid;
          const bool used = row < rows && tid < keys;
          weight[tid][row] = used ? expf(*score - row_max[row]) * row_scale[row] : 0.0f;
        }
        __syncthreads();
        if (d < kLatent4) {
          const float4* v4 = kv4 + static_cast<size_t>(key0) * kWidth4 + d;
#pragma unroll 4
          for (int key = 0; key < keys; ++key) {
            const float4 v = v4[static_cast<size_t>(key) * kWidth4];
#pragma unroll
            for (int row = 0; row < kRows; ++row) add_scaled(sum[row], weight[key][row], v);
          }
        }
        __syncthreads();
      }
      if (d < kLatent4) {
#pragma unroll
        for (int row = 0; row < kRows; ++row) {
          if (row < rows) out4[static_cast<size_t>(row0 + row) * heads * kLatent4 + d] = sum[row];
        }
      }
    }
  }
}
