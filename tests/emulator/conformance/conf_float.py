"""Conformance table: f32 and f64 arithmetic under every rounding, .ftz, .sat, minimum and maximum, approximations."""

from __future__ import annotations

from collections.abc import Iterator

from conf_case import Case, forms, ptx
from conf_integer import relation

ROUNDINGS = ("rn", "rz", "rm", "rp")
RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def exact() -> Iterator[Case]:
    pair, triple = ("binary", "f32", "f32", 1200), ("ternary", "f32", "f32", "f32", 1500)
    wide_pair, wide_triple = ("binary", "f64", "f64", 900), ("ternary", "f64", "f64", "f64", 1200)
    for op in ("add", "sub", "mul"):
        for mods in ("", ".ftz", ".sat", ".ftz.sat"):
            texts = [f"{op}.{r}{mods}.f32" for r in ROUNDINGS] + [f"{op}{mods}.f32"]
            yield forms(f"{op}{mods}_f32", texts, "f32 f32", "f32", pair)
        yield forms(f"{op}_f64", [f"{op}.{r}.f64" for r in ROUNDINGS] + [f"{op}.f64"], "f64 f64", "f64", wide_pair)
    for mods in ("", ".ftz", ".sat", ".ftz.sat"):
        yield forms(f"fma{mods}_f32", [f"fma.{r}{mods}.f32" for r in ROUNDINGS], "f32 f32 f32", "f32", triple)
    yield forms("fma_f64", [f"fma.{r}.f64" for r in ROUNDINGS], "f64 f64 f64", "f64", wide_triple)
    yield forms("mad_f32", ["mad.rn.f32", "mad.rz.ftz.f32"], "f32 f32 f32", "f32", triple)
    yield forms("mad_f64", ["mad.rn.f64", "mad.rp.f64"], "f64 f64 f64", "f64", wide_triple)
    for ftz in ("", ".ftz"):
        yield forms(f"div{ftz}_f32", [f"div.{r}{ftz}.f32" for r in ROUNDINGS], "f32 f32", "f32", pair)
        for op in ("rcp", "sqrt"):
            yield forms(
                f"{op}{ftz}_f32", [f"{op}.{r}{ftz}.f32" for r in ROUNDINGS], "f32", "f32", ("positive_scale", "f32")
            )
    yield forms("div_f64", [f"div.{r}.f64" for r in ROUNDINGS], "f64 f64", "f64", wide_pair)
    for op in ("rcp", "sqrt"):
        yield forms(f"{op}_f64", [f"{op}.{r}.f64" for r in ROUNDINGS], "f64", "f64", ("positive_scale", "f64"))


def signs() -> Iterator[Case]:
    tests = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    for t in ("f32", "f64"):
        ftz = ["abs.ftz.f32", "neg.ftz.f32"] if t == "f32" else []
        yield forms(f"abs_neg_{t}", [f"abs.{t}", f"neg.{t}", *ftz], t, t, ("unary", t), family="abs")
        yield ptx(f"copysign.{t}", f"{t} {t}", t, ("binary", t, t, 50))
        texts = [f"testp.{test}.{t} p, a0; selp.u32 d0, 1, 0, p;" for test in tests]
        yield forms(f"testp_{t}", texts, t, "u32", ("unary", t, 100))
    yield forms("min_max_f64", ["min.f64", "max.f64"], "f64 f64", "f64", ("binary", "f64", "f64", 200))
    data = ("binary", "f32", "f32", 200)
    for op in ("min", "max"):
        yield forms(
            f"{op}_f32", [f"{op}{mods}.f32" for mods in ("", ".ftz", ".NaN", ".ftz.NaN")], "f32 f32", "f32", data
        )
        texts = [f"{op}{mods}.f32" for mods in (".xorsign.abs", ".NaN.xorsign.abs", ".ftz.xorsign.abs")]
        yield forms(f"{op}_xorsign_f32", texts, "f32 f32", "f32", data, arch="compute_90")


def comparing() -> Iterator[Case]:
    for t in ("f32", "f64", "ftz.f32"):
        kind = t[-3:]
        texts = [text for name in RELATIONS for text in relation(f"{name}.{t}")]
        yield forms(f"setp_{t}", texts, f"{kind} {kind}", "u32", ("binary", kind, kind, 50))
        texts = [f"set.{name}.{t.replace(kind, '')}{dest}.{kind}" for name in RELATIONS for dest in ("u32", "f32")]
        yield forms(f"set_{t}", texts, f"{kind} {kind}", "u32", ("binary", kind, kind, 50))
    texts = [
        f"setp.ne.u32 p, a2, 0; setp.leu.{combine}.f32 p|q, a0, a1, p; selp.u32 d0, 1, 0, {which};"
        for combine in ("and", "or", "xor")
        for which in "pq"
    ]
    yield forms("setp_combined_f32", texts, "f32 f32 u32", "u32", ("ternary", "f32", "f32", "u32", 150))


def approximations() -> Iterator[Case]:
    pair = ("binary", "f32", "f32", 1500)
    for ftz in ("", ".ftz"):
        for form in ("approx", "full"):
            yield ptx(f"div.{form}{ftz}.f32", "f32 f32", "f32", pair, family=f"div.{form}.f32")
        for op in ("rcp", "sqrt", "rsqrt", "lg2"):
            yield ptx(f"{op}.approx{ftz}.f32", "f32", "f32", ("positive_scale", "f32"), family=f"{op}.approx.f32")
        for op in ("sin", "cos"):
            yield ptx(
                f"{op}.approx{ftz}.f32", "f32", "f32", ("approximate", -3.14159, 3.14159), family=f"{op}.approx.f32"
            )
            yield ptx(
                f"{op}.approx{ftz}.f32",
                "f32",
                "f32",
                ("approximate", -1000.0, 1000.0, 800),
                family=f"{op}.approx.f32",
                tag="far",
            )
        yield ptx(f"ex2.approx{ftz}.f32", "f32", "f32", ("approximate", -160.0, 140.0), family="ex2.approx.f32")
        yield ptx(f"ex2.approx{ftz}.f32", "f32", "f32", ("approximate", -1.0, 1.0), family="ex2.approx.f32", tag="near")
        yield ptx(f"lg2.approx{ftz}.f32", "f32", "f32", ("approximate", 0.5, 2.0), family="lg2.approx.f32", tag="near")
    yield ptx("tanh.approx.f32", "f32", "f32", ("approximate", -10.0, 10.0), family="tanh.approx.f32")
    for ftz in ("", ".ftz"):
        yield ptx(f"rsqrt.approx{ftz}.f64", "f64", "f64", ("positive_scale", "f64"), family=f"rsqrt.approx{ftz}.f64")
    yield ptx("rcp.approx.ftz.f64", "f64", "f64", ("positive_scale", "f64"), family="rcp.approx.ftz.f64")


def all_float() -> list[Case]:
    return [*exact(), *signs(), *comparing(), *approximations()]
