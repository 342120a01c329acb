"""Names as signatures want them: the parts that change from build to build or from shape to shape taken out."""

from __future__ import annotations

import posixpath
import re

_CAST_NUMBER = re.compile(r"(?<![\w.])(?:\([\w: ]+\))?-?(?:0x[0-9a-fA-F]+|\d+)(?:[uUlL]*)(?![\w.])")
_TRITON_SPECIALISED = re.compile(r"_\d+[dc](?:e?\d*[dce])*$")  # `_kernel_0d1d2de`: which arguments were specialised
_INDUCTOR_COUNTER = re.compile(r"^(triton_(?:poi|per|red|tem|for|split_scan|unk)_\w*?)_\d+$")
_HASHED = re.compile(r"_[0-9a-f]{16,64}(?=$|_)")


def normal_kernel(name: str | None) -> str | None:
    """A kernel's name with template numbers as N, and without the counters and hashes that code generators append."""
    if not name:
        return None
    text = re.sub(r"\s+", " ", name.strip())
    if "<" in text:
        at = text.index("<")
        text = text[:at] + re.sub(r"\s*,\s*", ", ", _CAST_NUMBER.sub("N", text[at:]))
    text = _TRITON_SPECIALISED.sub("", text)
    text = _HASHED.sub("", text)
    counted = _INDUCTOR_COUNTER.match(text)
    return (counted[1] if counted else text)[:300] or None


def normal_file(path: str | None) -> str | None:
    """The file's own name, without folders and without the random part of a generated one."""
    if not path:
        return None
    name = posixpath.basename(path.replace("\\", "/").rstrip("/"))
    return re.sub(r"^(?:tmp|c)?[0-9a-z_]{8,60}(?=\.py$)", "generated", name) if _is_generated(name) else name or None


def _is_generated(name: str) -> bool:
    """`cxyz2k...7q.py` of Inductor and `tmpab12cd34.py`: letters and digits mixed without a word in it."""
    stem = name.removesuffix(".py")
    looks_random = len(re.findall(r"\d", stem)) >= 4 and re.fullmatch(r"(?:tmp)?[0-9a-z_]{8,60}", stem) is not None
    return name.endswith(".py") and (looks_random or re.fullmatch(r"tmp[0-9a-z_]{8}", stem) is not None)
