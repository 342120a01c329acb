"""Initial contents of buffers. Loaded by path in the child; numpy only for what plain Python cannot do quickly."""

from __future__ import annotations

import zlib

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PLAIN = ("zeros", "ones", "value")


def spec_of(buffer: dict[str, Any]) -> dict[str, Any]:
    """The buffer's fill in its long form; zeros where it names none."""
    fill = buffer.get("fill") or "zeros"
    return {"kind": fill} if isinstance(fill, str) else dict(fill)


def needs_numpy(buffer: dict[str, Any]) -> bool:
    return buffer["role"] in ("in", "inout") and spec_of(buffer)["kind"] not in _PLAIN


def elements(buffer: dict[str, Any]) -> int:
    count = 1
    for extent in buffer["shape"]:
        count *= int(extent)
    return count


class Filler:
    """Makes the contents of one step's buffers. `call_user(spec, offered)` calls a function of the user's file."""

    def __init__(self, dtypes: Any, numpy: Any, call_user: Callable[[dict[str, Any], dict[str, Any]], Any]) -> None:
        self._dtypes = dtypes
        self._numpy = numpy
        self._call_user = call_user

    def contents(self, buffer: dict[str, Any], params: dict[str, Any]) -> bytes:
        """Bytes of the whole buffer. Raises ValueError for a fill that is unknown or has the wrong size."""
        spec, dtype, count = spec_of(buffer), buffer["dtype"], elements(buffer)
        kind = spec["kind"]
        if kind in _PLAIN:
            value = spec["value"] if kind == "value" else int(kind == "ones")
            return bytes(self._dtypes.pack(dtype, value) * count)
        if kind == "function":
            offered = {**params, "shape": tuple(buffer["shape"]), "dtype": dtype, "seed": buffer.get("seed", 0)}
            values = self._numpy.asarray(self._call_user(spec, offered))
        elif kind == "file":
            values = self._from_file(spec)
        else:
            values = self._drawn(buffer, spec, count)
        if values.size != count:
            wanted = tuple(buffer["shape"])
            raise ValueError(f"buffer {buffer['name']}: its fill has shape {values.shape}, wanted is {wanted}")
        return bytes(self._dtypes.from_numpy(self._numpy, dtype, values))

    def _from_file(self, spec: dict[str, Any]) -> Any:
        loaded = self._numpy.load(spec["file"], allow_pickle=False)
        if not spec.get("name"):
            return loaded
        if spec["name"] not in loaded:
            raise ValueError(f"{spec['file']} has no array {spec['name']!r}; it has {', '.join(loaded)}")
        return loaded[spec["name"]]

    def _drawn(self, buffer: dict[str, Any], spec: dict[str, Any], count: int) -> Any:
        numpy, dtype, kind = self._numpy, buffer["dtype"], spec["kind"]
        if kind == "arange":
            return numpy.arange(count) * spec.get("step", 1) + spec.get("start", 0)
        # The name is part of the seed: two buffers filled alike must not be equal.
        seed = [int(buffer.get("seed", 0)), zlib.crc32(buffer["name"].encode())]
        random = numpy.random.Generator(numpy.random.PCG64(seed))
        width = "float64" if dtype == "float64" else "float32"
        if kind == "normal":
            return random.standard_normal(count, width) * spec.get("std", 1) + spec.get("mean", 0)
        if kind == "uniform":
            low, high = spec.get("low", 0), spec.get("high", 1)
            return random.random(count, width) * (high - low) + low
        if kind == "randint":
            return random.integers(spec.get("low", 0), spec["high"], count)
        raise ValueError(f"buffer {buffer['name']}: unknown fill {kind!r}")
