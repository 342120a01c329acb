"""Records every planted fault of zoo.cu and zoo2.cu under every observer on the GPU of this machine, into one archive.

    python tests/gpu/record_faults.py OUT.tar.xz [--jobs 8] [--budget-s 330] [--only race,leak] [--sanitizer PATH]

Needs nvcc, compute-sanitizer and a driver; cuda-gdb is used where it is. Standard library only. Processes run side by
side, each under its own time limit; what the budget leaves no time for is listed in `skipped.txt` of the archive. The
layout is that of `tests/evidence/recorded`: runs/FAULT/OBSERVER/ with stdout, stderr, rc, report.xml, report.txt,
driver.log, core.gpu and gdb.txt.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOST = ("host_segv", "host_abort", "host_exit3", "host_kill", "host_throw")
HANGS = ("hang", "bad_pc_low", "bad_pc_data")
GREEDY = ("oom", "oom_loop")
"""They take all of the device's memory: run after the others, one at a time."""
SMALL_CORE = (
    "skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,skip_constbank_memory"
)
SANITIZER = ("--strip-paths", "no", "--print-limit", "100", "--error-exitcode", "86")
GDB_QUESTIONS = ("info cuda kernels", "info cuda threads", "print $errorpc", "x/2i $errorpc", "bt")
TOOLS = {
    "memcheck": ("--tool", "memcheck", "--padding", "32", "--track-stream-ordered-races", "all"),
    "racecheck": ("--tool", "racecheck"),
    "initcheck": ("--tool", "initcheck"),
    "synccheck": ("--tool", "synccheck"),
}
EXTRA = {  # fault -> observer -> options: what only some faults are worth
    "leak": {"leakcheck": ("--tool", "memcheck", "--leak-check", "full")},
    "ok": {"leakcheck": ("--tool", "memcheck", "--leak-check", "full")},
    "oom_loop": {"leakcheck": ("--tool", "memcheck", "--leak-check", "full")},
    "heap_leak": {"leakcheck": ("--tool", "memcheck", "--leak-check", "full")},
    "race": {"hazards": ("--tool", "racecheck", "--racecheck-report", "all")},
    "warp_hazard": {
        "hazards": ("--tool", "racecheck", "--racecheck-report", "all", "--racecheck-detect-level", "info")
    },
    "unused": {"unused": ("--tool", "initcheck", "--track-unused-memory")},
    "shared_uninit": {"allspaces": ("--tool", "initcheck", "--initcheck-address-space", "all")},
    "oob_far": {"filtered": ("--tool", "memcheck", "--kernel-name", "kns=nothing_has_this_name")},
    "no_cuda_work": {
        "launches": (
            "--tool",
            "memcheck",
        )
    },
    "template": {"launches": ("--tool", "memcheck", "--dump-kernel-launches")},
}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("archive")
    options.add_argument("--jobs", type=int, default=8)
    options.add_argument("--budget-s", type=float, default=330.0)
    options.add_argument("--only", type=lambda text: text.split(","), help="these faults only")
    options.add_argument("--sanitizer", default=tool("compute-sanitizer"), help="the tool; default: the toolkit's")
    asked = options.parse_args()
    deadline = time.monotonic() + asked.budget_s
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        programs = {name: argv for name, argv in build(work).items() if asked.only is None or name in asked.only}
        jobs = plan(work, programs, asked.sanitizer)
        greedy = [job for job in jobs if job.folder.parent.name in GREEDY]
        skipped = run_all([job for job in jobs if job not in greedy], asked.jobs, deadline)
        skipped += run_all(greedy, 1, deadline)
        gdb_all(work, asked.jobs, deadline)
        describe(work, skipped, asked.sanitizer)
        pack(work, Path(asked.archive))
    print(f"{len(jobs) - len(skipped)} runs recorded, {len(skipped)} skipped")
    return 0


def tool(name: str) -> str | None:
    beside = glob.glob(f"/usr/local/cuda*/bin/{name}")
    return shutil.which(name) or (beside[0] if beside else None)


