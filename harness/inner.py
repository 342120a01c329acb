"""The program's own parent inside a tool: runs `inner.py STATUS_FILE ARGV...` and records how the program itself ended.

Run by file path, Python >= 3.8, standard library only. The tool around it cannot be trusted with the exit status: it
maps an abort to 6 and reports 0 or its own number where it found errors.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # not from typing: that import costs every probe some milliseconds
if TYPE_CHECKING:
    from typing import Any


def write_status(path: str, status: dict[str, Any]) -> None:
    """Replace the file in one step: the launcher may look at any moment."""
    scratch = path + ".part"
    with open(scratch, "w") as file:
        json.dump(status, file)
    os.replace(scratch, path)


def main() -> int:
    status_path, argv = sys.argv[1], sys.argv[2:]
    try:
        pid = os.posix_spawnp(argv[0], argv, os.environ)
    except OSError as error:
        write_status(status_path, {"start_error": f"{argv[0]}: {error.strerror}"})
        return 127
    write_status(status_path, {"pid": pid})
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        write_status(status_path, {"pid": pid, "signal": os.WTERMSIG(status)})
        return 128 + os.WTERMSIG(status)
    write_status(status_path, {"pid": pid, "exit_code": os.WEXITSTATUS(status)})
    return os.WEXITSTATUS(status)


if __name__ == "__main__":
    sys.exit(main())
