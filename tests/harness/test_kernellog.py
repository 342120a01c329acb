"""The kernel log: Xid lines since the probe began, or honestly not readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.kernellog import KernelLog, xid_text
from harness.records import XidFacts

RECORD = b"4,1181,49794192,-;NVRM: Xid (PCI:0000:00:06): 43, pid=1087, name=load, channel 0x0000000a\n SUBSYSTEM=pci\n"


def test_a_record_of_the_driver_gives_its_text() -> None:
    assert xid_text(RECORD) == "NVRM: Xid (PCI:0000:00:06): 43, pid=1087, name=load, channel 0x0000000a"


@pytest.mark.parametrize("record", [b"", b"6,1,2,-;usb 1-1: new device\n", b"\xff\xfe;", b"NVRM: Xid without a head"])
def test_other_records_give_none(record: bytes) -> None:
    assert xid_text(record) is None


def test_a_log_that_cannot_be_opened_is_not_readable(tmp_path: Path) -> None:
    with KernelLog(str(tmp_path / "missing")) as log:
        assert log.facts() == XidFacts(readable=False)


def test_only_what_came_after_the_start_counts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(RECORD)
    with KernelLog(str(path)) as log:
        assert log.facts() == XidFacts(readable=True)
        with path.open("ab") as file:
            file.write(RECORD.replace(b": 43", b": 31"))
        assert [line.split(": ")[2] for line in log.facts().lines] == ["31, pid=1087, name=load, channel 0x0000000a"]
