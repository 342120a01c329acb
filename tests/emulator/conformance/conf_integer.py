"""Conformance table: integer arithmetic, carry chains, bit operations, shifts, comparisons, selections."""

from __future__ import annotations

from collections.abc import Iterator

from conf_case import Case, forms, ptx

SIGNED = ("s16", "s32", "s64")
INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
DOUBLE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def arithmetic() -> Iterator[Case]:
    for t in INTEGERS:
        for op in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"):
            yield ptx(f"{op}.{t}", f"{t} {t}", t, ("binary", t, t, 200))
        for op in ("mad.lo", "mad.hi"):
            yield ptx(f"{op}.{t}", f"{t} {t} {t}", t, ("ternary", t, t, t, 300))
        yield ptx(f"sad.{t}", f"{t} {t} {t}", t, ("ternary", t, t, t, 300))
        if t in DOUBLE:
            wide = DOUBLE[t]
            yield ptx(f"mul.wide.{t}", f"{t} {t}", wide, ("binary", t, t, 200))
            yield ptx(f"mad.wide.{t}", f"{t} {t} {wide}", wide, ("ternary", t, t, wide, 300))
    for t in SIGNED:
        yield ptx(f"neg.{t}", t, t, ("unary", t))
        yield ptx(f"abs.{t}", t, t, ("unary", t))
    for op in ("add", "sub"):
        yield ptx(f"{op}.sat.s32", "s32 s32", "s32", ("binary", "s32", "s32", 200))
    yield ptx("mad.hi.sat.s32", "s32 s32 s32", "s32", ("ternary", "s32", "s32", "s32", 300))
    for t in ("u32", "s32"):
        for part in ("lo", "hi"):
            yield ptx(f"mul24.{part}.{t}", f"{t} {t}", t, ("binary", t, t, 200))
            yield ptx(f"mad24.{part}.{t}", f"{t} {t} {t}", t, ("ternary", t, t, t, 300))
    yield ptx("mad24.hi.sat.s32", "s32 s32 s32", "s32", ("ternary", "s32", "s32", "s32", 300))


def carries() -> Iterator[Case]:
    for t in ("u32", "s32", "u64", "s64"):
        three, two = ("ternary", t, t, t, 300), ("binary", t, t, 200)
        yield ptx(f"add.cc.{t} d0, a0, a1; addc.{t} d1, a0, 0;", f"{t} {t}", f"{t} {t}", two)
        yield ptx(f"sub.cc.{t} d0, a0, a1; subc.{t} d1, a0, 0;", f"{t} {t}", f"{t} {t}", two)
        chain = f"add.cc.{t} d0, a0, a1; addc.cc.{t} d1, a1, a2; addc.{t} d2, a2, a0;"
        yield ptx(chain, f"{t} {t} {t}", f"{t} {t} {t}", three, tag="chain")
        chain = f"sub.cc.{t} d0, a0, a1; subc.cc.{t} d1, a1, a2; subc.{t} d2, a2, a0;"
        yield ptx(chain, f"{t} {t} {t}", f"{t} {t} {t}", three, tag="chain")
        for part in ("lo", "hi"):
            chain = f"mad.{part}.cc.{t} d0, a0, a1, a2; madc.{part}.cc.{t} d1, a1, a2, a0; madc.hi.{t} d2, a0, a2, a1;"
            yield ptx(chain, f"{t} {t} {t}", f"{t} {t} {t}", three, tag="chain")
    # The carry flag is shared by additions and subtractions; what one leaves, the other reads.
    yield ptx(
        "add.cc.u32 d0, a0, a1; subc.u32 d1, a1, a2;",
        "u32 u32 u32",
        "u32 u32",
        ("ternary", "u32", "u32", "u32", 300),
        tag="mixed",
    )
    yield ptx(
        "sub.cc.u32 d0, a0, a1; addc.u32 d1, a1, a2;",
        "u32 u32 u32",
        "u32 u32",
        ("ternary", "u32", "u32", "u32", 300),
        tag="mixed",
    )


def dots() -> Iterator[Case]:
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            yield ptx(f"dp4a.{a}.{b}", f"{a} {b} s32", "s32", ("ternary", "u32", "u32", "u32", 300))
            for part in ("lo", "hi"):
                yield ptx(f"dp2a.{part}.{a}.{b}", f"{a} {b} s32", "s32", ("ternary", "u32", "u32", "u32", 300))


def logic() -> Iterator[Case]:
    for bits in (16, 32, 64):
        t, u = f"b{bits}", f"u{bits}"
        for op in ("and", "or", "xor"):
            yield ptx(f"{op}.{t}", f"{u} {u}", u, ("binary", u, u, 100))
        for op in ("not", "cnot"):
            yield ptx(f"{op}.{t}", u, u, ("unary", u, 100))
    tables = (0x00, 0x1B, 0x80, 0x96, 0xAC, 0xE8, 0xFE, 0xFF)
    texts = [f"lop3.b32 d0, a0, a1, a2, {table:#x};" for table in tables]
    yield forms("lop3_b32", texts, "u32 u32 u32", "u32", ("ternary", "u32", "u32", "u32", 90))
    for op in ("and", "or", "xor"):
        text = f"setp.lt.u32 p, a0, a1; {op}.pred q, p, p; not.pred p, q; {op}.pred q, p, q; selp.u32 d0, 1, 0, q;"
        yield ptx(text, "u32 u32", "u32", ("binary", "u32", "u32", 0), family="logic", tag=f"{op}_pred")


