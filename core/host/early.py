"""``python -m core.host.early FOLDER``: a host that imports its modules while its run is still being checked.

The temporary folder has the order (`core.run_folder.early_host`), and the log so far; the host removes it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from core.files.links import append_unlinked
from core.run_folder.early_host import wait_for_run


def main(folder: Path) -> int:
    """Wait for a run, then be ``python -m core.host RUN_DIR``; return the run's exit code, 0 without a run."""
    problem: Exception | None = None
    try:
        from core.host import __main__ as host
        from core.machine.platform import this_platform

        # Reads package metadata, whose reader takes longer to import than the answer to find.
        this_platform()
    except Exception as error:
        # Belongs in the run's log.
        problem = error
    run_dir = wait_for_run(folder)
    # Windows removes no folder with a file that is open: without a run, the log so far is let go of, too.
    if run_dir:
        with append_unlinked(Path(run_dir) / "logs" / "host.log") as log:
            _print_to(log.fileno())
    else:
        _print_to(os.open(os.devnull, os.O_WRONLY))
    shutil.rmtree(folder, ignore_errors=True)
    if not run_dir:
        return 0
    if problem is not None:
        raise problem
    sys.argv = [host.__file__, run_dir]
    return host.main([run_dir])


def _print_to(file: int) -> None:
    for stream in (1, 2):
        os.dup2(file, stream)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
