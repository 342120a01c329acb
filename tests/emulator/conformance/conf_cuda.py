# ruff: noqa: E501 - a table reads best with one case a line
"""Conformance table: ordinary CUDA C, the compiler's own instruction sequences for operators and the math library."""

from __future__ import annotations

from collections.abc import Iterator

from conf_case import Case, cuda

ONE_F32 = (
    "sinf", "cosf", "tanf", "asinf", "acosf", "atanf", "sinhf", "coshf", "tanhf", "asinhf", "acoshf", "atanhf", "expf", "exp2f", "exp10f",
    "expm1f", "logf", "log2f", "log10f", "log1pf", "sqrtf", "rsqrtf", "cbrtf", "rcbrtf", "erff", "erfcf", "tgammaf", "lgammaf", "floorf",
    "ceilf", "truncf", "roundf", "rintf", "nearbyintf", "fabsf", "sinpif", "cospif", "normcdff", "logbf",
    "__sinf", "__cosf", "__expf", "__exp10f", "__logf", "__log2f", "__log10f", "__tanf", "__saturatef", "__frcp_rn", "__fsqrt_rz", "__frsqrt_rn",
)  # fmt: skip
TWO_F32 = (
    "fmodf",
    "remainderf",
    "powf",
    "hypotf",
    "atan2f",
    "fmaxf",
    "fminf",
    "fdimf",
    "copysignf",
    "nextafterf",
    "__fdividef",
    "__powf",
    "__fdiv_ru",
)
ONE_F64 = (
    "sin",
    "cos",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "cbrt",
    "atan",
    "tanh",
    "erf",
    "floor",
    "round",
    "rint",
    "log1p",
    "exp2",
    "__drcp_rd",
)
TWO_F64 = ("fmod", "pow", "hypot", "atan2", "fmax", "remainder", "__ddiv_rz", "__dadd_ru")
TO_INT = (
    "__float2int_rd",
    "__float2uint_rz",
    "__float2ll_rn",
    "lrintf",
    "llroundf",
    "ilogbf",
    "__float_as_int",
    "isnan",
    "isinf",
    "signbit",
)


def slug_of(name: str, prefix: str = "cuda_") -> str:
    return prefix + name.strip("_") + ("_intrinsic" if name.startswith("__") else "")


def library() -> Iterator[Case]:
    spread, wide = ("positive_scale", "f32"), ("approximate", -20.0, 20.0, 900)
    for name in ONE_F32:
        slug = slug_of(name)
        yield cuda(slug, f"y0 = B({name}(F(x0)));", "f32", "f32", wide, f"cuda.{name}")
        yield cuda(slug + "_wide", f"y0 = B({name}(F(x0)));", "f32", "f32", spread, f"cuda.{name}")
    for name in TWO_F32:
        yield cuda(
            slug_of(name),
            f"y0 = B({name}(F(x0), F(x1)));",
            "f32 f32",
            "f32",
            ("binary", "f32", "f32", 600),
            f"cuda.{name}",
        )
    for name in ONE_F64:
        yield cuda(slug_of(name, "cuda_d_"), f"y0 = L({name}(D(x0)));", "f64", "f64", ("unary", "f64"), f"cuda.{name}")
    for name in TWO_F64:
        yield cuda(
            slug_of(name, "cuda_d_"),
            f"y0 = L({name}(D(x0), D(x1)));",
            "f64 f64",
            "f64",
            ("binary", "f64", "f64", 300),
            f"cuda.{name}",
        )
    for name in TO_INT:
        yield cuda(
            slug_of(name),
            f"long long r = (long long){name}(F(x0)); y0 = (unsigned long long)r;",
            "f32",
            "u64",
            ("to_integer", "f32"),
            f"cuda.{name}",
        )


FAST = ("sinf", "cosf", "tanf", "expf", "exp10f", "logf", "log10f", "sqrtf", "rsqrtf", "tanhf", "powf")


def fast_math() -> Iterator[Case]:
    """The same functions as -use_fast_math makes them: approximations and .ftz everywhere."""
    fast = ("--use_fast_math",)
    for name in FAST:
        arguments = "F(x0), 1.7f" if name == "powf" else "F(x0)"
        yield cuda(
            f"fast_{name}",
            f"y0 = B({name}({arguments}));",
            "f32",
            "f32",
            ("approximate", -20.0, 20.0, 900),
            f"fast.{name}",
            options=fast,
        )
    chain = "float a = F(x0), b = F(x1); y0 = B(a * b - b * 0.7f + a); y1 = (unsigned)(a < b) + 2u * (a == b); y2 = (unsigned)(int)a; y3 = B((float)D((unsigned long long)x0 << 32 | x1));"
    yield cuda("fast_chain", chain, "f32 f32", "f32 u32 u32 f32", ("binary", "f32", "f32", 300), options=fast)
    yield cuda(
        "fast_divide",
        "y0 = B(F(x0) / F(x1));",
        "f32 f32",
        "f32",
        ("binary", "f32", "f32", 600),
        "fast.divide",
        options=fast,
    )
    yield cuda(
        "debug_chain",
        "float a = F(x0); for (int k = 0; k < 5; ++k) a = a * F(x1) + k; y0 = B(a); y1 = (int)x0 / (int)(x1 | 1u) + (x0 >> (x1 & 31u));",
        "f32 f32",
        "f32 u32",
        ("binary", "f32", "f32", 300),
        options=("--device-debug",),
    )


