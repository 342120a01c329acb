// The scheduler: runs the threads of a block, warp by warp, each to its next suspension. Compiled by NVRTC to PTX once
// (tools in runtime_build.py), translated for the host by the same translator as the kernels ("host mode": real pointers).
// Structures and codes come from layout.py.

extern "C" __device__ unsigned emu_step(Thread* thread, Context* ctx);  // runs one thread until it suspends
extern "C" __device__ unsigned long long emu_now();                      // monotonic clock, nanoseconds

static __device__ __forceinline__ Thread* thread_at(Context* ctx, unsigned index) {
  return (Thread*)(ctx->threads_at + ctx->stride * index);
}

// Order of the lanes: an odd multiplier and an offset permute 0..31; seed 0 keeps them in order.
static __device__ __forceinline__ unsigned permuted(unsigned seed, unsigned index, unsigned mask) {
  return (index * (2 * (seed * 2654435761u >> 7) + 1) + (seed * 40503u >> 3)) & mask;
}

static __device__ __noinline__ void shuffle(Context* ctx, unsigned base, unsigned group) {
  #pragma unroll 1
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(group >> lane & 1)) continue;
    Thread* self = thread_at(ctx, base + lane);
    unsigned clamp = self->c & 31, segment = self->c >> 8 & 31, by = self->b & 31, from;
    unsigned highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
    bool inside;
    if (self->op == WAIT_SHFL_UP) { from = lane - by; inside = (int)from >= (int)highest; }
    else if (self->op == WAIT_SHFL_DOWN) { from = lane + by; inside = from <= highest; }
    else if (self->op == WAIT_SHFL_BFLY) { from = lane ^ by; inside = from <= highest; }
    else { from = lowest | (by & ~segment); inside = from <= highest; }
    if (!inside) from = lane;
    // A lane that is not taking part has no defined value on a GPU: a pattern that is easy to see.
    self->result = group >> from & 1 ? thread_at(ctx, base + from)->a : 0x7fc0deadull;
    self->flag = inside;
  }
}

static __device__ __noinline__ void vote(Context* ctx, unsigned base, unsigned group, unsigned op) {
  unsigned yes = 0, answer;
  #pragma unroll 1
  for (unsigned lane = 0; lane < 32; ++lane)
    if (group >> lane & 1 && thread_at(ctx, base + lane)->b) yes |= 1u << lane;
  if (op == WAIT_BALLOT) answer = yes;
  else if (op == WAIT_ANY) answer = yes != 0;
  else if (op == WAIT_ALL) answer = yes == group;
  else answer = yes == group || yes == 0;
  #pragma unroll 1
  for (unsigned lane = 0; lane < 32; ++lane)
    if (group >> lane & 1) thread_at(ctx, base + lane)->result = answer;
}

static __device__ __noinline__ void reduce(Context* ctx, unsigned base, unsigned group, unsigned op) {
  unsigned first = __ffs(group) - 1, total = thread_at(ctx, base + first)->b;
  #pragma unroll 1
  for (unsigned lane = first + 1; lane < 32; ++lane) {
    if (!(group >> lane & 1)) continue;
    unsigned value = thread_at(ctx, base + lane)->b;
    if (op == WAIT_REDUX_ADD) total += value;
    else if (op == WAIT_REDUX_MIN) total = min(total, value);
    else if (op == WAIT_REDUX_MAX) total = max(total, value);
    else if (op == WAIT_REDUX_SMIN) total = min((int)total, (int)value);
    else if (op == WAIT_REDUX_SMAX) total = max((int)total, (int)value);
    else if (op == WAIT_REDUX_AND) total &= value;
    else if (op == WAIT_REDUX_OR) total |= value;
    else total ^= value;
  }
  #pragma unroll 1
  for (unsigned lane = 0; lane < 32; ++lane)
    if (group >> lane & 1) thread_at(ctx, base + lane)->result = total;
}

static __device__ __noinline__ void match(Context* ctx, unsigned base, unsigned group, unsigned op) {
  #pragma unroll 1
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(group >> lane & 1)) continue;
    Thread* self = thread_at(ctx, base + lane);
    unsigned equal = 0;
    #pragma unroll 1
    for (unsigned other = 0; other < 32; ++other)
      if (group >> other & 1 && thread_at(ctx, base + other)->a == self->a) equal |= 1u << other;
    self->flag = equal == group;
    self->result = op == WAIT_MATCH_ANY ? equal : equal == group ? group : 0;
  }
}