def build(work: Path) -> dict[str, tuple[str, ...]]:
    """Fault -> command line, for every fault named in the sources."""
    nvcc = tool("nvcc")
    if nvcc is None:
        sys.exit("nvcc was not found")
    commands: dict[str, tuple[str, ...]] = {}
    waiting = []
    for source in ("zoo.cu", "zoo2.cu"):
        program = work / Path(source).stem
        waiting.append(compiled(nvcc, HERE / source, program, "-arch=sm_90"))
        for name in re.findall(r'f == "(\w+)"', (HERE / source).read_text()):
            if name not in ("image", "no_image") and (name != "ok" or source == "zoo.cu"):
                commands[name] = (str(program), name)
    waiting.append(compiled(nvcc, HERE / "zoo.cu", work / "zoo_sm120", "-arch=sm_120"))
    waiting.append(compiled(nvcc, HERE / "patched.cu", work / "plain.cubin", "-arch=sm_90", "-cubin"))
    for process in waiting:
        if process.wait() != 0:
            sys.exit("a program did not compile")
    commands["no_image"] = (str(work / "zoo_sm120"), "ok")
    for name, word in (("image_ff", b"\xff"), ("image_00", b"\x00")):
        image = work / f"{name}.cubin"
        image.write_bytes(damaged((work / "plain.cubin").read_bytes(), word))
        commands[name] = (str(work / "zoo2"), "image", str(image), "plus_one")
    return commands


def compiled(nvcc: str, source: Path, target: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([nvcc, "-O2", "-lineinfo", *options, "-o", str(target), str(source)])


def damaged(image: bytes, byte: bytes) -> bytes:
    """The cubin with the instruction at 0x60 of its kernel overwritten."""
    at, size, count, names = struct.unpack_from("<Q", image, 40)[0], *struct.unpack_from("<HHH", image, 58)
    rows = [struct.unpack_from("<IIQQQQ", image, at + i * size) for i in range(count)]
    strings = rows[names][4]
    for name, _, _, _, offset, _ in rows:
        if image[strings + name :].startswith(b".text.plus_one\0"):
            return image[: offset + 0x60] + byte * 16 + image[offset + 0x70 :]
    raise ValueError("the cubin has no .text.plus_one")


class Job:
    """One process to record."""

    def __init__(
        self, folder: Path, argv: tuple[str, ...], env: dict[str, str], limit_s: float, poke: bool = False
    ) -> None:
        self.folder, self.argv, self.env, self.limit_s, self.poke = folder, argv, env, limit_s, poke

    def run(self, deadline: float) -> bool:
        """False where the budget left no time."""
        limit = min(self.limit_s, deadline - time.monotonic())
        if limit < 3:
            return False
        self.folder.mkdir(parents=True)
        with open(self.folder / "stdout", "wb") as out, open(self.folder / "stderr", "wb") as err:
            started = time.monotonic()
            process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.folder,
                env={**os.environ, **self.env},
                start_new_session=True,
            )
            if self.poke:
                self.trigger(process)
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = 124
            wall = time.monotonic() - started
        (self.folder / "rc").write_text(f"{status if status >= 0 else 128 - status} {wall}\n")
        return True

    def trigger(self, process: subprocess.Popen[bytes]) -> None:
        """Ask a hanging program for a core through its pipe, opened without blocking."""
        for _ in range(60):
            time.sleep(0.25)
            pipes = glob.glob(str(self.folder / "corepipe*"))
            if pipes and process.poll() is None:
                time.sleep(2)
                try:
                    pipe = os.open(pipes[0], os.O_WRONLY | os.O_NONBLOCK)
                    os.write(pipe, b"x")
                    os.close(pipe)
                    return
                except OSError:
                    continue


def plan(work: Path, commands: dict[str, tuple[str, ...]], sanitizer: str | None) -> list[Job]:
    jobs: list[Job] = []
    for name, argv in commands.items():
        root = work / "out" / "runs" / name
        slow = name in HANGS
        log = {"CUDA_LOG_FILE": str(root / "{}" / "driver.log")}
        jobs.append(Job(root / "plain", argv, fill(log, "plain"), 8 if slow else 20))
        jobs.append(
            Job(root / "blocking", argv, fill({**log, "CUDA_LAUNCH_BLOCKING": "1"}, "blocking"), 8 if slow else 20)
        )
        if name not in HOST:
            core = {
                **log,
                "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1",
                "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "1",
                "CUDA_COREDUMP_FILE": str(root / "{}" / "core.gpu"),
                "CUDA_COREDUMP_PIPE": str(root / "{}" / "corepipe_%p"),
                "CUDA_COREDUMP_GENERATION_FLAGS": SMALL_CORE,
                "CUDA_COREDUMP_SHOW_PROGRESS": "1",
            }
            jobs.append(Job(root / "coredump", argv, fill(core, "coredump"), 25, poke=slow))
            kept = {**core, "CUDA_COREDUMP_GENERATION_FLAGS": SMALL_CORE + ",skip_abort"}
            if not slow:
                jobs.append(Job(root / "skipabort", argv, fill(kept, "skipabort"), 25))
        jobs += sanitized(sanitizer, root, name, argv, slow) if sanitizer else []
    return jobs


