# ruff: noqa: E501 - a table reads best with one case a line
"""Conformance table: shuffles, votes, match, redux, barriers, atomics, memory spaces, calls. One block or a few."""

from __future__ import annotations

from collections.abc import Iterator

from conf_case import Case, whole

FULL = "0xffffffffu"


def shuffles() -> Iterator[Case]:
    for mode in ("up", "down", "bfly", "idx"):
        for clamp in (0x1F, 0x00, 0x181F, 0x1C03, 0x100F, 0x1807):
            body = (
                "  unsigned v = in[t], lane = in[t + 64] & 31u, d, p;\n"
                f'  asm volatile("{{ .reg .pred p; shfl.sync.{mode}.b32 %0|p, %2, %3, {clamp}, 0xffffffff; selp.u32 %1, 1, 0, p; }}"\n'
                '    : "=r"(d), "=r"(p) : "r"(v), "r"(lane));\n'
                "  out[2 * t] = p ? d : 0x1000u + (d == v); out[2 * t + 1] = p;"
            )
            yield whole(f"shfl_{mode}_{clamp:x}", body, "shfl", words_out=128)
    mask = "0x49249249u"
    body = f"  out[g] = 7; if (t < 32 && t % 3 == 0) out[g] = __shfl_sync({mask}, in[g], (t + 3) % 33) + 1;"
    yield whole("shfl_sync_some_lanes", body, "shfl")
    body = (
        "  float v = (float)(in[t] & 0xffff) * 0.25f;\n"
        f"  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync({FULL}, v, o);\n"
        f"  double w = in[t] * 0.5; for (int o = 1; o < 32; o <<= 1) w += __shfl_xor_sync({FULL}, w, o);\n"
        "  out[t] = __float_as_uint(t % 32 ? 0.0f : v); out[64 + t] = __double2hiint(w); out[128 + t] = __double2loint(w);"
    )
    yield whole("shfl_reductions", body, "shfl", words_out=192)


def votes() -> Iterator[Case]:
    body = (
        "  unsigned odd = in[t] & 1u, big = in[t] > 0x10000000u, m = t < 32 ? 0xffffffffu : 0xffffffffu;\n"
        "  out[8 * t] = __ballot_sync(m, odd); out[8 * t + 1] = __any_sync(m, odd && big); out[8 * t + 2] = __all_sync(m, big);\n"
        "  out[8 * t + 3] = __all_sync(m, 1); out[8 * t + 4] = __any_sync(m, 0); out[8 * t + 5] = __activemask();\n"
        "  if (odd) out[8 * t + 6] = __ballot_sync(out[8 * t], big);\n"
        '  unsigned u; asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.uni.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q; }"'
        ' : "=r"(u) : "r"(t < 32 ? odd : 1u)); out[8 * t + 7] = u;'
    )
    yield whole("votes", body, "vote", words_out=512)
    body = (
        "  int p; unsigned v = in[t] & 3u; unsigned long long w = (unsigned long long)(in[t] & 1u) << 40;\n"
        f"  out[4 * t] = __match_any_sync({FULL}, v); out[4 * t + 1] = __match_any_sync({FULL}, w);\n"
        f"  out[4 * t + 2] = __match_all_sync({FULL}, t / 32, &p) + p; unsigned z = __match_all_sync({FULL}, v, &p); out[4 * t + 3] = z * 2 + p;"
    )
    yield whole("matches", body, "match", words_out=256)
    body = (
        "  unsigned v = in[t]; unsigned m = 0xffffffffu;\n"
        "  out[8 * t] = __reduce_add_sync(m, v); out[8 * t + 1] = __reduce_min_sync(m, v); out[8 * t + 2] = __reduce_max_sync(m, v);\n"
        "  out[8 * t + 3] = __reduce_min_sync(m, (int)v); out[8 * t + 4] = __reduce_max_sync(m, (int)v);\n"
        "  out[8 * t + 5] = __reduce_and_sync(m, v | 0x0f0f0f0fu); out[8 * t + 6] = __reduce_or_sync(m, v & 0x11111u); out[8 * t + 7] = __reduce_xor_sync(m, v);\n"
        "  if (t & 4) out[8 * t] += __reduce_add_sync(0xf0f0f0f0u, (int)v);"
    )
    yield whole("reduxes", body, "redux", words_out=512)


