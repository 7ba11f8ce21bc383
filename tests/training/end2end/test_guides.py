"""Every command of docs/guides, run as it is written, in a folder with the data that it names.

The commands of a page run one after another, on the runs that those before them made. Trainings get a tiny model and a
tenth of their steps (`SMALL`). `ONLY_CHECKED` names the commands that are not run here; tests/test_docs.py has the
program's own parser read each of them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from core.cli.entry import main
from core.client import wait_for_end
from core.machine.devices.monitor import DeviceMonitor
from core.run_folder.store import RunStore, list_runs
from tests.helpers.launched import MPI_VARIABLES, ROOT
from tests.helpers.wine import PATIENCE
from tests.test_docs import LAUNCHED, fenced_lines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.usefixtures("quick_hosts")]
GUIDES: Final = sorted((ROOT / "docs" / "guides").glob("*.md"))
# Commands that are not run, as regular expressions of their beginning, with the reason.
ONLY_CHECKED: Final = {
    r"srun ": "needs a Slurm cluster: tests/runs/launchers/test_documented_commands.py",
    r".*cuda:": "needs GPUs",
    r"rankdeck machines |.*--machine ": "needs another machine: tests/runs/machines",
    r"rankdeck environment make": "asks a package index for gigabytes",
    r"rankdeck doctor --self-test": "takes half a minute: tests/training/core/doctor",
    r"rankdeck estimate": "times steps for half a minute: tests/training/core/measure/estimate",
    r"rankdeck tune": "times steps for half a minute: tests/training/core/measure/tune",
    r"rankdeck bench": "times several ranks: tests/training/core/measure/bench",
    r"torchrun .*runs/torchrun": "the command of another guide, with a folder",
}
SMALL: Final = shlex.split(
    "--seq-len 16 --eval-every 1000 --set n_layer=1 --set n_head=1 --set n_embd=8 --set sample_tokens=0 --val-samples 8"
)
SCRIPT: Final = """
import sys
for epoch in range(int(sys.argv[sys.argv.index("--epochs") + 1])):
    print(f"epoch {epoch} loss {1 / (epoch + 1):.3f}", flush=True)
"""


def commands(page: Path) -> list[str]:
    """The commands of a page, in their order."""
    return [line for language, line in fenced_lines(page.read_text(encoding="utf-8")) if line and not language]


def reason_not_to_run(command: str) -> str:
    """Why a command is only checked; empty for one that runs."""
    if command.startswith("mpirun ") and shutil.which("mpirun") is None:
        return "needs mpirun"
    if command.startswith("torchrun ") and sys.platform == "win32":
        return "torchrun does not work on Windows"
    return next((why for pattern, why in ONLY_CHECKED.items() if re.match(pattern, command)), "")


def made_small(words: list[str]) -> list[str]:
    """Make a training's model tiny, and give every command a tenth of its steps."""
    words = [
        str(int(word) // 10) if before == "--steps" else word for before, word in zip(["", *words], words, strict=False)
    ]
    return [*words, *(SMALL if "train" in words else [])]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, with what guides name; on a machine without GPUs, for `auto`. Waits for detached runs."""
    with DeviceMonitor() as monitor:
        if any(device.kind == "cuda" for device in monitor.devices()):
            pytest.skip("the folder of runs and the devices are those of a machine without GPUs")
    (tmp_path / "books").mkdir()
    text = "It was the best of times, it was the worst of times.\n" * 400
    (tmp_path / "books" / "one.txt").write_text(text, encoding="utf-8", newline="\n")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8", newline="\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    yield tmp_path
    for run in list_runs(tmp_path / "home"):
        state = wait_for_end(RunStore.open(run.path), PATIENCE * 60)
        assert state.state == "finished", f"{run.path.name} is {state.state}"


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_the_commands_of_a_guide_run(page: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for command in commands(page):
        if reason_not_to_run(command):
            continue
        capfd.readouterr()
        words = made_small(shlex.split(command))
        code = launched(words, folder) if LAUNCHED.match(command) else main(words[1:])
        said = capfd.readouterr()
        assert code == 0, f"{command}\n{said.out}{said.err}"


def launched(words: list[str], folder: Path) -> int:
    """Runs a command under a launcher, with this environment's programs on the path."""
    programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
    env = {**os.environ, **MPI_VARIABLES, "PATH": os.pathsep.join(programs)}
    return subprocess.run(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, timeout=120, check=False).returncode


def test_each_reason_not_to_run_a_command_is_used() -> None:
    all_commands = [command for page in GUIDES for command in commands(page)]
    assert len(all_commands) > 40
    assert [pattern for pattern in ONLY_CHECKED if not any(re.match(pattern, line) for line in all_commands)] == []


def test_every_guide_is_in_the_index() -> None:
    index = (ROOT / "docs" / "guides" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in GUIDES if f"]({page.name})" not in index] == ["README.md"]
