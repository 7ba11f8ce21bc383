"""Begins and ends a bare rank as `workers.rank_main` does: `python -m tests.helpers.bare_rank MODULE ARGUMENTS…`."""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import sys


def main(module: str) -> None:
    """Runs a module as the program, with torch imported quickly and its compiler left asleep."""
    gc.disable()
    import torch

    from workers.sleeping_compiler import let_compiler_sleep

    let_compiler_sleep()
    torch.set_num_threads(1)
    gc.freeze()
    gc.enable()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv.pop(1))
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
