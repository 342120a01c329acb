"""Conformance table: conversions between all integer and float types, every rounding, saturation, flushing, NaN."""

from __future__ import annotations

from collections.abc import Iterator

from conf_case import Case, forms, ptx

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f16", "f32", "f64")
TO_INT = ("rni", "rzi", "rmi", "rpi")
ROUNDINGS = ("rn", "rz", "rm", "rp")


def size(kind: str) -> int:
    return int(kind[1:])


def between_integers() -> Iterator[Case]:
    for s in INTEGERS:
        data = ("from_integer", 32 if size(s) == 8 else size(s))
        others = [d for d in INTEGERS if d != s]
        yield forms(f"cvt_from_{s}", [f"cvt.{d}.{s}" for d in others], s, " ".join(others), data)
        others = [d for d in others if size(d) <= size(s) or (d[0] == "u" and s[0] == "s")]
        if others:
            yield forms(f"cvt_sat_from_{s}", [f"cvt.sat.{d}.{s}" for d in others], s, " ".join(others), data)


def float_to_integer() -> Iterator[Case]:
    for s in FLOATS:
        data = ("all16",) if s == "f16" else ("to_integer", s)
        for r in TO_INT:
            for kinds in (INTEGERS[:6], INTEGERS[6:]):
                yield forms(f"cvt_{r}_{s}_{kinds[0]}", [f"cvt.{r}.{d}.{s}" for d in kinds], s, " ".join(kinds), data)
                data = data if s != "f16" else ("some16", s)
    some = ("s32", "u32", "u64", "u8")
    for mods in ("rzi.ftz", "rmi.ftz", "rpi.ftz", "rni.sat"):
        texts = [f"cvt.{mods}.{d}.f32" for d in some]
        yield forms(f"cvt_{mods}_f32", texts, "f32", " ".join(some), ("to_integer", "f32"))


def integer_to_float() -> Iterator[Case]:
    for s in INTEGERS:
        data = ("from_integer", 32 if size(s) == 8 else size(s))
        texts = [f"cvt.{r}.{d}.{s}" for d in FLOATS for r in ROUNDINGS] + [
            f"cvt.{r}.sat.{d}.{s}" for d in FLOATS for r in ("rn", "rp")
        ]
        yield forms(f"cvt_to_float_{s}", texts, s, " ".join(text.split(".")[-2] for text in texts), data)


def between_floats() -> Iterator[Case]:
    for r in ROUNDINGS:
        yield ptx(f"cvt.{r}.f32.f64", "f64", "f32", ("narrowing", "f64", "f32"))
        yield ptx(f"cvt.{r}.f16.f32", "f32", "f16", ("narrowing", "f32", "f16"))
        yield ptx(f"cvt.{r}.f16.f64", "f64", "f16", ("narrowing", "f64", "f16"))
        yield ptx(f"cvt.{r}.ftz.f32.f64", "f64", "f32", ("narrowing", "f64", "f32"))
    yield ptx("cvt.rn.sat.f32.f64", "f64", "f32", ("narrowing", "f64", "f32"))
    yield ptx("cvt.rz.ftz.sat.f32.f64", "f64", "f32", ("narrowing", "f64", "f32"))
    yield ptx("cvt.rn.sat.f16.f32", "f32", "f16", ("narrowing", "f32", "f16"))
    yield ptx("cvt.rn.ftz.f16.f32", "f32", "f16", ("narrowing", "f32", "f16"))
    yield ptx("cvt.f32.f16", "f16", "f32", ("all16",))
    yield ptx("cvt.ftz.f32.f16", "f16", "f32", ("all16",))
    yield ptx("cvt.sat.f32.f16", "f16", "f32", ("all16",))
    yield ptx("cvt.f64.f16", "f16", "f64", ("some16", "f16"))
    yield ptx("cvt.f64.f32", "f32", "f64", ("unary", "f32"))
    yield ptx("cvt.ftz.f64.f32", "f32", "f64", ("unary", "f32"))
    yield ptx("cvt.sat.f64.f32", "f32", "f64", ("unary", "f32"))
    for t in FLOATS:
        data = ("all16",) if t == "f16" else ("to_integer", t)
        for r in TO_INT:
            yield ptx(f"cvt.{r}.{t}.{t}", t, t, data)
        yield ptx(f"cvt.rmi.sat.{t}.{t}", t, t, data)
        yield ptx(f"cvt.sat.{t}.{t}", t, t, data)
    yield ptx("cvt.rni.ftz.f32.f32", "f32", "f32", ("to_integer", "f32"))
    yield ptx("cvt.ftz.f32.f32", "f32", "f32", ("to_integer", "f32"))
    yield ptx("cvt.ftz.sat.f32.f32", "f32", "f32", ("to_integer", "f32"))


def packed_and_brain() -> Iterator[Case]:
    half, brain = ("narrowing", "f32", "f16"), ("narrowing", "f32", "bf16")
    for r in ("rn", "rz"):
        for relu in ("", ".relu"):
            yield ptx(f"cvt.{r}{relu}.bf16.f32", "f32", "bf16", brain)
            yield ptx(f"cvt.{r}{relu}.f16x2.f32 d0, a0, a1;", "f32 f32", "f16x2", ("binary", "f32", "f32", 1200))
            yield ptx(f"cvt.{r}{relu}.bf16x2.f32 d0, a0, a1;", "f32 f32", "bf16x2", ("binary", "f32", "f32", 1200))
    for relu in ("rn.relu", "rz.relu"):
        yield ptx(f"cvt.{relu}.f16.f32", "f32", "f16", half)
    yield ptx("cvt.rna.tf32.f32", "f32", "u32", ("narrowing", "f32", "f16"))
    for r in ("rn", "rz"):
        for relu in ("", ".relu"):
            yield ptx(f"cvt.{r}{relu}.tf32.f32", "f32", "u32", half, arch="compute_90")
    yield ptx("cvt.f32.bf16", "bf16", "f32", ("all16",), arch="compute_90")
    for t in ("s16", "u16", "s32", "u64"):
        data = ("from_integer", 32 if size(t) == 8 else size(t))
        for r in ROUNDINGS:
            yield ptx(f"cvt.{r}.bf16.{t}", t, "bf16", data, arch="compute_90")
    for t in ("s16", "u16", "s32", "u64"):
        for r in TO_INT:
            yield ptx(
                f"cvt.{r}.{t}.bf16", "bf16", t, ("all16",) if r == "rni" else ("some16", "bf16"), arch="compute_90"
            )
    for r in ROUNDINGS:
        yield ptx(f"cvt.{r}.bf16.f16", "f16", "bf16", ("all16",) if r == "rn" else ("some16", "f16"), arch="compute_90")
        yield ptx(
            f"cvt.{r}.f16.bf16", "bf16", "f16", ("all16",) if r == "rn" else ("some16", "bf16"), arch="compute_90"
        )
        yield ptx(f"cvt.{r}.bf16.f64", "f64", "bf16", ("narrowing", "f64", "bf16"), arch="compute_90")
    yield ptx("cvt.f64.bf16", "bf16", "f64", ("some16", "bf16"), arch="compute_90")


def all_convert() -> list[Case]:
    return [*between_integers(), *float_to_integer(), *integer_to_float(), *between_floats(), *packed_and_brain()]
