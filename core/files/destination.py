"""Destination of an export: written to a temporary name, then moved, so that a failure leaves the old file."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import UsageError
from core.files.atomic import explain, explained, replace_with_retry


def check_folder_place(out: Path, overwrite: bool) -> None:
    """Refuse a folder that holds something, unless `overwrite` is given, or that is a file, with a `UsageError`."""
    with explained(f"{out} could not be looked into"):
        if out.exists() and not out.is_dir():
            raise refused(f"{out} is a file, but this export needs a folder.", "Choose a folder.", "--out PATH")
        if not overwrite and out.is_dir() and any(out.iterdir()):
            raise refused(f"{out} is not empty.", "Choose another folder, or replace the files in it.", "--overwrite")


def check_file_place(out: Path, overwrite: bool) -> None:
    """Refuse a file that is there, unless `overwrite` is given, or that is a folder, with a `UsageError`."""
    if out.is_dir():
        raise refused(f"{out} is a folder.", "Name a file.", "--out model.safetensors")
    if not overwrite and out.exists():
        raise refused(f"{out} already exists.", "Choose another name, or replace it.", "--overwrite")


@contextmanager
def staged_folder(out: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, whose files then take their places below `out`; raises `PreflightError`."""
    staging = out / f".export-{secrets.token_hex(4)}.rankdeck-tmp"
    made = not out.exists()
    done = False
    try:
        staging.mkdir(parents=True)
        yield staging
        for file in sorted(path for path in staging.rglob("*") if path.is_file()):
            target = out / file.relative_to(staging)
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_with_retry(file, target)
        done = True
    except OSError as error:
        raise explain(error, f"{out} could not be written") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if made and not done:
            # Another process put something there meanwhile.
            with contextlib.suppress(OSError):
                out.rmdir()


def refused(cause: str, next_step: str, option: str = "") -> UsageError:
    return UsageError(cause, next_step, title="Nothing was exported", option=option)
