"""Fixtures of tests that start runs."""

from __future__ import annotations

from tests.helpers.host_fixture import make_run, quick_hosts
from tests.helpers.script_runs import script_run

__all__ = ["make_run", "quick_hosts", "script_run"]
