"""Records what a real GPU gives for every conformance kernel.

    python3 record.py --out DIR            needs a GPU, numpy, cuda.bindings; writes DIR/h200.conformance.xz
    python3 record.py --dry-run            compiles only (no GPU); with --ptxas PATH it also assembles

Each kernel is compiled for its virtual architecture (compute_80 for nearly all) to PTX by this machine's NVRTC, and the
PTX is loaded through the driver, as the emulated device would get it. A kernel that fails is recorded with its error;
one that poisons the context ends the child process, and a fresh one goes on with the next kernel.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from conf_case import Case, out_dtypes
from conf_recording import Recorded, Recording, save
from conf_table import table

CHILD_LIMIT_S = 100


def checked(result: tuple[Any, ...], what: str) -> Any:
    """The value of a cuda.bindings call, or an exception that names it."""
    if int(result[0]) != 0:
        raise RuntimeError(f"{what}: {result[0]!s}")
    return result[1] if len(result) == 2 else result[1:]


def compile_ptx(case: Case) -> str:
    from cuda.bindings import nvrtc

    program = checked(nvrtc.nvrtcCreateProgram(case.source.encode(), b"case.cu", 0, [], []), "nvrtcCreateProgram")
    options = [f"--gpu-architecture={case.arch}".encode(), b"--std=c++17", *(o.encode() for o in case.options)]
    status = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status[0]) != 0:
        log = bytearray(checked(nvrtc.nvrtcGetProgramLogSize(program), "nvrtcGetProgramLogSize"))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError("NVRTC: " + log.decode(errors="replace").strip("\0 \n"))
    text = bytearray(checked(nvrtc.nvrtcGetPTXSize(program), "nvrtcGetPTXSize"))
    checked((*nvrtc.nvrtcGetPTX(program, text), None), "nvrtcGetPTX")
    nvrtc.nvrtcDestroyProgram(program)
    return text.decode().rstrip("\0")


def compile_all(cases: list[Case]) -> dict[str, Recorded]:
    def one(case: Case) -> Recorded:
        fingerprint = case.fingerprint()
        try:
            return Recorded(fingerprint, compile_ptx(case))
        except RuntimeError as error:
            return Recorded(fingerprint, error=str(error))

    first = one(cases[0])  # alone, so that libraries are loaded by one thread
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        results = [first, *pool.map(one, cases[1:])]
        return dict(zip([case.name for case in cases], results, strict=True))


# -- the child: runs kernels on the GPU until one poisons the context ------------------------------------------------


def run_case(driver: Any, case: Case, ptx: str) -> list[np.ndarray]:
    options = [driver.CUjit_option.CU_JIT_ERROR_LOG_BUFFER, driver.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    log = bytearray(4096)
    image = np.frombuffer(ptx.encode() + b"\0", np.uint8)
    loaded = driver.cuModuleLoadDataEx(image.ctypes.data, 2, options, [log, len(log)])
    if int(loaded[0]) != 0:
        raise ValueError(f"cuModuleLoadDataEx: {loaded[0]!s}: " + log.decode(errors="replace").strip("\0 \n"))
    module = loaded[1]
    kernel = checked(driver.cuModuleGetFunction(module, case.name.encode()), "cuModuleGetFunction")
    inputs = case.inputs()
    outputs = [np.zeros(case.count(inputs), dtype) for dtype in out_dtypes(case)]
    buffers = [checked(driver.cuMemAlloc(array.nbytes + 256), "cuMemAlloc") for array in [*inputs, *outputs]]
    for buffer, array in zip(buffers, [*inputs, *outputs], strict=True):
        checked((*driver.cuMemcpyHtoD(buffer, array.ctypes.data, array.nbytes), None), "cuMemcpyHtoD")
    slots = [np.array([int(buffer)], np.uint64) for buffer in buffers] + [np.array([len(inputs[0])], np.uint32)]
    pointers = np.array([slot.ctypes.data for slot in slots], np.uint64)
    launched = driver.cuLaunchKernel(kernel, case.blocks(inputs), 1, 1, case.block, 1, 1, 0, 0, pointers.ctypes.data, 0)
    checked((*launched, None), "cuLaunchKernel")
    checked((*driver.cuCtxSynchronize(), None), "cuCtxSynchronize")
    for buffer, array in zip(buffers[len(inputs) :], outputs, strict=True):
        checked((*driver.cuMemcpyDtoH(array.ctypes.data, buffer, array.nbytes), None), "cuMemcpyDtoH")
    for buffer in buffers:
        driver.cuMemFree(buffer)
    driver.cuModuleUnload(module)
    return outputs


def child(folder: Path) -> int:
    from cuda.bindings import driver

    compiled: dict[str, Recorded] = pickle.loads((folder / "compiled").read_bytes())
    checked((*driver.cuInit(0), None), "cuInit")
    device = checked(driver.cuDeviceGet(0), "cuDeviceGet")
    context = checked(driver.cuDevicePrimaryCtxRetain(device), "cuDevicePrimaryCtxRetain")
    checked((*driver.cuCtxSetCurrent(context), None), "cuCtxSetCurrent")
    name = checked(driver.cuDeviceGetName(100, device), "cuDeviceGetName").decode().strip("\0 ")
    version = checked(driver.cuDriverGetVersion(), "cuDriverGetVersion")
    about = {"device": name, "driver_cuda": f"{version // 1000}.{version % 1000 // 10}"}
    (folder / "about").write_bytes(pickle.dumps(about))
    for case in table().values():
        target = folder / f"{case.name}.result"
        record = compiled[case.name]
        if record.error or target.exists():
            continue
        target.write_bytes(pickle.dumps("the recorder ended while this kernel ran"))  # stays if it kills us
        try:
            result: Any = run_case(driver, case, record.ptx)
        except ValueError as error:  # the driver refused the PTX; the context is healthy
            result = str(error)
        except RuntimeError as error:
            target.write_bytes(pickle.dumps(str(error)))
            return 3
        target.write_bytes(pickle.dumps(result))
    return 0


# -- the parent ------------------------------------------------------------------------------------------------------


def run_children(folder: Path) -> None:
    for _ in range(40):
        process = subprocess.Popen([sys.executable, __file__, "--child", str(folder)])
        try:
            if process.wait(timeout=CHILD_LIMIT_S) == 0:
                return
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if not (folder / "about").exists():
            raise SystemExit("no kernel ran: is there a GPU?")


def gather(folder: Path, compiled: dict[str, Recorded]) -> Recording:
    recording = Recording(about=dict(pickle.loads((folder / "about").read_bytes())))
    for name, record in compiled.items():
        path = folder / f"{name}.result"
        result = pickle.loads(path.read_bytes()) if path.exists() else record.error or "not run"
        if isinstance(result, str):
            recording.cases[name] = Recorded(record.fingerprint, record.ptx, (), result)
        else:
            recording.cases[name] = Recorded(record.fingerprint, record.ptx, result)
    return recording


def assemble(compiled: dict[str, Recorded], ptxas: str) -> dict[str, str]:
    """What ptxas for sm_90 says against each PTX text: the nearest to the driver that a machine without a GPU has."""

    def one(item: tuple[str, Recorded]) -> tuple[str, str]:
        command = [ptxas, "-arch=sm_90", "-o", os.devnull, "-"]
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            # An older ptxas refuses the newer PTX version that NVRTC writes, though it knows every form used here.
            file.write(re.sub(r"\.version \d+\.\d+", ".version 9.0", item[1].ptx))
            file.flush()
            done = subprocess.run([*command[:-1], file.name], capture_output=True, text=True)
        return item[0], "" if done.returncode == 0 else done.stderr + done.stdout

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return {name: text for name, text in pool.map(one, compiled.items()) if text}


def driver_version() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except OSError:
        return "unknown"


def report(errors: dict[str, str], total: int, seconds: float) -> None:
    print(f"{total - len(errors)} of {total} kernels in {seconds:.0f} s")
    for name, text in errors.items():
        print(f"  {name}: {text[:400]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for h200.conformance.xz")
    parser.add_argument("--dry-run", action="store_true", help="compile only")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--ptxas", default="", help="with --dry-run: assemble with this ptxas")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child)
    started = time.time()
    cases = [case for case in table().values() if options.only in case.name]
    compiled = compile_all(cases)
    print(f"compiled after {time.time() - started:.0f} s", flush=True)
    if options.dry_run:
        errors = {name: record.error for name, record in compiled.items() if record.error}
        if options.ptxas:
            errors.update(assemble({n: r for n, r in compiled.items() if not r.error}, options.ptxas))
        report(errors, len(compiled), time.time() - started)
        return 1 if errors else 0
    from cuda.bindings import nvrtc

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "compiled").write_bytes(pickle.dumps(compiled))
        run_children(folder)
        recording = gather(folder, compiled)
    major, minor = checked(nvrtc.nvrtcVersion(), "nvrtcVersion")
    recording.about["driver"] = driver_version()
    recording.about["nvrtc"] = f"{major}.{minor}"
    save(recording, options.out / "h200.conformance.xz")
    report({n: c.error for n, c in recording.cases.items() if c.error}, len(recording.cases), time.time() - started)
    print(f"{(options.out / 'h200.conformance.xz').stat().st_size / 1e6:.1f} MB, {recording.about}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
