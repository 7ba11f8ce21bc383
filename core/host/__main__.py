"""``python -m core.host RUN_DIR``: hosts one run until it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from core.errors import RankdeckError, UsageError
from core.host.host import RunHost
from core.machine.keep_awake import kept_awake
from core.processes import ProcessTree
from core.run_folder.live_runs import noted_as_live
from core.run_folder.store import RunStore

# Each answer to a rank lets go of the interpreter's lock, and gets it back from a thread that makes columns only after
# this time: Python's own 5 ms would make it 200 answers a second.
_SWITCH_S: Final = 0.0005


def main(arguments: list[str], process_tree: Callable[[str], ProcessTree] = ProcessTree) -> int:
    """Run the host on the folder that is the only argument; return the run's exit code."""
    if len(arguments) != 1:
        sys.stderr.write("Usage: python -m core.host RUN_DIR\n")
        return UsageError.exit_code
    try:
        store = RunStore.open(Path(arguments[0]))
        _log_to(store.logs / "host.log")
        with store.lock(), noted_as_live(store.dir), kept_awake():
            return asyncio.run(_host(store, process_tree))
    except RankdeckError as error:
        logging.getLogger(__name__).error("%s", error)
        return error.exit_code


async def _host(store: RunStore, process_tree: Callable[[str], ProcessTree]) -> int:
    sys.setswitchinterval(_SWITCH_S)
    host = RunHost(store, process_tree)
    loop = asyncio.get_running_loop()

    received: list[int] = []

    def stop(number: int, _: object = None) -> None:
        # A second signal means that the first one was not enough.
        received.append(number)
        loop.call_soon_threadsafe(host.request_stop, len(received) > 1, signal.Signals(number).name)

    for name in ("SIGTERM", "SIGINT", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, stop)
    return await host.run()


def _log_to(path: Path) -> None:
    """Log to `path`, unless that is where standard error goes already (as it does in a detached host)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if not _is_same_file(path):
        handlers.append(logging.FileHandler(path, encoding="utf-8"))
    form = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.INFO, handlers=handlers, format=form, datefmt="%Y-%m-%d %H:%M:%S")


def _is_same_file(path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(sys.stderr.fileno()), path.stat())
    except (OSError, ValueError, AttributeError):  # no standard error, or no file yet
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
