"""PTX instruction forms as functions on arrays of bits, through the scalar machine."""

from __future__ import annotations

import functools
import re

import numpy as np
from scalar_machine import Compiled

from harness.devices.emulator.ptx import WIDTH

DTYPES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


class Forms:
    """Several forms over the same operands. In a form `d0` is the result and `a0`, `a1`, ... are the operands; a bare
    opcode gets them all. Predicates p and q are declared."""

    def __init__(self, texts: tuple[str, ...], ins: tuple[str, ...], outs: tuple[str, ...]) -> None:
        self.texts, self.ins, self.outs = texts, ins, outs
        self.code = Compiled(kernel(texts, ins, outs), optimise=True)

    def __call__(self, *operands: list[int]) -> list[list[int]]:
        """One list of results for each form."""
        arrays = [np.array(values, dtype=DTYPES[WIDTH[kind]]) for values, kind in zip(operands, self.ins, strict=True)]
        results = [np.zeros(len(arrays[0]), DTYPES[WIDTH[kind]]) for kind in self.outs]
        self.code.run(arrays, results, len(arrays[0]))
        return [[int(value) for value in result] for result in results]


@functools.cache
def forms(texts: tuple[str, ...], ins: tuple[str, ...], outs: tuple[str, ...]) -> Forms:
    return Forms(texts, ins, outs if len(outs) > 1 else outs * len(texts))


def kernel(texts: tuple[str, ...], ins: tuple[str, ...], outs: tuple[str, ...]) -> str:
    """A PTX kernel that loads the operands, runs every form and stores the results."""
    names = [f"a{k}" for k in range(len(ins))] + [f"d{k}" for k in range(len(outs))]
    kinds = [*ins, *outs]
    lines = ["mov.u32 %i, %tid.x;"]
    for name, kind in zip(names, kinds, strict=True):
        size = WIDTH[kind] // 8
        lines += [
            f"ld.param.u64 %p_{name}, [q_{name}];",
            f"mul.wide.u32 %o, %i, {size};",
            f"add.s64 %p_{name}, %p_{name}, %o;",
        ]
    lines += [f"ld.global.b{WIDTH[kind]} %{name}, [%p_{name}];" for name, kind in zip(names, ins, strict=False)]
    for k, text in enumerate(texts):
        if " " not in text:
            text = f"{text} d0, {', '.join(names[: len(ins)])};"
        lines.append("{ " + re.sub(r"\ba(\d+)\b", r"%a\1", re.sub(r"\bd0\b", f"%d{k}", text)) + " }")
    lines += [f"st.global.b{WIDTH[kind]} [%p_d{k}], %d{k};" for k, kind in enumerate(outs)]
    registers = "".join(
        f".reg .b{max(16, WIDTH[k])} %{n}; .reg .b64 %p_{n}; " for n, k in zip(names, kinds, strict=True)
    )
    parameters = ", ".join(f".param .u64 q_{name}" for name in names)
    return (
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        f".visible .entry k({parameters}, .param .u32 n)\n{{\n.reg .pred p, q; .reg .b32 %i; .reg .b64 %o;\n"
        f"{registers}\n" + "\n".join(lines) + "\nret;\n}\n"
    )
