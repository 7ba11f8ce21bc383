"""Marks tests that need DeepSpeed: `installer/bootstrap.py test` installs it on Linux."""

from __future__ import annotations

import importlib.util

import pytest

needs_deepspeed = pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is None, reason="DeepSpeed is not installed: pip install rankdeck[deepspeed]"
)
