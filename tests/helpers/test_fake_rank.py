"""Fake ranks start quickly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.forking import ROOT


@pytest.mark.windows
def test_a_fake_rank_needs_no_torch() -> None:
    code = "import sys, tests.helpers.fake_rank; print([name for name in ('torch', 'numpy') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