// Carry out one warp operation for the lanes in `group`, all of which wait for it.
static __device__ void fire(Context* ctx, unsigned base, unsigned group) {
  unsigned op = thread_at(ctx, base + __ffs(group) - 1)->op;
  if (op >= WAIT_SHFL_UP && op <= WAIT_SHFL_IDX) shuffle(ctx, base, group);
  else if (op >= WAIT_BALLOT && op <= WAIT_UNI) vote(ctx, base, group, op);
  else if (op >= WAIT_REDUX_ADD && op <= WAIT_REDUX_SMAX) reduce(ctx, base, group, op);
  else if (op == WAIT_MATCH_ANY || op == WAIT_MATCH_ALL) match(ctx, base, group, op);
  #pragma unroll 1
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(group >> lane & 1)) continue;
    Thread* self = thread_at(ctx, base + lane);
    if (op == WAIT_ACTIVEMASK) self->result = group;
    if (op == WAIT_ELECT) { self->result = __ffs(group) - 1; self->flag = lane == __ffs(group) - 1; }
    self->status = 0;
  }
}

// Fire every warp operation whose members have all arrived (a lane that left the kernel counts as arrived).
static __device__ unsigned rendezvous(Context* ctx, unsigned base, unsigned waiting, unsigned gone) {
  unsigned fired = 0;
  #pragma unroll 1
  while (waiting) {
    Thread* leader = thread_at(ctx, base + __ffs(waiting) - 1);
    unsigned same = 0;
    #pragma unroll 1
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!(waiting >> lane & 1)) continue;
      Thread* other = thread_at(ctx, base + lane);
      bool place = other->site == leader->site || leader->op == WAIT_SYNCWARP;
      if (other->op == leader->op && other->mask == leader->mask && place) same |= 1u << lane;
    }
    unsigned needed = leader->op == WAIT_ACTIVEMASK ? same : leader->mask & ~gone;
    waiting &= ~same;
    if (!(needed & ~same)) { fire(ctx, base, same); fired = 1; }
  }
  return fired;
}

// Run the warp whose first thread is `base` as far as it goes. Returns 0, or an Outcome that stops the block.
static __device__ unsigned run_warp(Context* ctx, unsigned base, unsigned count, unsigned* moved) {
  for (;;) {
    unsigned waiting = 0, gone = count == 32 ? 0u : ~0u << count;
    #pragma unroll 1
    for (unsigned turn = 0; turn < 32; ++turn) {
      unsigned lane = ctx->seed ? permuted(ctx->seed, turn, 31) : turn;
      if (lane >= count) continue;
      Thread* self = thread_at(ctx, base + lane);
      if (self->status == 0) {
        unsigned status = emu_step(self, ctx);
        if (status == STATUS_FAULT || status == STATUS_HOST) {
          self->status = status;
          ctx->fault_thread = base + lane;
          return status;
        }
        if (status != STATUS_YIELD) { self->status = status; *moved = 1; }
      }
      if (self->status == STATUS_EXITED) gone |= 1u << lane;
      else if (self->status == STATUS_WARP) waiting |= 1u << lane;
    }
    if (!rendezvous(ctx, base, waiting, gone)) return 0;
    *moved = 1;
  }
}

// Threads that count as arrived at barrier `id`: a warp all of whose living lanes wait counts whole, as on hardware.
static __device__ unsigned arrivals(Context* ctx, unsigned id, unsigned* need) {
  unsigned total = 0;
  #pragma unroll 1
  for (unsigned base = 0; base < ctx->threads; base += 32) {
    unsigned here = 0, elsewhere = 0;
    #pragma unroll 1
    for (unsigned lane = 0; lane < 32 && base + lane < ctx->threads; ++lane) {
      Thread* self = thread_at(ctx, base + lane);
      if (self->status == STATUS_EXITED) continue;
      if (self->status == STATUS_BARRIER && self->mask == id) { here++; *need = self->c; }
      else elsewhere++;
    }
    if (here) total += elsewhere ? here : 32;
  }
  return total;
}

static __device__ void release(Context* ctx, unsigned id) {
  unsigned yes = 0, waiting = 0;
  #pragma unroll 1
  for (unsigned t = 0; t < ctx->threads; ++t) {
    Thread* self = thread_at(ctx, t);
    if (self->status == STATUS_BARRIER && self->mask == id) { waiting++; yes += self->b != 0; }
  }
  #pragma unroll 1
  for (unsigned t = 0; t < ctx->threads; ++t) {
    Thread* self = thread_at(ctx, t);
    if (self->status != STATUS_BARRIER || self->mask != id) continue;
    self->result = self->op == WAIT_BAR_POPC ? yes : self->op == WAIT_BAR_AND ? yes == waiting : yes != 0;
    self->status = 0;
  }
}

