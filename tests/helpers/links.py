"""Symbolic links for tests, where the system makes them."""

from __future__ import annotations

from pathlib import Path

import pytest


def link(path: Path, target: Path) -> Path:
    """Makes `path` a symbolic link to `target` and returns it, or skips the test where there are none."""
    try:
        path.symlink_to(target, target_is_directory=target.is_dir())
    except OSError as error:
        pytest.skip(f"links cannot be made here: {error}")
    if not path.is_symlink():
        pytest.skip("Wine makes symbolic links that it shows as what they point at")
    return path
