"""Plan of an environment: the indexes that pip is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.environments.pip_report import Wheel
from core.environments.plan import options_beside

WHEEL = Wheel("torch", "2.13.0", "https://index/torch.whl", "ab" * 32)


def test_a_rocm_build_has_its_triton_looked_for_where_it_is_itself() -> None:
    rocm = replace(WHEEL, version="2.13.0+rocm7.2")
    assert options_beside(rocm, None) == ["--extra-index-url", "https://download.pytorch.org/whl/rocm7.2"]
    assert options_beside(rocm, Path("wheels")) == []  # a folder holds all of it
    assert options_beside(replace(WHEEL, version="2.13.0+cu130"), None) == []
