"""Nothing of a probe outlives it: grandchildren, daemons, a controller that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness_probing import Run, alive, stdout_of, wait_until_gone


def test_output_after_the_programs_death_is_kept(run: Run) -> None:
    facts = run("sh", "-c", "(sleep 1; echo late) & echo early; exit 3", limits={"grace_s": 10.0})
    assert (facts.exit_code, facts.stragglers) == (3, ())
    assert stdout_of(facts) == b"early\nlate\n"
    assert facts.wall_s < 0.9, "the wall time is the program's own"


def test_a_grandchild_that_keeps_the_pipe_open_does_not_hang_us(run: Run) -> None:
    begun = time.monotonic()
    facts = run("sh", "-c", "sleep 60 & echo $!")
    pid = int(stdout_of(facts))
    assert facts.exit_code == 0
    assert time.monotonic() - begun < 5
    assert [(left["pid"], left["name"], left["escaped"]) for left in facts.stragglers] == [(pid, "sleep", False)]
    assert not alive(pid)


def test_a_grandchild_that_writes_for_ever_does_not_hang_us(run: Run) -> None:
    begun = time.monotonic()
    facts = run("sh", "-c", "yes flood & exit 0", limits={"stream_bytes": 1 << 16})
    assert facts.exit_code == 0
    assert time.monotonic() - begun < 5
    assert [left["name"] for left in facts.stragglers] == ["yes"]


def test_a_daemon_that_left_the_session_is_found_and_ended(run: Run) -> None:
    facts = run("sh", "-c", "setsid sh -c 'echo $$; exec sleep 60 >/dev/null 2>&1' & exit 0")
    pid = int(stdout_of(facts))
    assert [(left["pid"], left["escaped"]) for left in facts.stragglers] == [(pid, True)]
    assert not alive(pid)


def test_the_whole_family_is_ended_at_the_time_limit(run: Run) -> None:
    script = "trap '' TERM; sleep 61 & echo $!; setsid sleep 62 & echo $!; wait; wait"
    facts = run("sh", "-c", script, limits={"timeout_s": 2.0, "grace_s": 0.3})
    pids = [int(word) for word in stdout_of(facts).split()]
    assert len(pids) == 2
    assert facts.timed_out
    assert not [pid for pid in pids if alive(pid)]
    assert facts.survivors == ()


def test_a_process_that_hid_itself_cannot_hang_us(run_python: Run) -> None:
    """It left the session and cleared its environment, and it holds the pipe: nothing can tell that it is the
    probe's."""
    source = (
        "import os\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    print(os.getpid())\n"
        "    os.execve('/bin/sleep', ['sleep', '8'], {})\n"
    )
    begun = time.monotonic()
    facts = run_python(source)
    pid = int(stdout_of(facts))
    try:
        assert facts.exit_code == 0
        assert time.monotonic() - begun < 5
        assert any("still held" in note for note in facts.launch["notes"])
    finally:
        os.kill(pid, signal.SIGKILL)


CONTROLLER = """
import sys, threading
from harness.guardian import Guardian
from harness.launcher import run_probe
from harness.records import ProbeRequest

SCRIPT = '''
trap '' TERM INT HUP
echo $$ > pids
setsid sleep 600 & echo $! >> pids
touch ready
wait
sleep 600
'''
with Guardian() as guardian:
    def one(folder):
        run_probe(ProbeRequest({"kind": "command", "argv": ["sh", "-c", SCRIPT]}, folder, cwd=folder), guardian)
    threads = [threading.Thread(target=one, args=(folder,)) for folder in sys.argv[1:]]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_a_killed_controller_leaves_no_process(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    controller = subprocess.Popen([sys.executable, "-c", CONTROLLER, *map(str, folders)])
    until = time.monotonic() + 20
    while not all((folder / "ready").exists() for folder in folders):
        assert time.monotonic() < until
        assert controller.poll() is None
        time.sleep(0.02)
    pids = [int(word) for folder in folders for word in (folder / "pids").read_text().split()]
    assert len(pids) == 4
    assert all(map(alive, pids))
    controller.kill()
    controller.wait()
    assert wait_until_gone(pids) == []


def test_a_guardian_ends_by_itself(tmp_path: Path) -> None:
    script = "from harness.guardian import Guardian\ng = Guardian(); g.start()\nprint(g._process.pid, flush=True)\n"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=True)
    assert wait_until_gone([int(ended.stdout)]) == []
