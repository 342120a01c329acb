// Tree tokens staged in shared memory by the bulk copy engine (sm_90 and later), then reversed into the output.
//
//   token [streams][kMaxNodes]  rows are 16-byte aligned whatever the number of nodes
//   out   [streams][nodes]      the tokens, last node first
//
// Launch: one block per stream.
//
// THE DEFECT: cp.async.bulk takes sizes that are multiples of 16 bytes; the copy asks for 4 bytes per node. With any
// other size the transfer never completes the barrier's transaction count, and every thread waits for ever: a hang,
// no error. Right are node counts that are multiples of 4 (the fix: round the size up to 16, the rows are padded
// anyway).

namespace {

constexpr int kMaxNodes = 256;

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace

extern "C" __global__ void bulk_tail(const int* __restrict__ token, int* __restrict__ out, int nodes) {
  __shared__ alignas(16) int staged[kMaxNodes];
  __shared__ alignas(8) unsigned long long arrived;
  const int* row = token + static_cast<size_t>(blockIdx.x) * kMaxNodes;
  const unsigned barrier = shared_address(&arrived), bytes = nodes * sizeof(int);

  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine must see the initialised barrier
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(staged)),
                 "l"(__cvta_generic_to_global(row)), "r"(bytes), "r"(barrier)
                 : "memory");
  }
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p;\n"
        "  mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
        "  selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  }
  for (int i = threadIdx.x; i < nodes; i += blockDim.x) out[blockIdx.x * nodes + i] = staged[nodes - 1 - i];
}
