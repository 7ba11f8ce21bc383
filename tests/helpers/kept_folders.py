"""Folders that were chosen for environments, models and runs, forgotten again when a test ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from core.paths import environments_dir_file, models_dir_file, runs_dir_file


@contextmanager
def nothing_chosen() -> Iterator[None]:
    files = (environments_dir_file(), models_dir_file(), runs_dir_file())
    for file in files:
        file.unlink(missing_ok=True)
    try:
        yield
    finally:
        for file in files:
            file.unlink(missing_ok=True)
