"""Runs of older versions (tests/helpers/old_runs): listed, shown, opened, exported and resumed where they lie."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.launch.resume_dialog import ResumeDialog
from core.cli import main
from core.cli.parser import parse
from core.launch.command_line import request_from_arguments
from core.run_folder.store import RunStore
from tests.helpers.window_fixture import OFFSCREEN_NOISE, OpenWindow

pytestmark = [OFFSCREEN_NOISE, pytest.mark.windows, pytest.mark.timeout(200)]
OLD_RUNS = Path(__file__).resolve().parents[2] / "helpers" / "old_runs"
SOON_MS = 10_000
trains = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="trains for real, and there is no torch")


@pytest.fixture(params=["run_of_0_1", "run_before_checkpoints"])
def store(request: pytest.FixtureRequest, tmp_path: Path, runs_dir: Path) -> RunStore:
    """A copy of one of them among this test's runs, and its dataset in `tmp_path`."""
    with zipfile.ZipFile(OLD_RUNS / f"{request.param}.zip") as archive:
        archive.extractall(tmp_path)
    return RunStore.open((tmp_path / "run").rename(runs_dir / request.param))


def rankdeck(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """A command to its end, and what it printed on stdout; on stderr where that is a message."""
    code = main(arguments)
    out, err = capsys.readouterr()
    assert code == 0, err
    return out or err


def test_it_is_listed_and_shown(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    (listed,) = json.loads(rankdeck(capsys, "runs", "--json"))
    assert (listed["run_id"], listed["state"], listed["checkpoint"]) == (store.dir.name, "stopped", 7)
    shown = json.loads(rankdeck(capsys, "show", store.dir.name, "--json"))
    assert [entry["number"] for entry in shown["checkpoints"]] == [6, 7]
    assert shown["config"]["keep_checkpoints"] == 2 and "--keep-checkpoints 2" in shown["command"]
    assert f"Stopped at step {shown['step']}" in rankdeck(capsys, "attach", store.dir.name)


@pytest.mark.parametrize("flag", ["--checkpoint", "--generation"])
def test_its_weights_are_exported(
    flag: str, store: RunStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "weights.safetensors"
    said = rankdeck(capsys, "export", store.dir.name, "--to", "safetensors", flag, "6", "--out", str(out))
    assert "checkpoint 6, step 60" in said
    assert out.stat().st_size > 10_000


def test_its_settings_start_another_run(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    """The old flag and the old key of a config file mean what they meant."""
    main(["train", "--help"])
    assert "generation" not in capsys.readouterr().out
    for arguments in (["--config", str(store.run_toml)], ["--keep-generations", "2"]):
        assert request_from_arguments(parse(["train", *arguments])).config.keep_checkpoints == 2


@trains
@pytest.mark.slow
@pytest.mark.usefixtures("quick_hosts")
@pytest.mark.parametrize("back", [False, True])
def test_it_is_resumed_in_its_own_folder(
    back: bool, store: RunStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = ["--checkpoint", "6"] if back else []
    text = str(tmp_path / "text.txt")
    said = rankdeck(capsys, "resume", store.dir.name, "--dataset-file", text, "--steps", "75", *choice)
    assert f"(checkpoint {6 if back else 7})" in said and "Step 70: checkpoint 8 saved" in said
    assert not (store.dir / "checkpoints").exists()
    folder = store.dir / "generations"
    newest = max(int(path.name) for path in folder.iterdir() if path.name.isdigit())
    manifest = json.loads((folder / str(newest) / "manifest.json").read_bytes())
    assert (manifest["checkpoint"], manifest["step"]) == (newest, 75)
    state, ledger = (json.loads((store.dir / name).read_bytes()) for name in ("state.json", "chunk_tracker_state.json"))
    assert (state["state"], state["checkpoint"], ledger["checkpoint"]) == ("finished", newest, newest)
    assert (folder / "7.aside").is_dir() == back
    assert rankdeck(capsys, "show", store.dir.name).count("(step 75)") == 1


def test_the_window_shows_it(store: RunStore, open_window: OpenWindow, qtbot: QtBot) -> None:
    window = open_window()
    window.showing.show(store.dir)
    qtbot.waitUntil(lambda: window.data.is_caught_up and window.data.series.rank(0).rows > 60, timeout=SOON_MS)
    assert window.data.state is not None and window.data.state.state == "stopped"
    window.window.tabs.setCurrentWidget(window.window.tabs.ledger)
    qtbot.waitUntil(lambda: "checkpoint 7" in window.window.tabs.ledger.headline.text(), timeout=SOON_MS)
    window.window.actions_.resume.trigger()
    dialog = window.window.findChild(ResumeDialog)
    assert isinstance(dialog, ResumeDialog)
    dialog.choose(str(store.dir))
    dialog.form.data.setText(str(store.dir.parents[1] / "text.txt"))
    dialog.form.data.textEdited.emit(dialog.form.data.text())
    qtbot.waitUntil(lambda: "(checkpoint 7)" in dialog.message.toPlainText(), timeout=SOON_MS)
    assert [dialog.form.checkpoint.itemText(row).split()[1] for row in range(2)] == ["7", "6"]
    dialog.reject()
