"""DeepSpeed's wheels: where there are any."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.environments.deepspeed_wheels import FIRST_PYTHON_WITHOUT, why_no_wheel

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("system", "python", "why"),
    [
        ("win32", (3, 11), ""),
        ("win32", (3, 12), ""),
        ("win32", (3, 13), "Its wheels for Windows are for Python 3.12 and older, and this one is 3.13."),
        ("linux", (3, 12), "For this system DeepSpeed is only there as source code."),
    ],
)
def test_it_has_wheels_for_windows_and_older_pythons(system: str, python: tuple[int, int], why: str) -> None:
    assert why_no_wheel(system, python) == why


def test_the_project_asks_for_it_on_the_same_pythons() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    limits = re.findall(r"deepspeed==0\.16\.5; sys_platform == 'win32' and python_version < '3\.(\d+)'", project)
    assert limits and {(3, int(limit)) for limit in limits} == {FIRST_PYTHON_WITHOUT}
