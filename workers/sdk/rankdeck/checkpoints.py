"""Ties a script's own checkpoint to the data that is in it: both become valid at the same moment, or neither does."""

from __future__ import annotations

import os
import shutil
import sys
import time
import uuid
from contextlib import suppress
from typing import Optional, Type, Union

from .dataset import commit_current
from .link import welcomed

_PathLike = Union[str, "os.PathLike[str]"]


class checkpoint:
    """Ties the script's own checkpoint to the data seen: ``with checkpoint("model.pt") as path: save(path)``.

    Write to `path`, a temporary name in the same folder. It becomes the file only when the host has recorded both, so
    a crash at any moment leaves a file and a record that belong together. Every rank enters it at the same place;
    ranks that save nothing write nothing. A folder (``save_pretrained(path)``) works as well as a file.

    Args:
        path: Where the checkpoint is to be; None if the script saves by itself inside the block.
        step: Optimizer steps done, for the run's history.
    """

    def __init__(self, path: Optional[_PathLike] = None, step: Optional[int] = None) -> None:
        self._final = "" if path is None else os.path.abspath(os.fspath(path))
        self._step = step
        self._staged = ""

    def __enter__(self) -> Optional[str]:
        if not self._final:
            return None
        folder, name = os.path.split(self._final)
        stem, suffix = os.path.splitext(name)
        os.makedirs(folder, exist_ok=True)
        self._staged = os.path.join(folder, "%s.partial-%s%s" % (stem, uuid.uuid4().hex[:8], suffix))
        return self._staged

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        staged = self._staged if self._staged and os.path.exists(self._staged) else None
        if kind is not None:
            if staged is not None:
                _remove(staged)
            return
        if staged is not None:
            _sync(staged)
        problem = commit_current(self._step, staged, None if staged is None else self._final)
        if staged is not None and os.path.exists(staged):
            _replace(staged, self._final)
        if problem:
            sys.stderr.write("rankdeck: the data was not committed with this checkpoint: %s\n" % problem)


def last_checkpoint() -> Optional[str]:
    """The newest checkpoint that belongs to the data already trained; None at a first start or without a host."""
    path: Optional[str] = welcomed().get("checkpoint")
    return path


def _sync(path: str) -> None:
    files = [path]
    if os.path.isdir(path):
        files = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    for name in files:
        with suppress(OSError), open(name, "r+b") as file:
            os.fsync(file.fileno())


def _replace(staged: str, final: str) -> None:
    """`staged` becomes `final`; on Windows another program may have it open for a moment."""
    old = None
    if os.path.isdir(final) and not os.path.islink(final):
        old = final + ".old-" + uuid.uuid4().hex[:8]
    for attempt in range(50):
        try:
            if old is not None and os.path.exists(final):
                os.replace(final, old)
            os.replace(staged, final)
            break
        except PermissionError:
            if attempt == 49:
                raise
            time.sleep(0.1)
    if old is not None:
        _remove(old)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.remove(path)