// Release every barrier that is complete. Without a count all living threads of the block must have come.
static __device__ unsigned barriers(Context* ctx, unsigned waiting, unsigned alive) {
  unsigned released = 0;
  unsigned* arrived = (unsigned*)&ctx->arrived;
  #pragma unroll 1
  for (unsigned t = 0; t < ctx->threads; ++t) {  // bar.arrive does not wait
    Thread* self = thread_at(ctx, t);
    if (self->status == STATUS_BARRIER && self->op == WAIT_BAR_ARRIVE) {
      arrived[self->mask & 15]++;
      self->status = 0;
      released = 1;
    }
  }
  if (released) return 1;
  #pragma unroll 1
  for (unsigned id = 0; id < 16; ++id) {
    if (!(waiting >> id & 1)) continue;
    unsigned need = 0, total = arrivals(ctx, id, &need) + arrived[id];
    if (!need) {
      unsigned here = 0;
      #pragma unroll 1
      for (unsigned t = 0; t < ctx->threads; ++t) {
        Thread* self = thread_at(ctx, t);
        here += self->status == STATUS_BARRIER && self->mask == id;
      }
      if (here + arrived[id] < alive) continue;
    } else if (total < need) continue;
    arrived[id] = 0;
    release(ctx, id);
    released = 1;
  }
  return released;
}

static __device__ void start_block(Context* ctx) {
  unsigned long long index = ctx->next_block;
  if (ctx->block_multiplier != 1 || ctx->block_offset)
    index = (index * ctx->block_multiplier + ctx->block_offset) % ctx->grid_blocks;
  ctx->ctaid_x = (unsigned)(index % ctx->nctaid_x);
  ctx->ctaid_y = (unsigned)(index / ctx->nctaid_x % ctx->nctaid_y);
  ctx->ctaid_z = (unsigned)(index / ctx->nctaid_x / ctx->nctaid_y);
  #pragma unroll 1
  for (unsigned t = 0, x = 0, y = 0, z = 0; t < ctx->threads; ++t) {
    Thread* self = thread_at(ctx, t);
    *(unsigned long long*)((char*)self + 128) = 0;  // resume point: the start
    self->status = 0;
    self->tid_x = x; self->tid_y = y; self->tid_z = z; self->linear = t;
    self->queue_first = self->queue_next = self->queue_group = 0;
    if (++x == ctx->ntid_x) { x = 0; if (++y == ctx->ntid_y) { y = 0; ++z; } }
  }
  unsigned long long* arrived = &ctx->arrived;
  #pragma unroll 1
  for (unsigned i = 0; i < 8; ++i) arrived[i] = 0;
  if (ctx->poison)
    #pragma unroll 1
    for (unsigned at = 0; at + 8 <= ctx->shared_size; at += 8) *(unsigned long long*)(ctx->shared + at) = ~0ull;
  ctx->spins = 0;
}

// Run the block in `ctx` until all threads left (0) or an Outcome.
static __device__ unsigned run_block(Context* ctx) {
  unsigned warps = (ctx->threads + 31) / 32, mask = 1;
  while (mask < warps) mask *= 2;
  for (;;) {
    unsigned moved = 0;
    #pragma unroll 1
    for (unsigned turn = 0; turn < mask; ++turn) {
      unsigned warp = ctx->seed ? permuted(ctx->seed + 17, turn, mask - 1) : turn;
      if (warp >= warps) continue;
      unsigned stopped = run_warp(ctx, warp * 32, min(32u, ctx->threads - warp * 32), &moved);
      if (stopped) return stopped;
    }
    if (*(volatile unsigned*)ctx->stop) return OUTCOME_STOPPED;
    unsigned alive = 0, runnable = 0, waiting = 0;
    #pragma unroll 1
    for (unsigned t = 0; t < ctx->threads; ++t) {
      Thread* self = thread_at(ctx, t);
      if (self->status != STATUS_EXITED) alive++;
      if (self->status == 0) runnable++;
      if (self->status == STATUS_BARRIER) waiting |= 1u << (self->mask & 15);
    }
    if (!alive) return 0;
    if (waiting && barriers(ctx, waiting, alive)) moved = 1;
    else if (!runnable) return OUTCOME_DEADLOCK;
    if (moved) { ctx->spins = 0; continue; }
    if (!(++ctx->spins & 63) && emu_now() > ctx->deadline_ns) return OUTCOME_TIMEOUT;
    if (ctx->spin_limit && ctx->spins % ctx->spin_limit == 0) return OUTCOME_SPINNING;
  }
}

// Run blocks next_block .. end_block. Called again after a host call was served or a spinning block was set aside.
extern "C" __device__ unsigned emu_blocks(Context* ctx) {
  while (ctx->next_block < ctx->end_block) {
    if (!ctx->inside) start_block(ctx);
    ctx->inside = 1;
    unsigned stopped = run_block(ctx);
    if (stopped) return stopped;
    ctx->inside = 0;
    ctx->next_block++;
    if (*(volatile unsigned*)ctx->stop) return OUTCOME_STOPPED;
  }
  return OUTCOME_DONE;
}
