"""Tests in this folder are about what only Windows does; elsewhere they are skipped, and say why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.host_fixture import make_run
from tests.helpers.window_fixture import open_window

__all__ = ["make_run", "open_window"]
HERE = Path(__file__).resolve().parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks everything here `windows`: a file that forgot the marker would never run where it matters."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.windows)
