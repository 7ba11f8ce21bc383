"""Processes that are forked from one that has imported torch: importing it is most of what a short one does."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_IMPORTED_BEFORE: Final = "tests.helpers.imported_before_forks"


def can_fork() -> bool:
    """Whether there are such processes here."""
    return "forkserver" in multiprocessing.get_all_start_methods()


def process(target: Callable[..., object], *arguments: object) -> BaseProcess:
    """Starts one: a child of a server of Python's `multiprocessing`, one for each process that runs tests."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_IMPORTED_BEFORE])
    _start_server()
    made = context.Process(target=target, args=arguments)
    made.start()
    return made


def _start_server() -> None:
    """It looks for what it imports where it is started, which is some test's folder, and says nothing without it."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
