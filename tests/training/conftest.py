"""Fixtures of tests that train."""

from __future__ import annotations

from tests.helpers.host_fixture import quick_hosts

__all__ = ["quick_hosts"]
