"""From PTX to callable code, through the cache: the scheduler once per process, each kernel on first use."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from . import jit, translate
from .cache import Cache, key_of
from .layout import CONTEXT
from .ptx import Function, Instruction, Module
from .ptx_reader import outline, parse
from .unit import RECURSION_BYTES, Options, Unit, planted

FOLDER = Path(__file__).parent
_ABI = "ptr %st, ptr %ctx, ptr %save, ptr %lm, i32 %lb, ptr %ret"
_GLUE = f"""
define internal i32 @"f.emu_step"({_ABI}, ptr %p0, ptr %p1) alwaysinline {{
  %thread = load ptr, ptr %p0
  %context = load ptr, ptr %p1
  %at = getelementptr i8, ptr %context, i64 {CONTEXT["kernel"]}
  %kernel = load ptr, ptr %at
  %status = call i32 %kernel(ptr %thread, ptr %context)
  store i32 %status, ptr %ret
  ret i32 0
}}
define internal i32 @"f.emu_now"({_ABI}) {{
  %now = call i64 @emu.now()
  store i64 %now, ptr %ret
  ret i32 0
}}
define i32 @emu_enter(ptr %context) {{
  %answer = alloca i32
  %argument = alloca ptr
  store ptr %context, ptr %argument
  %z = call i32 @"f.emu_blocks"(ptr null, ptr null, ptr null, ptr null, i32 0, ptr %answer, ptr %argument)
  %r = load i32, ptr %answer
  ret i32 %r
}}
"""


@functools.cache
def version() -> str:
    """Hash of this package's sources: code made by another version is never used."""
    digest = hashlib.sha256()
    for path in sorted([*FOLDER.rglob("*.py"), FOLDER / "runtime.ptx"]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


class Scheduler:
    """The scheduler's machine code: `enter(context address)` runs blocks and returns an Outcome."""

    def __init__(self, cache: Cache) -> None:
        ptx = (FOLDER / "runtime.ptx").read_text()
        key = key_of("scheduler", ptx, version(), jit.host_key())
        image = cache.get(key)
        if image is None:
            image = jit.compile_ir(_scheduler_ir(ptx), jit.O1)
            cache.put(key, image)
        self.loaded = jit.load(image)
        self.enter = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(self.loaded.address("emu_enter"))


def _scheduler_ir(ptx: str) -> str:
    unit = Unit(parse(ptx), "emu_blocks", Options(host=True))
    return translate.translate(unit, extra_helpers=("emu.now",)) + _GLUE


@dataclass(frozen=True)
class Plant:
    """A fault put in after translation: an instruction of `entry` made illegal, by source line or by number."""

    entry: str
    line: int | None = None
    index: int | None = None


class Source:
    """A PTX text: its outline at once, everything when it is needed (the code may be cached)."""

    def __init__(self, ptx: str) -> None:
        self.ptx = ptx
        self.outline = outline(ptx)

    @functools.cached_property
    def module(self) -> Module:
        """The whole module. Raises PtxError."""
        return parse(self.ptx)

    def planted(self, plant: Plant | None, entry: str) -> Module:
        """The module with the plant in the kernel it is meant for. Raises ValueError where it has no such place."""
        if plant is None or plant.entry != entry:
            return self.module
        changed = _with_plant(self.module, plant)
        return replace(self.module, functions={**self.module.functions, changed.name: changed})


@dataclass(frozen=True)
class Kernel:
    """A kernel ready to launch. `cached`: its code came from the cache; `level`: of LLVM's optimisation."""

    source: Source
    plant: Plant | None
    info: translate.KernelInfo
    loaded: jit.Loaded
    address: int
    options: Options
    cached: bool
    level: int

    @functools.cached_property
    def sites(self) -> list[tuple[str, int, Instruction]]:
        """For each instruction number: function, position in it, instruction."""
        found: list[tuple[str, int, Instruction]] = []
        position: dict[str, int] = {}
        for function, x in Unit(self.source.planted(self.plant, self.info.name), self.info.name, self.options).sites:
            position[function.name] = position.get(function.name, -1) + 1
            found.append((function.name, position[function.name], x))
        return found


def build(
    source: Source, entry: str, options: Options, cache: Cache, plant: Plant | None = None, level: int | None = None,
    recursion_bytes: int = RECURSION_BYTES,
) -> Kernel:  # fmt: skip
    """Translate and compile (or fetch) the kernel `entry`. Raises translate.Refused, jit.LinkError, PtxError,
    ValueError (plant)."""
    parts = (
        source.ptx,
        entry,
        repr(options),
        repr(plant),
        repr(level),
        str(recursion_bytes),
        version(),
        jit.host_key(),
    )
    key = key_of("kernel", *parts)
    image = cache.get(key)
    cached = image is not None
    if image is None:
        image = _compile(Unit(source.planted(plant, entry), entry, options), level, recursion_bytes)
    head, _, code = image.partition(b"\n")
    stored = json.loads(head)
    loaded = jit.load(code)
    if not cached:
        cache.put(key, image)
    address = loaded.address(f"f.{entry}")
    return Kernel(source, plant, _info(stored["info"]), loaded, address, options, cached, stored["level"])


def _compile(unit: Unit, level: int | None, recursion_bytes: int) -> bytes:
    """What the cache keeps of a kernel: a line of JSON (KernelInfo, level), then the object."""
    info = translate.kernel_info(unit, recursion_bytes)
    if level is None:
        level = jit.O0 if info.ptx_instructions > jit.O0_ABOVE else jit.O1
    code = jit.compile_ir(translate.translate(unit), level)
    return json.dumps({"info": asdict(info), "level": level}).encode() + b"\n" + code


def _with_plant(module: Module, plant: Plant) -> Function:
    """The function that holds the plant, changed: the kernel itself, else (for a line) one that was not inlined."""
    kernel = module.functions[plant.entry]
    others = [f for f in module.functions.values() if f.body and f is not kernel] if plant.line is not None else []
    for function in (kernel, *others):
        with contextlib.suppress(ValueError):
            return planted(function, plant.line, plant.index)
    raise ValueError(
        f"no instruction of {plant.entry} at line {plant.line} or number {plant.index} to plant a fault in"
    )


def _info(stored: dict[str, object]) -> translate.KernelInfo:
    """A KernelInfo from its JSON form: lists become tuples again."""

    def tuples(value: object) -> object:
        return tuple(tuples(v) for v in value) if isinstance(value, list) else value

    return translate.KernelInfo(**{name: tuples(value) for name, value in stored.items()})  # type: ignore[arg-type]
