"""The guardian's own process: reads "+GROUP" and "-GROUP" lines until the controller is gone, then kills what is left.

Run by file path (`python -I -S guardian_main.py TOKEN`); standard library only, as little of it as possible.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # not from typing: that import costs every run some milliseconds
if TYPE_CHECKING:
    from typing import Any


def read_groups() -> set[int]:
    """Process groups still watched when the controller's end of the pipe closed."""
    groups: set[int] = set()
    for line in sys.stdin.buffer:
        try:
            group = int(line[1:])
        except ValueError:  # cut short by the controller's death
            continue
        if line[:1] == b"+" and group > 1:
            groups.add(group)
        else:
            groups.discard(group)
    return groups


def marked(token: bytes) -> list[int]:
    """Processes whose environment carries the run's token, also those that left their group."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if token in file.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def kill(function: Any, number: int) -> None:
    try:
        function(number, signal.SIGKILL)
    except OSError:
        return


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    token = sys.argv[1].encode()
    groups = read_groups()
    for group in groups:
        kill(os.killpg, group)
    for _ in range(20):  # a process may fork while it is being looked for
        left = marked(token)
        if not left:
            break
        for pid in left:
            kill(os.kill, pid)


if __name__ == "__main__":
    main()
