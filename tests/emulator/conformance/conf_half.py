"""Conformance table: f16, f16x2, bf16 and bf16x2 arithmetic, comparisons and approximations."""

from __future__ import annotations

from collections.abc import Iterator

from conf_case import Case, forms, ptx
from conf_integer import relation


def rows(kind: str, arity: int) -> tuple[object, ...]:
    if kind.endswith("x2"):
        return ("packed", kind[:-2], arity)
    return ("half_pairs", kind, arity)


def arithmetic() -> Iterator[Case]:
    for t in ("f16", "f16x2"):
        for op in ("add", "sub", "mul"):
            texts = [f"{op}{mods}.{t}" for mods in ("", ".ftz", ".sat", ".rn", ".rn.ftz.sat")]
            yield forms(f"{op}_{t}", texts, f"{t} {t}", t, rows(t, 2))
        texts = [f"fma.{mods}.{t}" for mods in ("rn", "rn.ftz", "rn.sat", "rn.ftz.sat", "rn.relu", "rn.ftz.relu")]
        yield forms(f"fma_{t}", texts, f"{t} {t} {t}", t, rows(t, 3))
        texts = [f"{op}{mods}.{t}" for op in ("neg", "abs") for mods in ("", ".ftz")]
        yield forms(f"abs_neg_{t}", texts, t, t, rows(t, 1), family="abs")
        texts = [f"{op}{mods}.{t}" for op in ("min", "max") for mods in ("", ".ftz", ".NaN", ".ftz.NaN")]
        yield forms(f"min_max_{t}", texts, f"{t} {t}", t, rows(t, 2))
    for t in ("bf16", "bf16x2"):
        texts = [f"{op}{r}.{t}" for op in ("add", "sub", "mul") for r in ("", ".rn")]
        yield forms(f"add_sub_mul_{t}", texts, f"{t} {t}", t, rows(t, 2), arch="compute_90")
        yield forms(f"fma_{t}", [f"fma.rn.{t}", f"fma.rn.relu.{t}"], f"{t} {t} {t}", t, rows(t, 3))
        yield forms(f"abs_neg_{t}", [f"neg.{t}", f"abs.{t}"], t, t, rows(t, 1), family="abs")
        texts = [f"{op}{mods}.{t}" for op in ("min", "max") for mods in ("", ".NaN")]
        yield forms(f"min_max_{t}", texts, f"{t} {t}", t, rows(t, 2))
    for t in ("f16", "bf16", "f16x2", "bf16x2"):
        texts = [f"{op}.xorsign.abs.{t}" for op in ("min", "max")]
        yield forms(f"min_max_xorsign_{t}", texts, f"{t} {t}", t, rows(t, 2), arch="compute_90")


NAMES = ("eq", "ne", "lt", "ge", "equ", "neu", "gtu", "num", "nan")


def comparing() -> Iterator[Case]:
    for t, arch in (
        ("f16", "compute_80"),
        ("f16x2", "compute_80"),
        ("ftz.f16", "compute_80"),
        ("bf16", "compute_90"),
        ("bf16x2", "compute_90"),
    ):
        kind = t.rpartition(".")[2]
        if kind.endswith("x2"):
            texts = [text for name in NAMES for text in relation(f"{name}.{t}")]
        else:  # of one value there is one destination
            texts = [f"setp.{name}.{t} p, a0, a1; selp.u32 d0, 1, 0, p;" for name in NAMES]
        yield forms(f"setp_{t}", texts, f"{kind} {kind}", "u32", rows(kind, 2), arch=arch)
    for t, arch in (("f16", "compute_80"), ("bf16", "compute_90")):
        dests = (t, "u16", "s16", "u32", "s32")
        texts = [f"set.{name}.{dest}.{t}" for dest in dests for name in ("gt", "neu")]
        yield forms(
            f"set_{t}", texts, f"{t} {t}", " ".join(dest for dest in dests for _ in "ab"), rows(t, 2), arch=arch
        )
        texts = [f"set.{name}.{t}x2.{t}x2" for name in NAMES]
        yield forms(f"set_{t}x2", texts, f"{t}x2 {t}x2", f"{t}x2", rows(f"{t}x2", 2), arch=arch)
    texts = [f"set.{name}.u32.f16x2" for name in NAMES]
    yield forms("set_u32_f16x2", texts, "f16x2 f16x2", "u32", rows("f16x2", 2), arch="compute_90")


def approximations() -> Iterator[Case]:
    for op in ("ex2", "tanh"):
        yield ptx(f"{op}.approx.f16", "f16", "f16", ("all16",), family=f"{op}.approx.f16")
        yield ptx(f"{op}.approx.f16x2", "f16x2", "f16x2", ("packed", "f16", 1), family=f"{op}.approx.f16")
    yield ptx("tanh.approx.bf16", "bf16", "bf16", ("all16",), family="tanh.approx.bf16", arch="compute_90")
    yield ptx("ex2.approx.ftz.bf16", "bf16", "bf16", ("all16",), family="ex2.approx.bf16", arch="compute_90")
    yield ptx(
        "tanh.approx.bf16x2", "bf16x2", "bf16x2", ("packed", "bf16", 1), family="tanh.approx.bf16", arch="compute_90"
    )
    yield ptx(
        "ex2.approx.ftz.bf16x2", "bf16x2", "bf16x2", ("packed", "bf16", 1), family="ex2.approx.bf16", arch="compute_90"
    )


def pairs_of_integers() -> Iterator[Case]:
    for t in ("u16x2", "s16x2"):
        for op in ("add", "min", "max"):
            yield ptx(f"{op}.{t}", f"{t} {t}", t, ("words", 600, 2, 300), arch="compute_90")
    yield ptx("min.relu.s32", "s32 s32", "s32", ("binary", "s32", "s32", 100), arch="compute_90")
    yield ptx("max.relu.s16x2", "s16x2 s16x2", "s16x2", ("words", 600, 2, 310), arch="compute_90")


def all_half() -> list[Case]:
    return [*arithmetic(), *comparing(), *approximations(), *pairs_of_integers()]