def special_registers() -> Iterator[Case]:
    regs = (
        "laneid",
        "lanemask_eq",
        "lanemask_lt",
        "lanemask_le",
        "lanemask_gt",
        "lanemask_ge",
        "tid.x",
        "ntid.x",
        "ctaid.x",
        "nctaid.x",
    )
    reads = "".join(
        f'  {{ unsigned r; asm volatile("mov.u32 %0, %%{r};" : "=r"(r)); out[10 * g + {j}] = r; }}\n'
        for j, r in enumerate(regs)
    )
    yield whole("special_registers", reads, "mov", grid=2, words_out=10 * 128)


def barriers() -> Iterator[Case]:
    body = (
        "  __shared__ unsigned s[128]; s[t] = in[t]; __syncthreads();\n"
        "  for (unsigned w = 64; w > 0; w >>= 1) { if (t < w) s[t] += s[t + w] * 3u; __syncthreads(); }\n"
        "  out[g] = s[0] + t; out[128 + t] = __syncthreads_count(in[t] & 1u); out[256 + t] = __syncthreads_and(in[t] != 0);\n"
        "  out[384 + t] = __syncthreads_or(in[t] == 1u);"
    )
    yield whole("barrier_tree_and_reductions", body, "bar", block=128, words_out=512)
    body = (
        "  __shared__ unsigned s[64];\n"
        '  if (t < 64) { s[t] = in[t]; asm volatile("bar.arrive 1, 128;" ::: "memory"); }\n'
        '  else { asm volatile("bar.sync 1, 128;" ::: "memory"); out[t - 64] = s[127 - t] ^ t; }'
    )
    yield whole("barrier_arrive_named", body, "bar", block=128, words_out=64)
    body = (
        "  __shared__ unsigned s[128]; unsigned half = t / 64;\n"
        '  s[t] = in[t]; asm volatile("barrier.sync %0, 64;" :: "r"(half + 2) : "memory");\n'
        "  out[t] = s[half * 64 + (t + 1) % 64];"
    )
    yield whole("barrier_two_halves", body, "bar", block=128)
    body = "  if (t >= 40) return; __shared__ unsigned s[64]; s[t] = in[t]; __syncthreads(); out[t] = s[39 - t];"
    yield whole("barrier_after_exit", body, "bar")
    body = "  __shared__ unsigned s[64]; s[t] = in[t]; __syncwarp(); unsigned v = s[t ^ 1]; __syncwarp(); s[t] = v + 1; __syncwarp(); out[t] = s[t ^ 3];"
    yield whole("syncwarp_exchange", body, "bar")


ATOMS = {
    "add.u32": "u32", "add.s32": "u32", "add.u64": "u64", "min.u32": "u32", "min.s32": "u32", "min.u64": "u64", "min.s64": "u64",
    "max.u32": "u32", "max.s32": "u32", "max.u64": "u64", "max.s64": "u64", "and.b32": "u32", "or.b32": "u32", "xor.b32": "u32",
    "and.b64": "u64", "or.b64": "u64", "xor.b64": "u64", "inc.u32": "u32", "dec.u32": "u32", "exch.b32": "u32", "exch.b64": "u64",
    "add.f32": "u32", "add.f64": "u64", "add.noftz.f16": "u16", "add.noftz.f16x2": "u32", "add.noftz.bf16x2": "u32", "add.noftz.bf16": "u16",
}  # fmt: skip
C_TYPES = {"u16": ("unsigned short", "h"), "u32": ("unsigned int", "r"), "u64": ("unsigned long long", "l")}


def atomics() -> Iterator[Case]:
    """Each thread owns one word, so that old and new values are fixed whatever the order of threads."""
    for form, width in ATOMS.items():
        c_type, letter = C_TYPES[width]
        value = {
            "u16": "(unsigned short)in[t + 64]",
            "u32": "in[t + 64]",
            "u64": "((unsigned long long)in[t + 64] << 32 | in[t])",
        }[width]
        start = {
            "u16": "(unsigned short)in[t]",
            "u32": "in[t]",
            "u64": "((unsigned long long)in[t] << 32 | in[t + 64])",
        }[width]
        arch = "compute_90" if "bf16" in form else "compute_80"
        for space in ("shared", "global"):
            memory = "__shared__" if space == "shared" else "__device__"
            before = f"__device__ {c_type} cells[64];\n" if space == "global" else ""
            local = f"  {memory} {c_type} cells[64];\n" if space == "shared" else ""
            address = f"(unsigned long long)__cvta_generic_to_{space}(&cells[t])"
            body = (
                f"{local}  cells[t] = {start}; __syncthreads(); {c_type} old; {c_type} value = {value};\n"
                f'  asm volatile("atom.{space}.{form} %0, [%1], %2;" : "={letter}"(old) : "l"({address}), "{letter}"(value) : "memory");\n'
                "  __syncthreads(); unsigned long long now = cells[t], was = old;\n"
                "  out[4 * t] = (unsigned)was; out[4 * t + 1] = was >> 32; out[4 * t + 2] = (unsigned)now; out[4 * t + 3] = now >> 32;"
            )
            case = whole(f"atom_{space}_{form.replace('.', '_')}", body, "atom", words_out=256, before=before)
            yield Case(**{**case.__dict__, "arch": arch})


