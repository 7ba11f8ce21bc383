"""``python -m core.host.waiting``: a host that imports its modules while its run is still being checked.

It reads the run's folder from its standard input, as JSON on a line; a closed input means that there is no run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> int:
    """Wait for a folder, then be ``python -m core.host RUN_DIR``; returns the run's exit code."""
    problem: Exception | None = None
    try:
        from core.host import __main__ as host
        from core.machine.platform import this_platform

        this_platform()  # reads package metadata, whose reader takes longer to import than the answer to find
    except Exception as error:
        problem = error
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 0
    run_dir = Path(json.loads(line))
    _write_to(run_dir / "logs" / "host.log")
    if problem is not None:
        raise problem
    sys.argv = [host.__file__, str(run_dir)]
    return host.main(sys.argv[1:])


def _write_to(log: Path) -> None:
    from core.files.links import append_unlinked

    with append_unlinked(log) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)


if __name__ == "__main__":
    sys.exit(main())
