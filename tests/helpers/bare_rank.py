"""Begins and ends a bare rank as `workers.programs.rank_main` does: `python -m tests.helpers.bare_rank MODULE …`."""

from __future__ import annotations

import atexit
import os
import runpy
import sys
from pathlib import Path


def main(module: str) -> None:
    """Runs a module as the program; this process ends with it."""
    import tests.helpers.torch_imported  # noqa: F401

    runpy.run_module(module, run_name="__main__", alter_sys=True)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def forked(module: str, arguments: list[str], environment: dict[str, str], file: str) -> None:
    """Does so in a child of a process that has imported torch; what it says goes to FILE.out and FILE.err."""
    for stream, suffix in ((1, ".out"), (2, ".err")):
        target = os.open(Path(file).with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, stream)
        os.close(target)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = [module, *arguments]
    main(module)


if __name__ == "__main__":
    main(sys.argv.pop(1))