def operators() -> Iterator[Case]:
    for t, c in (("s32", "int"), ("u32", "unsigned"), ("s64", "long long"), ("u64", "unsigned long long")):
        text = f"{c} a = x0, b = x1; y0 = b ? a / (b == ({c})-1 ? 3 : b) : 0; y1 = b ? a % (b == ({c})-1 ? 3 : b) : 0;"
        yield cuda(f"cuda_divide_{t}", text, f"{t} {t}", f"{t} {t}", ("binary", t, t, 100))
        yield cuda(
            f"cuda_by_constant_{t}",
            f"{c} a = x0; y0 = a / 7 + a % 10; y1 = a / -1000003 ^ a % 64;",
            t,
            f"{t} {t}",
            ("from_integer", int(t[1:])),
        )
        yield cuda(
            f"cuda_mixed_{t}",
            f"{c} a = x0, b = x1; y0 = (a << (b & 15)) + (a >> 3) * b - (a ^ ~b) + (a > b ? a : b) - (a < 0);",
            f"{t} {t}",
            t,
            ("binary", t, t, 100),
        )


def wide_and_bits() -> Iterator[Case]:
    yield cuda(
        "cuda_narrow",
        "y0 = (unsigned)(int)(signed char)x0 + (unsigned char)(x0 >> 3) * 3 + (unsigned)(int)(short)(x0 >> 7);",
        "u32",
        "u32",
        ("from_integer", 32),
    )
    yield cuda(
        "cuda_mul64hi",
        "y0 = __umul64hi(x0, x1); y1 = (unsigned long long)__mul64hi((long long)x0, (long long)x1);",
        "u64 u64",
        "u64 u64",
        ("binary", "u64", "u64", 100),
    )
    wide = "unsigned __int128 a = x0, b = x1; unsigned __int128 r = a * b + (a << 64) - b; y0 = (unsigned long long)r; y1 = (unsigned long long)(r >> 64);"
    yield cuda("cuda_int128", wide, "u64 u64", "u64 u64", ("binary", "u64", "u64", 100), options=("--device-int128",))
    bits = "y0 = __popc(x0) + 100 * __clz((int)x0) + 10000 * __ffs((int)x0); y1 = __brev(x0) ^ __byte_perm(x0, x1, 0x3715); y2 = __funnelshift_l(x0, x1, x0) + __usad(x0, x1, 3u);"
    yield cuda("cuda_bits", bits, "u32 u32", "u32 u32 u32", ("binary", "u32", "u32", 100))
    simd = "y0 = __vadd2(x0, x1); y1 = __vmaxs4(x0, x1); y2 = __vabsdiffu4(x0, x1); y3 = __vcmpgtu2(x0, x1);"
    yield cuda("cuda_simd", simd, "u32 u32", "u32 u32 u32 u32", ("binary", "u32", "u32", 100))


def floats_and_casts() -> Iterator[Case]:
    yield cuda(
        "cuda_float_chain",
        "float a = F(x0), b = F(x1); y0 = B(a * b + a / b - b); y1 = a < b ? B(a - b) : B(a + b * 0.3f); y2 = (unsigned)(a > b) + 2u * (a != b);",
        "f32 f32",
        "f32 f32 u32",
        ("binary", "f32", "f32", 300),
    )
    yield cuda(
        "cuda_casts",
        "float a = F(x0); y0 = (unsigned)(int)a; y1 = (unsigned)a; y2 = B((float)(int)x0) ^ (unsigned)(short)a; y3 = (unsigned long long)a;",
        "f32",
        "u32 u32 u32 u64",
        ("to_integer", "f32"),
    )
    yield cuda(
        "cuda_d_casts",
        "double a = D(x0); y0 = (unsigned)(int)a; y1 = (unsigned long long)(long long)a; y2 = L((double)x0); y3 = B((float)a);",
        "f64",
        "u32 u64 u64 f32",
        ("to_integer", "f64"),
    )


def all_cuda() -> list[Case]:
    return [*library(), *fast_math(), *operators(), *wide_and_bits(), *floats_and_casts()]