def shifting() -> Iterator[Case]:
    for bits in (16, 32, 64):
        u = f"u{bits}"
        yield ptx(f"shl.b{bits} d0, a0, a1;", f"{u} u32", u, ("shifts", u))
        for t in (f"u{bits}", f"s{bits}", f"b{bits}"):
            yield ptx(f"shr.{t} d0, a0, a1;", f"{u} u32", u, ("shifts", u))
    for way in ("l", "r"):
        for mode in ("clamp", "wrap"):
            yield ptx(f"shf.{way}.{mode}.b32", "u32 u32 u32", "u32", ("fields", "u32", 1))
            yield ptx(f"shf.{way}.{mode}.b32", "u32 u32 u32", "u32", ("ternary", "u32", "u32", "u32", 300), tag="any")


def bits_of() -> Iterator[Case]:
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield ptx(f"prmt.b32{mode}", "u32 u32 u32", "u32", ("words", 1500, 3, 900))
    yield ptx("prmt.b32 d0, a0, a1, 0x7610;", "u32 u32", "u32", ("words", 100, 2, 910), tag="const")
    yield ptx("prmt.b32 d0, a0, a1, 0xba98;", "u32 u32", "u32", ("words", 100, 2, 920), tag="signs")
    for t in ("u32", "s32", "u64", "s64"):
        yield ptx(f"bfe.{t}", f"{t} u32 u32", t, ("fields", t, 1))
        for suffix in ("", ".shiftamt"):
            yield ptx(f"bfind{suffix}.{t}", t, "u32", ("from_integer", int(t[1:])))
    for bits in (32, 64):
        u = f"u{bits}"
        yield ptx(f"bfi.b{bits}", f"{u} {u} u32 u32", u, ("fields", u, 2))
        yield ptx(f"brev.b{bits}", u, u, ("unary", u))
        yield ptx(f"clz.b{bits}", u, "u32", ("from_integer", bits))
        yield ptx(f"popc.b{bits}", u, "u32", ("unary", u))
    yield ptx("fns.b32 d0, a0, a1, 1;", "u32 u32", "u32", ("shifts", "u32"), tag="first")
    yield ptx("fns.b32 d0, a0, a1, 0;", "u32 u32", "u32", ("shifts", "u32"), tag="zero")
    yield ptx("fns.b32 d0, a0, a1, -2;", "u32 u32", "u32", ("shifts", "u32"), tag="back")
    for mode in ("clamp", "wrap"):
        yield ptx(f"bmsk.{mode}.b32", "u32 u32", "u32", ("fields", "u32", 0))
        for t in ("u32", "s32"):
            yield ptx(f"szext.{mode}.{t}", f"{t} u32", t, ("shifts", t))


def relation(text: str) -> list[str]:
    """Both destinations of a setp as two forms."""
    return [f"setp.{text} p|q, a0, a1; selp.u32 d0, 1, 0, {which};" for which in "pq"]


def comparing() -> Iterator[Case]:
    for t in INTEGERS:
        names = ["lt", "le", "gt", "ge"] + (["lo", "ls", "hi", "hs"] if t[0] == "u" else ["eq", "ne"])
        texts = [text for name in names for text in relation(f"{name}.{t}")]
        yield forms(f"setp_{t}", texts, f"{t} {t}", "u32", ("binary", t, t, 50))
    for bits in (16, 32, 64):
        texts = relation(f"eq.b{bits}") + relation(f"ne.b{bits}")
        yield forms(f"setp_b{bits}", texts, f"u{bits} u{bits}", "u32", ("binary", f"u{bits}", f"u{bits}", 50))
    for combine in ("and", "or", "xor"):
        texts = [
            f"setp.ne.s32 p, a2, 0; setp.lt.{combine}.s32 {dest}, a0, a1, {source}; selp.u32 d0, 1, 0, {read};"
            for source in ("p", "!p")
            for dest, read in (("p", "p"), ("p|q", "q"))
        ]
        texts.append(f"setp.ne.s32 p, a2, 0; set.gt.{combine}.u32.s32 d0, a0, a1, p;")
        yield forms(
            f"setp_s32_{combine}", texts, "s32 s32 s32", "u32", ("ternary", "s32", "s32", "s32", 90), family="setp"
        )
    for t in ("s16", "u32", "s64"):
        texts = [f"set.le.{dest}.{t}" for dest in ("u32", "s32", "f32")]
        yield forms(f"set_{t}", texts, f"{t} {t}", "u32", ("binary", t, t, 50))


def selecting() -> Iterator[Case]:
    for t in ("b16", "b32", "b64", "f32", "f64", "s16", "u64"):
        u = f"u{t[1:]}"
        yield ptx(
            f"setp.lt.s32 p, a2, 0; selp.{t} d0, a0, a1, p;",
            f"{u} {u} u32",
            u,
            ("ternary", u, u, "u32", 90),
            tag=f"selp_{t}",
        )
        yield ptx(f"slct.{t}.s32", f"{u} {u} s32", u, ("ternary", u, u, "s32", 90))
        yield ptx(f"slct.{t}.f32", f"{u} {u} f32", u, ("ternary", u, u, "f32", 90))
    yield ptx("slct.ftz.b32.f32", "u32 u32 f32", "u32", ("ternary", "u32", "u32", "f32", 90))


def all_integer() -> list[Case]:
    return [*arithmetic(), *carries(), *dots(), *logic(), *shifting(), *bits_of(), *comparing(), *selecting()]
