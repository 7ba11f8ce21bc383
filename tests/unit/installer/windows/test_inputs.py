"""Inputs of the installer: the list, and what is refused."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from installer.windows.inputs import WINDOW_PACKAGES, BuildError, check_python, read_inputs, sha256

CONSTRAINTS = Path(__file__).resolve().parents[4] / "constraints.txt"


def test_the_list_names_each_input_with_its_hash() -> None:
    inputs = read_inputs()
    assert inputs.pythons
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in (*inputs.pythons, inputs.launcher_sha256))
    assert all("windows" in name for name in inputs.pythons.values())
    assert "Lib/site-packages/*" in inputs.left_out_of_python


def test_the_windows_packages_are_those_that_the_project_is_tested_with() -> None:
    pinned = set(CONSTRAINTS.read_text(encoding="utf-8").replace("-", "_").lower().splitlines())
    lines = [line for line in WINDOW_PACKAGES.read_text(encoding="utf-8").splitlines() if "==" in line]
    assert len(lines) >= 10
    for line in lines:
        assert line.removesuffix(" \\").replace("-", "_").lower() in pinned
    assert not any(line.startswith("torch") for line in lines)


def test_a_known_file_is_accepted_and_any_other_is_refused(tmp_path: Path) -> None:
    python = tmp_path / "python.tar.gz"
    python.write_bytes(b"a runtime")
    known = {hashlib.sha256(b"a runtime").hexdigest(): "python.tar.gz"}
    assert sha256(python) in known
    check_python(python, known, unverified=False)
    python.write_bytes(b"another runtime")
    with pytest.raises(BuildError, match=r"which inputs\.toml does not list") as refused:
        check_python(python, known, unverified=False)
    assert "--unverified" in refused.value.next_step
    check_python(python, known, unverified=True)


def test_a_folder_has_no_hash_and_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="is a folder"):
        check_python(tmp_path, {}, unverified=False)
    check_python(tmp_path, {}, unverified=True)
    with pytest.raises(BuildError, match=r"There is no .*gone\.zip"):
        check_python(tmp_path / "gone.zip", {}, unverified=True)
