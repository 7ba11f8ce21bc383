"""Rebuilds a run's columns in a process of its own: `python -m core.run_folder.rebuild_columns RUN_DIR`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from core.errors import RankdeckError, RunBusyError, UsageError
from core.metrics.columns import is_current, rebuild
from core.run_folder.store import RunStore


def main(arguments: Sequence[str]) -> int:
    """Rebuild the columns unless they are current; print the share that is done, 0 to 1, a number a line."""
    if len(arguments) != 1:
        print("usage: python -m core.run_folder.rebuild_columns RUN_DIR", file=sys.stderr)
        return UsageError.exit_code
    try:
        store = RunStore.open(Path(arguments[0]))
        if store.is_locked():
            raise RunBusyError("The run is live: its host keeps the columns.", "Wait until it has ended.")
        if not is_current(store.dir):
            rebuild(store.dir, lambda done: print(f"{done:.4f}", flush=True))
    except RankdeckError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print("1.0000", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
