"""The core file reader on files built here (rows of other drivers, unknown exceptions, lone multiprocessors), and its
line tables against nvdisasm on code compiled here."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import recordings

from cudadiag.errors import Undecided
from cudadiag.evidence.core import read_core
from cudadiag.evidence.core.disassembly import cubin_at, instruction_at, instructions
from cudadiag.evidence.core.exceptions import EXCEPTIONS, exception_kind, exception_named
from cudadiag.evidence.core.lines import LineTable, line_rows
from cudadiag.model import FaultKind

SOURCE = """
__device__ __forceinline__ float leaf(float* p, int i) {
  return p[i] * 2.0f;
}
__device__ __forceinline__ float mid(float* p, int i) {
  float a = leaf(p, i);
  return a + leaf(p, i + 1000);
}
extern "C" __global__ void top(float* p, float* o, int n) {
  int i = threadIdx.x;
  o[i] = mid(p, n + i);
}
extern "C" __global__ void second(float* p, float* o, int n) {
  o[threadIdx.x] = leaf(p, n)
    + mid(p, 3);
}
"""


def built_core(sections: list[tuple[int, bytes, int, int, int]], strings: bytes = b"\0") -> bytes:
    """A core file of (kind, data, entry size, parent, row) sections; index 1 is the first."""
    body, table = b"", struct.pack("<IIQQQQIIQQ", *[0] * 10)
    for kind, data, entry, parent, row in sections:
        table += struct.pack(
            "<IIQQQQIIQQ", 0, 0x80000000 + kind, 2, 0, 64 + len(body), len(data), parent, row, 8, entry
        )
        body += data
    for text in (strings, b"\0"):
        table += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(body), len(text), 0, 0, 1, 0)
        body += text
    count = len(sections) + 3
    ident = b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7)
    head = struct.pack("<16sHHIQQQIHHHHHH", ident, 4, 190, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, count, count - 1)
    return head + body + table


def built_warp(
    *, lane_bytes: int, warp_bytes: int, sm_bytes: int, exception: int, error_pc: int, broken: int = 0
) -> bytes:
    """One block of one warp of two lanes on multiprocessor 3, rows padded to the given sizes."""

    def row(layout: str, *values: int, size: int) -> bytes:
        return (struct.pack(layout, *values) + bytes(200))[:size]

    sms = b"".join(
        row(
            "<IIIIQIIIIQ", n, 0, exception if n == 3 else 0, int(bool(error_pc)), error_pc, 0, 0, 0, 0, 1, size=sm_bytes
        )
        for n in range(4)
    )
    block = row("<QIII", 2, 5, 6, 7, size=52)
    warp = row("<QIIIIII", error_pc, 4, 3, 3, broken, int(bool(error_pc)), 0, size=warp_bytes)
    lanes = b"".join(row("<QQIIIIIII", 0x5000 + 16, 0, n, n, 0, 0, exception, 0, 0, size=lane_bytes) for n in range(2))
    grid = row("<7Q12I", 2, 0, 0, 0x5000, 0, 0, 0, 0, 0, 2, 8, 9, 1, 1, 64, 1, 1, 0, 0, size=136)
    return built_core(
        [
            (11, sms, sm_bytes, 0, 0),
            (12, grid, 136, 0, 0),
            (13, block, 52, 1, 3),
            (14, warp, warp_bytes, 3, 0),
            (15, lanes, lane_bytes, 4, 0),
        ],
        b"\0a brand new exception\0",
    )


@pytest.mark.parametrize(
    ("lane_bytes", "warp_bytes", "sm_bytes"), [(56, 64, 48), (64, 80, 48), (48, 40, 24), (72, 128, 96)]
)
def test_rows_of_older_and_newer_drivers_are_read_by_the_files_own_entry_size(
    lane_bytes: int, warp_bytes: int, sm_bytes: int
) -> None:
    data = built_warp(lane_bytes=lane_bytes, warp_bytes=warp_bytes, sm_bytes=sm_bytes, exception=14, error_pc=0x5040)
    reading = read_core(data)
    (found,) = reading.exceptions
    assert (found.name, found.kind, found.pc, found.pc_is_exact) == (
        "Warp Illegal Address",
        FaultKind.ILLEGAL_ADDRESS,
        0x5040,
        True,
    )
    assert (found.block, found.thread, found.lanes, found.sm, found.warp) == ((5, 6, 7), (0, 0, 0), 2, 3, 4)
    assert [(k.grid, k.block) for k in reading.kernels] == [((9, 1, 1), (64, 1, 1))]


def test_rows_so_old_that_they_know_no_exception_of_the_multiprocessor_are_read() -> None:
    data = built_warp(lane_bytes=48, warp_bytes=40, sm_bytes=8, exception=6, error_pc=0x5040)
    assert [e.name for e in read_core(data).exceptions] == ["Warp Misaligned Address"]


def test_an_exception_the_table_does_not_know_keeps_the_files_words() -> None:
    data = built_warp(lane_bytes=56, warp_bytes=64, sm_bytes=48, exception=250, error_pc=0)
    (found,) = read_core(data).exceptions
    assert (found.name, found.number, found.kind) == ("Exception 250", 250, FaultKind.OTHER_CUDA)
    sms = struct.pack("<IIIIQIIIIQ", 0, 0, 250, 1, 0x77, 0, 0, 0, 0, 1)
    (lone,) = read_core(built_core([(11, sms, 48, 0, 0)], b"\0a brand new exception\0")).exceptions
    assert (lone.name, lone.pc, lone.thread, lone.sm) == ("a brand new exception", 0x77, None, 0)


def test_a_warp_without_exception_is_running_and_a_broken_one_met_a_trap() -> None:
    running = read_core(built_warp(lane_bytes=56, warp_bytes=64, sm_bytes=48, exception=0, error_pc=0))
    assert running.exceptions == ()
    assert [(w.number, w.pc, w.lanes) for w in running.running] == [(None, 0x5010, 2)]
    broken = read_core(built_warp(lane_bytes=56, warp_bytes=64, sm_bytes=48, exception=0, error_pc=0, broken=1))
    assert [(e.name, e.kind) for e in broken.exceptions] == [("Trace/breakpoint trap", FaultKind.LAUNCH_FAILURE)]


def test_17_and_18_go_by_the_names_of_the_file_not_by_cuda_gdbs_numbers() -> None:
    assert EXCEPTIONS[17].name == "Cluster Out-of-range Address"
    assert EXCEPTIONS[18].name == "Cluster Block Not Present"
    assert exception_named("CUDBG_EXCEPTION_CLUSTER_BLOCK_NOT_PRESENT") is EXCEPTIONS[18]
    assert exception_named("Cluster Out-of-range Address") is EXCEPTIONS[17]
    assert exception_named("CUDBG_EXCEPTION_NEW") is None
    assert exception_kind(999, "words").name == "words"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not an ELF file"),
        (b"hello" * 40, "not an ELF file"),
        (b"\x7fELF\x02\x01\x01\x00" + bytes(80), "not of a GPU"),
        (recordings.files()["runs/trap/flagcore/core.gpu"][:5000], "cut off"),
    ],
)
def test_other_files_are_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Undecided, match=reason):
        read_core(data)


def test_machine_code_that_is_no_core_is_refused() -> None:
    cubin = cubin_at(recordings.files()["runs/trap/flagcore/core.gpu"], 0x7F7D7F7A0B60)
    assert cubin is not None
    with pytest.raises(Undecided, match="not a core file"):
        read_core(cubin)


def test_without_pyelftools_the_exception_is_read_and_what_is_missing_is_said(tmp_path: Path) -> None:
    core = tmp_path / "core"
    core.write_bytes(recordings.files()["runs/misaligned/flagcore/core.gpu"])
    script = (
        "import sys; sys.modules['elftools'] = None\n"
        "from cudadiag.evidence.core import read_core\n"
        f"r = read_core(open({str(core)!r}, 'rb').read())\n"
        "e = r.exceptions[0]\n"
        "print(e.name, e.thread, e.kernel, e.line); print(r.notes[0])"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert answer.splitlines()[0] == "Warp Misaligned Address (0, 0, 0) None None"
    assert "pip install 'cudadiag[sanitizer]'" in answer


# Line tables and listings


def nvdisasm(path: Path) -> str:
    pathfinder = pytest.importorskip("cuda.pathfinder")
    tool = pathfinder.find_nvidia_binary_utility("nvdisasm")
    if tool is None:
        pytest.skip("nvdisasm is not installed (nvidia-cuda-nvdisasm)")
    return subprocess.run([tool, "-c", "-gi", str(path)], capture_output=True, text=True, check=True).stdout


def compiled(source: str, architecture: str) -> bytes:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"inl.cu", 0, [], [])
    options = [b"-lineinfo", f"-arch={architecture}".encode()]
    assert nvrtc.nvrtcCompileProgram(program, len(options), options)[0] == 0
    size = nvrtc.nvrtcGetCUBINSize(program)[1]
    image = bytes(size)
    nvrtc.nvrtcGetCUBIN(program, image)
    return image


def relocated_table(image: bytes) -> tuple[LineTable, dict[str, int]]:
    """The line table of a cubin with every function put at an address of its own, as loading does."""
    from io import BytesIO

    from elftools.elf.elffile import ELFFile

    file = ELFFile(BytesIO(image))
    table = bytearray(file.get_section_by_name(".debug_line").data())
    strings = file.get_section_by_name(".debug_str")
    symbols = file.get_section_by_name(".symtab")
    bases: dict[str, int] = {}
    section = file.get_section_by_name(".rela.debug_line") or file.get_section_by_name(".rel.debug_line")
    for relocation in section.iter_relocations():
        symbol = symbols.get_symbol(relocation["r_info_sym"])
        name = symbol.name or file.get_section(symbol["st_shndx"]).name.removeprefix(".text.")
        base = bases.setdefault(name, 0x10_0000 * (len(bases) + 1))
        addend = relocation["r_addend"] if relocation.is_RELA() else 0
        struct.pack_into("<Q", table, relocation["r_offset"], base + addend)
    return LineTable(line_rows(bytes(table), strings.data() if strings else b"")), bases


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_120"])
def test_lines_and_inlined_calls_are_those_of_nvdisasm(architecture: str, tmp_path: Path) -> None:
    image = compiled(SOURCE, architecture)
    (tmp_path / "a.cubin").write_bytes(image)
    table, bases = relocated_table(image)
    compared = inlined = 0
    before: tuple[str | None, list[int | None]] = (None, [])
    for found in instructions(nvdisasm(tmp_path / "a.cubin")):
        if found.section not in bases:
            continue
        ours = [frame.line for frame in table.place(bases[found.section] + found.offset)]
        theirs = [frame.line for frame in found.frames]
        # nvdisasm prints no new heading where only the caller changed: the innermost line is then the same
        if ours != theirs:
            assert (found.section, theirs) == before
            assert ours[0] == theirs[0]
        before = (found.section, theirs)
        compared += 1
        inlined += len(ours) == 3
    assert set(bases) == {"top", "second"}
    assert compared > 20
    assert inlined > 2


def test_inlined_frames_carry_the_callees_names() -> None:
    table, bases = relocated_table(compiled(SOURCE, "sm_90"))
    chains = {tuple(frame.function for frame in table.place(bases["top"] + at)) for at in range(0, 0x100, 16)}
    assert ("leaf", "mid", None) in chains


def test_a_listing_gives_the_instruction_at_a_cores_pc(tmp_path: Path) -> None:
    core = recordings.files()["runs/misaligned/flagcore/core.gpu"]
    found = read_core(core).exceptions[0]
    assert found.pc is not None
    image = cubin_at(core, found.pc)
    assert image is not None
    (tmp_path / "a.cubin").write_bytes(image)
    instruction = instruction_at(nvdisasm(tmp_path / "a.cubin"), found.pc)
    assert instruction is not None
    gdb = recordings.files()["runs/misaligned/flagcore/gdb.txt"].decode()
    told = re.search(r"\*> 0x[0-9a-f]+ <[^>]*>:\t(.*)", gdb)
    assert told is not None
    assert instruction.text.replace(" ", "") == told[1].replace(" ", "")
    assert [frame.line for frame in instruction.frames] == [found.line]


def test_a_listing_knows_functions_inside_a_kernel() -> None:
    listing = """
.text._Z7recursePii:
	//## File "/s/a.cu", line 31
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/              @!P0 BRA `(.L_x_1) ;
        .type           $_Z7recursePii$_Z4deepiPVi,@function
$_Z7recursePii$_Z4deepiPVi:
	//## File "/s/a.cu", line 2 inlined at "/s/a.cu", line 30
	//## File "/s/a.cu", line 30
        /*0020*/                   STL [R1+0x3c], R30 ;
"""
    found = list(instructions(listing))
    assert [(i.offset, i.text, i.function) for i in found] == [
        (0, "LDC R1, c[0x0][0x28]", "_Z7recursePii"),
        (16, "@!P0 BRA `(.L_x_1)", "_Z7recursePii"),
        (32, "STL [R1+0x3c], R30", "$_Z7recursePii$_Z4deepiPVi"),
    ]
    assert [frame.line for frame in found[2].frames] == [2, 30]
    assert [frame.line for frame in found[1].frames] == [31]
    assert instruction_at(listing, 32, "_Z7recursePii") == found[2]
    assert instruction_at(listing, 32, "other") is None
