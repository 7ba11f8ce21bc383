"""`rankdeck environment make`: the sizes before anything is made, and the folders that are remembered."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.cli.entry import main
from core.environments import wanted as wanted_module
from core.environments.places import current_places
from core.paths import HUB_VARIABLES
from tests.helpers.kept_folders import nothing_chosen
from tests.helpers.small_wheels import TORCH, make_wheel

pytestmark = [pytest.mark.windows, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name in HUB_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(wanted_module, "find_dependencies", lambda: ("torch>=2.7",))
    with nothing_chosen():
        yield


def test_a_dry_run_says_the_sizes_and_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheels, drive = tmp_path / "wheels", tmp_path / "drive"
    wheels.mkdir()
    version = "2.13.0" if sys.platform == "win32" else "2.13.0+cpu"
    make_wheel(wheels, "torch", version, TORCH.replace("2.13.0", version), ballast=2_000_000)
    before = current_places()
    command = ["environment", "make", "--build", "cpu", "--wheels", str(wheels), "--drive", str(drive), "--dry-run"]
    assert main(command) == 0
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert "PyTorch for the CPU. It was asked for." in text and "Nothing is downloaded. Installed: about " in text
    assert " free on " in text
    assert current_places() == before and not drive.exists(), "nothing was made or remembered"