def more_atomics() -> Iterator[Case]:
    body = (
        "  __shared__ unsigned bins[16]; if (t < 16) bins[t] = 0; __syncthreads(); atomicAdd(&bins[in[t] & 15u], 1u);\n"
        "  atomicAdd(out + 16 + (in[t] & 7u), t); atomicMax((int*)out + 24, (int)in[t]); atomicMin(out + 25, in[t]); atomicXor(out + 26, in[t]);\n"
        "  atomicOr(out + 27, 1u << (in[t] & 31u)); atomicInc(out + 28, 9u); atomicDec(out + 29, 50u); __syncthreads(); if (t < 16) out[t] = bins[t];"
    )
    yield whole("atomic_histogram", body, "atom", words_out=32)
    body = (
        "  unsigned old = out[0], seen; do { seen = old; old = atomicCAS(out, seen, seen + in[t]); } while (old != seen);\n"
        "  unsigned long long* wide = (unsigned long long*)(out + 2); atomicAdd(wide, (unsigned long long)in[t] << 8); atomicMax(wide + 1, (unsigned long long)in[t] * 77u);\n"
        "  out[8 + t] = atomicCAS(out + 100 + t, t & 1u, in[t]); unsigned long long was = atomicCAS(wide + 100 + t, 0ull, 5ull); out[400 + t] = (unsigned)was;"
    )
    yield whole("atomic_cas_loops", body, "atom", words_out=480)
    body = (
        "  __shared__ unsigned lock, total; if (t == 0) { lock = 0; total = 0; } __syncthreads();\n"
        "  bool done = false; while (!done) { if (atomicCAS(&lock, 0u, 1u) == 0u) { total = total * 1u + in[t]; __threadfence_block(); atomicExch(&lock, 0u); done = true; } }\n"
        "  __syncthreads(); out[t] = total;"
    )
    yield whole("atomic_spin_lock", body, "atom")
    body = (
        "  unsigned short* h = (unsigned short*)out; unsigned short v; unsigned short seen = (unsigned short)(t & 1), want = (unsigned short)in[t];\n"
        '  asm volatile("atom.global.cas.b16 %0, [%1], %2, %3;" : "=h"(v) : "l"(h + t), "h"(seen), "h"(want) : "memory"); out[64 + t] = v;'
    )
    yield whole("atomic_cas_b16", body, "atom", words_out=128)
    body = (
        '  asm volatile("red.global.add.u32 [%0], %1; red.global.max.s32 [%0+4], %1; red.global.or.b32 [%0+8], %1; red.relaxed.gpu.global.inc.u32 [%0+12], 9;"\n'
        '    :: "l"(out), "r"(in[t]) : "memory");'
    )
    yield whole("red_forms", body, "red", words_out=8)