def fill(env: dict[str, str], observer: str) -> dict[str, str]:
    return {key: value.replace("{}", observer) for key, value in env.items()}


def sanitized(program: str, root: Path, name: str, argv: tuple[str, ...], slow: bool) -> list[Job]:
    tools = {"memcheck": TOOLS["memcheck"]} if name in HOST else {**TOOLS, **EXTRA.get(name, {})}
    known = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=20, check=False).stdout
    tools = {o: words for o, words in tools.items() if all(w in known for w in words if w.startswith("--"))}
    env = {"NV_COMPUTE_SANITIZER_LOCAL_CONNECTION_OVERRIDE": "uds"}
    jobs = []
    for observer, options in tools.items():
        folder = root / observer
        files = ("--log-file", str(folder / "report.txt"), "--xml", "--save", str(folder / "report.xml"))
        command = (program, *options, *SANITIZER, *files, *argv)
        jobs.append(Job(folder, command, env, 15 if slow else 40))
    return jobs


def run_all(jobs: list[Job], side_by_side: int, deadline: float) -> list[str]:
    skipped: list[str] = []
    jobs.sort(key=lambda job: job.limit_s, reverse=True)
    with concurrent.futures.ThreadPoolExecutor(side_by_side) as pool:
        for job, done in zip(jobs, pool.map(lambda job: job.run(deadline), jobs), strict=True):
            if not done:
                skipped.append(str(job.folder))
    return skipped


def gdb_all(work: Path, side_by_side: int, deadline: float) -> None:
    """What cuda-gdb says of every core, to compare with."""
    gdb = tool("cuda-gdb")
    if gdb is None:
        return
    words = [word for line in GDB_QUESTIONS for word in ("-ex", line)]

    def ask(core: Path) -> None:
        if time.monotonic() > deadline + 30:
            return
        command = [gdb, "-batch", "-ex", f"target cudacore {core}", *words]
        try:
            answer = subprocess.run(command, capture_output=True, timeout=20, check=False)
        except subprocess.TimeoutExpired:
            return
        (core.parent / "gdb.txt").write_bytes(answer.stdout[:20_000])

    with concurrent.futures.ThreadPoolExecutor(side_by_side) as pool:
        list(pool.map(ask, sorted(work.glob("out/runs/*/*/core.gpu"))))


def describe(work: Path, skipped: list[str], sanitizer: str | None) -> None:
    out = work / "out"
    (out / "skipped.txt").write_text("".join(f"{Path(name).relative_to(out)}\n" for name in skipped))
    lines = []
    for command in (
        ["nvidia-smi"],
        [tool("nvcc") or "nvcc", "--version"],
        [sanitizer or "", "--version"],
    ):
        try:
            lines.append(subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout)
        except (OSError, subprocess.TimeoutExpired) as problem:
            lines.append(f"{command}: {problem}\n")
    (out / "env.txt").write_text("".join(lines))


def pack(work: Path, archive: Path) -> None:
    """Everything but core files over 4 MiB (their size is noted), in a fixed order."""
    for path in (work / "out").rglob("*"):
        if path.is_fifo():
            path.unlink()
        elif path.name.startswith("core") and path.is_file() and path.stat().st_size > 4 << 20:
            (path.parent / "core.size").write_text(f"{path.stat().st_size}\n")
            path.unlink()
        elif path.is_file() and path.stat().st_size > 2 << 20 and not path.name.startswith("core"):
            data = path.read_bytes()
            path.write_bytes(data[: 1 << 20])
    with tarfile.open(archive, "w:xz", preset=6) as tar:
        for path in sorted((work / "out").rglob("*")):
            if path.is_file():
                tar.add(path, arcname=str(path.relative_to(work / "out")))


if __name__ == "__main__":
    sys.exit(main())
