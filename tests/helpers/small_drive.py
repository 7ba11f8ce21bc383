"""A drive of a few MiB, for tests of disks that fill up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_drive(folder: Path, size_mib: int) -> Iterator[Path]:
    """A real drive at `folder`; the test is skipped where none can be made."""
    folder.mkdir()
    mount = shutil.which("mount")
    if sys.platform != "linux" or os.geteuid() != 0 or mount is None:
        pytest.skip("only root on Linux can make a small drive")
    argv = [mount, "-t", "tmpfs", "-o", f"size={size_mib}m", "none", str(folder)]
    made = subprocess.run(argv, check=False, capture_output=True)
    if made.returncode != 0:
        pytest.skip(f"no drive can be mounted here: {made.stderr.decode(errors='replace').strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
