"""The job for a Windows runner: what it runs exists, and it takes the inputs that the installer knows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.machine.packages import find_dependencies
from installer.windows.build import parser
from installer.windows.inputs import read_inputs

ROOT = Path(__file__).resolve().parents[4]
JOB = ROOT / ".github" / "workflows" / "windows.yml"

pytestmark = pytest.mark.skipif(not JOB.is_file(), reason="an installed copy has no jobs")


@pytest.fixture
def job() -> dict[str, Any]:
    values = yaml.safe_load(JOB.read_text(encoding="utf-8"))
    assert isinstance(values, dict)
    return dict(values["jobs"]["installer"])


def commands(job: dict[str, Any]) -> list[list[str]]:
    text = "\n".join(step.get("run", "") for step in job["steps"]).replace("\\\n", " ")
    return [words for line in text.splitlines() if (words := shlex.split(line))]


def test_it_bundles_a_python_that_the_installer_knows(job: dict[str, Any]) -> None:
    assert job["env"]["RUNTIME"] in read_inputs().pythons.values()


def test_it_builds_with_arguments_that_there_are(job: dict[str, Any]) -> None:
    builds = [words for words in commands(job) if words[:2] == ["python", "installer/windows/build.py"]]
    assert len(builds) == 3
    for words in builds:
        options = parser().parse_args(words[2:])
        assert str(options.python) == "$RUNTIME" and not options.unverified
    (smoke,) = [words for words in commands(job) if words[:2] == ["python", "installer/windows/smoke.py"]]
    known = re.findall(r'add_argument\("(--\w+)"', (ROOT / smoke[1]).read_text(encoding="utf-8"))
    assert {word for word in smoke if word.startswith("--")} <= set(known)


def test_the_wheels_are_all_that_a_training_environment_needs(job: dict[str, Any]) -> None:
    (download,) = [words for words in commands(job) if words[:4] == ["python", "-m", "pip", "download"]]
    named = {re.split(r"[^\w-]", line)[0].lower() for line in find_dependencies()}
    window = {"pyside6-essentials", "pyqtgraph", "deepspeed"}
    assert {word.lower() for word in download} >= named - window