def memory() -> Iterator[Case]:
    body = (
        "  const unsigned char* b = (const unsigned char*)in; const signed char* c = (const signed char*)in; const short* h = (const short*)in;\n"
        "  uint4 v = ((const uint4*)in)[t % 16]; uint2 w = ((const uint2*)in)[t]; ushort4 s = ((const ushort4*)in)[t]; uchar4 q = ((const uchar4*)in)[t];\n"
        "  out[8 * t] = b[t * 3]; out[8 * t + 1] = (int)c[t * 3]; out[8 * t + 2] = (int)h[t * 2 + 1]; out[8 * t + 3] = v.x ^ v.y * 3 ^ v.z * 5 ^ v.w * 7;\n"
        "  out[8 * t + 4] = w.x - w.y; out[8 * t + 5] = s.x + s.y * 3 + s.z * 5 + s.w * 7; out[8 * t + 6] = q.x | q.y << 3 | q.z << 7 | q.w << 13;\n"
        "  ((short*)out)[16 * t + 14] = (short)in[t]; ((char*)out)[32 * t + 30] = (char)(in[t] >> 9); ((unsigned char*)out)[32 * t + 31] = 0x5a;"
    )
    yield whole("loads_and_stores", body, "ld", words_out=512)
    before = "__constant__ unsigned table[8] = {3, 1, 4, 1, 5, 9, 2, 6};\n__device__ unsigned counter[4] = {10, 20, 30, 40};\n__device__ unsigned* where = counter + 2;\n"
    body = "  out[t] = table[in[t] & 7u] * counter[t & 3u] + *where + where[1];"
    yield whole("constants_and_globals", body, "ld", before=before)
    body = (
        "  unsigned a[20]; for (int k = 0; k < 20; ++k) a[k] = in[(t + k * k) & 255u]; unsigned s = 0;\n"
        "  for (int k = 0; k < 40; ++k) { unsigned j = in[(t + k) & 255u] % 20u; a[j] = a[(j * 7 + k) % 20u] + s; s ^= a[j] >> 3; }\n  out[t] = s;"
    )
    yield whole("local_array", body, "ld")
    body = (
        "  __shared__ unsigned s[64]; unsigned l[4] = {in[t], t, 7, 9}; s[t] = in[t + 64]; __syncthreads();\n"
        "  const unsigned* p = (in[t] & 1u) ? in + t : (in[t] & 2u) ? s + (t ^ 5u) : l + (t & 3u);\n"
        '  unsigned v; asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(p)); out[t] = v;'
    )
    yield whole("generic_pointers", body, "ld")
    body = (
        "  __shared__ __align__(16) unsigned s[256]; unsigned a = (unsigned)__cvta_generic_to_shared(s + 4 * t);\n"
        '  asm volatile("cp.async.cg.shared.global [%0], [%1], 16; cp.async.commit_group; cp.async.wait_group 0;" :: "r"(a), "l"(in + 4 * t) : "memory");\n'
        "  __syncthreads(); out[t] = s[255 - 4 * t] + s[t];"
    )
    yield whole("cp_async", body, "cp")


def control() -> Iterator[Case]:
    before = (
        "__device__ __noinline__ unsigned gcd(unsigned a, unsigned b) { return b == 0 ? a : gcd(b, a % b); }\n"
        "__device__ __noinline__ unsigned f0(unsigned a) { return a * 3u; }\n__device__ __noinline__ unsigned f1(unsigned a) { return a ^ 0x55u; }\n"
        "__device__ __noinline__ unsigned f2(unsigned a) { return a + (a >> 7); }\ntypedef unsigned (*fn)(unsigned);\n__device__ fn fns[3] = {f0, f1, f2};\n"
        "struct Pair { unsigned a; unsigned long long b; unsigned char c; };\n"
        "__device__ __noinline__ Pair make(unsigned x) { Pair p; p.a = x * 5; p.b = (unsigned long long)x << 20; p.c = (unsigned char)(x >> 3); return p; }\n"
    )
    yield whole("recursion", "  out[t] = gcd(in[t], in[t + 64] | 1u);", "call", before=before)
    yield whole("function_pointers", "  out[t] = fns[in[t] % 3u](in[t]);", "call", before=before)
    yield whole(
        "struct_return", "  Pair p = make(in[t]); out[t] = p.a + (unsigned)(p.b >> 9) + p.c;", "call", before=before
    )
    cases = "".join(f" case {k}: v = v * {2 * k + 3}u + {k}u; break;" for k in range(14))
    body = f"  unsigned v = in[t]; for (int k = 0; k < 20; ++k) switch ((in[(t + k) & 255u] >> 4) % 17u) {{{cases} default: v ^= v >> 5; }}\n  out[t] = v;"
    yield whole("switches", body, "bra")
    body = (
        "  unsigned v = in[t], n = 0; while (v != 1u && n < 200u) { v = (v & 1u) ? (v >> 1) + v + 1u : v >> 1; ++n; if (n % 50u == 49u) continue; if (v == 7u) break; }\n"
        "  out[t] = n * 1000u + (v & 255u);"
    )
    yield whole("loops", body, "bra")


def all_warp() -> list[Case]:
    return [
        *shuffles(),
        *votes(),
        *special_registers(),
        *barriers(),
        *atomics(),
        *more_atomics(),
        *memory(),
        *control(),
    ]
