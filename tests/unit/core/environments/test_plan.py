"""Plan of an environment: its sizes as text, with what is unknown said to be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.environments.pip_report import Wheel
from core.environments.plan import Plan, options_beside
from core.environments.wheel_sizes import WheelSize

pytestmark = pytest.mark.windows
WHEEL = Wheel("torch", "2.13.0", "https://index/torch.whl", "ab" * 32)
GB, MB = 10**9, 10**6


def plan(*sizes: WheelSize, python: int = 0) -> Plan:
    return Plan((WHEEL,) * len(sizes), sizes, python)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            plan(WheelSize(2 * GB, 4 * GB), WheelSize(600 * MB, GB), python=100 * MB),
            "Download: 2.6 GB in 2 files. Installed: about 5.1 GB.",
        ),
        (plan(WheelSize(2 * GB, 4 * GB)), "Download: 2 GB in 1 file. Installed: about 4 GB."),
        (
            plan(WheelSize(2 * GB, 4 * GB), WheelSize(None, None)),
            "Download: more than 2 GB (1 of 2 files of unknown size). Installed: size unknown.",
        ),
        (plan(WheelSize(None, None)), "Download: size unknown (1 file). Installed: size unknown."),
        (plan(WheelSize(2 * GB, None)), "Download: 2 GB in 1 file. Installed: size unknown."),
        (plan(WheelSize(2 * GB, 4 * GB, is_local=True)), "Nothing is downloaded. Installed: about 4 GB."),
        (
            plan(WheelSize(2 * GB, 4 * GB, is_local=True), WheelSize(MB, 2 * MB)),
            "Download: 1 MB in 1 file. Installed: about 4 GB.",
        ),
    ],
)
def test_the_sizes_as_text(made: Plan, text: str) -> None:
    assert made.text == text


def test_a_rocm_build_has_its_triton_looked_for_where_it_is_itself() -> None:
    rocm = replace(WHEEL, version="2.13.0+rocm7.2")
    assert options_beside(rocm, None) == ["--extra-index-url", "https://download.pytorch.org/whl/rocm7.2"]
    assert options_beside(rocm, Path("wheels")) == []  # a folder holds all of it
    assert options_beside(replace(WHEEL, version="2.13.0+cu130"), None) == []
