"""A conformance case: a small kernel, its inputs and its launch, all derived from one line of a table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from conf_inputs import DTYPES, operands

C_TYPES = {"u16": "unsigned short", "u32": "unsigned int", "u64": "unsigned long long"}
CONSTRAINTS = {"u16": "h", "u32": "r", "u64": "l"}


@dataclass(frozen=True)
class Case:
    """One kernel `(in0, in1, ..., out0, out1, ..., count)`; all buffers hold raw bits of the element types."""

    name: str
    family: str  # what is tested: an opcode family, or one of the approximations that have a bound of their own
    source: str
    ins: tuple[str, ...]
    outs: tuple[str, ...]
    data: tuple[object, ...]  # name of an input set and its arguments
    kinds: tuple[
        str, ...
    ] = ()  # how to read each output when it is off: "f32", "f64", "f16", "bf16", "f16x2" or an integer
    arch: str = "compute_80"
    block: int = 128
    grid: int = 0  # 0: as many blocks as the inputs need
    out_count: int = 0  # 0: one element of every output for each row of the inputs
    options: tuple[str, ...] = ()  # further compiler options
    labels: tuple[str, ...] = ()  # what each output shows, where a kernel tries several forms

    def inputs(self) -> list[np.ndarray]:
        name, *arguments = self.data
        return operands(str(name), arguments, self.ins)

    def count(self, inputs: Sequence[np.ndarray]) -> int:
        return self.out_count or len(inputs[0])

    def blocks(self, inputs: Sequence[np.ndarray]) -> int:
        return self.grid or -(-len(inputs[0]) // self.block)

    def fingerprint(self) -> str:
        """Changes with the kernel, its inputs and its launch: a recording of another case is not compared."""
        digest = hashlib.sha256()
        launch = (self.arch, self.options, self.block, self.grid, self.out_count)
        digest.update(repr((self.source, self.ins, self.outs, launch)).encode())
        for array in self.inputs():
            digest.update(array.tobytes())
        return digest.hexdigest()[:24]


def out_dtypes(case: Case) -> list[np.dtype]:
    return [np.dtype(DTYPES[kind]) for kind in case.outs]


def elementwise(ins: Sequence[str], outs: Sequence[str], statements: str, name: str, before: str = "") -> str:
    """CUDA C of a kernel that reads x0, x1, ... of its row, runs the statements and stores y0, y1, ..."""
    parameters = [f"const {C_TYPES[k]}* in{j}" for j, k in enumerate(ins)]
    parameters += [f"{C_TYPES[k]}* out{j}" for j, k in enumerate(outs)]
    loads = "".join(f"  {C_TYPES[k]} x{j} = in{j}[i];\n" for j, k in enumerate(ins))
    locals_ = "".join(f"  {C_TYPES[k]} y{j} = 0;\n" for j, k in enumerate(outs))
    stores = "".join(f"  out{j}[i] = y{j};\n" for j, _ in enumerate(outs))
    return (
        f'{before}extern "C" __global__ void {name}({", ".join(parameters)}, unsigned int count) {{\n'
        "  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"  if (i >= count) return;\n{loads}{locals_}  {statements}\n{stores}}}\n"
    )


WIDTH = {
    "s8": "u32",
    "u8": "u32",
    "pred": "u32",
    "f16x2": "u32",
    "bf16x2": "u32",
    "s16x2": "u32",
    "u16x2": "u32",
    "tf32": "u32",
}


def container(kind: str) -> str:
    """The register that carries a PTX type: an 8-bit value travels in 32 bits."""
    return WIDTH.get(kind) or ("u" + re.sub(r"\D", "", kind.replace("bf", "f")))


def ptx(
    text: str, ins: str, outs: str, data: tuple[object, ...], family: str = "", arch: str = "compute_80", tag: str = ""
) -> Case:
    """A case of inline PTX. In `text` the operands are d0, d1, ... and a0, a1, ...; a bare opcode gets all of them.

    `ins` and `outs` are PTX types separated by blanks; predicates p and q may be used and are declared.
    """
    text = spelled(text, len(ins.split()))
    opcode = text.split()[0].rstrip(";")
    return assembled(
        slug(opcode + ("_" + tag if tag else "")), family or opcode.split(".")[0], [text], ins, outs, data, arch
    )


def forms(
    name: str,
    texts: Sequence[str],
    ins: str,
    outs: str,
    data: tuple[object, ...],
    family: str = "",
    arch: str = "compute_80",
) -> Case:
    """Several forms over the same inputs in one kernel: form number k writes d0, which becomes output number k.

    `outs` names one type for all or one for each.
    """
    kinds = outs.split()
    kinds = kinds * len(texts) if len(kinds) == 1 else kinds
    numbered = [re.sub(r"\bd0\b", f"d{k}", spelled(text, len(ins.split()))) for k, text in enumerate(texts)]
    case = assembled(slug(name), family or texts[0].split(".")[0], numbered, ins, " ".join(kinds), data, arch)
    return replace(case, labels=tuple(texts))


def placed(text: str, places: dict[str, str]) -> str:
    """The text with its operand names replaced."""
    return re.sub(r"\b[ad]\d+\b", lambda m: places[m[0]], text)


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def spelled(text: str, operand_count: int) -> str:
    if " " in text:
        return text
    return f"{text} " + ", ".join(["d0", *[f"a{j}" for j in range(operand_count)]]) + ";"


def assembled(
    name: str, family: str, texts: Sequence[str], ins: str, outs: str, data: tuple[object, ...], arch: str
) -> Case:
    """One asm statement for each text, with only the operands that it names."""
    ins_c, outs_c = [container(k) for k in ins.split()], [container(k) for k in outs.split()]
    statements = []
    for text in texts:
        written = sorted({int(n) for n in re.findall(r"\bd(\d+)\b", text)})
        read = sorted({int(n) for n in re.findall(r"\ba(\d+)\b", text)})
        places = {f"d{n}": f"%{k}" for k, n in enumerate(written)}
        places.update({f"a{n}": f"%{len(written) + k}" for k, n in enumerate(read)})
        body = placed(text, places)
        if re.search(r"\b[pq]\b", text):
            body = "{ .reg .pred p, q; " + body + " }"
        targets = ", ".join(f'"=&{CONSTRAINTS[outs_c[j]]}"(y{j})' for j in written)
        sources = ", ".join(f'"{CONSTRAINTS[ins_c[j]]}"(x{j})' for j in read)
        statements.append(f'asm volatile("{body}" : {targets} : {sources});')
    return Case(
        name=name, family=family, source=elementwise(ins_c, outs_c, "\n  ".join(statements), name),
        ins=tuple(ins_c), outs=tuple(outs_c), data=data, kinds=tuple(outs.split()), arch=arch,
    )  # fmt: skip


def cuda(
    name: str, statements: str, ins: str, outs: str, data: tuple[object, ...], family: str = "cuda", before: str = "",
    options: tuple[str, ...] = (),
) -> Case:  # fmt: skip
    """Ordinary CUDA C: what the compiler makes of functions and operators. Floats are bits: F(x0), B(value)."""
    in_kinds, out_kinds = ins.split(), outs.split()
    ins_c, outs_c = [container(k) for k in in_kinds], [container(k) for k in out_kinds]
    helpers = (
        "__device__ inline float F(unsigned int x) { return __uint_as_float(x); }\n"
        "__device__ inline double D(unsigned long long x) { return __longlong_as_double((long long)x); }\n"
        "__device__ inline unsigned int B(float x) { return __float_as_uint(x); }\n"
        "__device__ inline unsigned long long L(double x) { return (unsigned long long)__double_as_longlong(x); }\n"
    )
    return Case(
        name=name, family=family, source=elementwise(ins_c, outs_c, statements, name, helpers + before),
        ins=tuple(ins_c), outs=tuple(outs_c), data=data, kinds=tuple(out_kinds),
        options=options,
    )  # fmt: skip


def whole(
    name: str,
    body: str,
    family: str,
    block: int = 64,
    grid: int = 1,
    words_out: int = 0,
    rows: int = 256,
    before: str = "",
) -> Case:
    """A kernel written out: `in` and `out` are arrays of 32-bit words, `t` the thread in the block, `g` in the grid.

    `out` has `words_out` zeroed words (one for each thread by default), `in` has `rows` random words.
    """
    source = (
        f'{before}extern "C" __global__ void {name}(const unsigned int* in, unsigned int* out, unsigned int count) {{\n'
        "  unsigned int t = threadIdx.x, g = blockIdx.x * blockDim.x + threadIdx.x; (void)t; (void)g;\n"
        f"{body}\n}}\n"
    )
    return Case(
        name=name, family=family, source=source, ins=("u32",), outs=("u32",), data=("words", rows, 1, len(name)),
        kinds=("u32",),
        block=block, grid=grid, out_count=words_out or block * grid,
    )  # fmt: skip
