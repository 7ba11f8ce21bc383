"""Where the installed program is, and what is not one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import RankdeckError
from core.updates.installed import Installation, find_installation, go_back

OWN, OLDER, OLDEST = "0.2.0-bbbbbbbbbb", "0.1.1-aaaaaaaaaa", "0.1.0-cccccccccc"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    for number, name in enumerate((OLDEST, OLDER, OWN)):
        folder = tmp_path / "versions" / name
        (folder / "python").mkdir(parents=True)
        (folder / "launchers").mkdir()
        os.utime(folder, (1_700_000_000 + number, 1_700_000_000 + number))
    (tmp_path / "versions" / "0.3.0-dddddddddd.partial").mkdir()
    (tmp_path / "Rankdeck.exe").touch()
    return tmp_path


def test_an_installed_version_knows_its_program_and_the_version_before(program: Path) -> None:
    found = find_installation(program / "versions" / OWN / "python")
    assert found == Installation(program, OWN, OLDER) and found.previous_version == "0.1.1"


def test_a_checkout_or_an_environment_is_no_installation(program: Path, tmp_path: Path) -> None:
    assert find_installation(tmp_path / ".venv") is None
    (program / "Rankdeck.exe").unlink()
    assert find_installation(program / "versions" / OWN / "python") is None
    assert find_installation() is None


def test_without_a_version_before_there_is_no_way_back(program: Path) -> None:
    for previous in ("", OLDER):  # the second has no Python
        with pytest.raises(RankdeckError, match="not on this PC any more"):
            go_back(Installation(program, OWN, previous))
    assert Installation(program, OWN).previous_version == ""
