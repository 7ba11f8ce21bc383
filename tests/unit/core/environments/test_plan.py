"""Plan of an environment: its sizes as text, with what is unknown said to be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.environments.pip_report import Wheel
from core.environments.plan import Plan, options_beside

WHEEL = Wheel("torch", "2.13.0", "https://index/torch.whl", "ab" * 32)
GB, MB = 10**9, 10**6


def plan(*sizes: int | None, local: tuple[int, ...] = (), python: int = 0) -> Plan:
    here = replace(WHEEL, url="file:///wheels/torch.whl")
    return Plan((WHEEL,) * len(sizes) + (here,) * len(local), (*sizes, *local), python)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (plan(2 * GB, 600 * MB, python=100 * MB), "Download: 2.6 GB in 2 files. Installed: about 6.6 GB."),
        (plan(2 * GB), "Download: 2 GB in 1 file. Installed: about 5 GB."),
        (plan(2 * GB, None), "Download: more than 2 GB (1 of 2 files of unknown size). Installed: size unknown."),
        (plan(None), "Download: size unknown (1 file). Installed: size unknown."),
        (plan(local=(2 * GB,)), "Nothing is downloaded. Installed: about 5 GB."),
        (plan(MB, local=(2 * GB,)), "Download: 1 MB in 1 file. Installed: about 5 GB."),
    ],
)
def test_the_sizes_as_text(made: Plan, text: str) -> None:
    assert made.text == text


def test_a_rocm_build_has_its_triton_looked_for_where_it_is_itself() -> None:
    rocm = replace(WHEEL, version="2.13.0+rocm7.2")
    assert options_beside(rocm, None) == ["--extra-index-url", "https://download.pytorch.org/whl/rocm7.2"]
    assert options_beside(rocm, Path("wheels")) == []  # a folder holds all of it
    assert options_beside(replace(WHEEL, version="2.13.0+cu130"), None) == []
