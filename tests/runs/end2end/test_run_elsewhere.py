"""A run's `run.toml` starts it again: from a folder that was moved, with data that lies elsewhere now."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import time
import tomllib
from pathlib import Path

import pytest

from core.cli import main
from core.run_folder.store import RunStore, list_runs
from tests.helpers.hosted_run import curve
from tests.helpers.made_runs import TEXT, make_run, tree

SMALL = shlex.split("--seq-len 16 --batch-size 4 --eval-every 1000 --set n_layer=1 --set n_head=2 --set n_embd=16")


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def finished_curve(store: RunStore) -> dict[int, float]:
    """The losses of a run that has finished. One that was stopped before its first step ends with 0 as well."""
    state = store.stored_state()
    assert state.state == "finished", (state, (store.logs / "host.log").read_text(encoding="utf-8"))
    return curve(store)


@pytest.mark.second_tier
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("quick_hosts")
def test_moved_with_its_data_it_does_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = tmp_path / "hier", tmp_path / "dort drüben"
    here.mkdir()
    there.mkdir()
    (here / "text.txt").write_bytes(TEXT)
    monkeypatch.chdir(here)
    words = ["train", "--devices", "cpu:0", "--dataset-file", "text.txt", "--steps", "5", "--run-dir", "first", *SMALL]
    assert main(words) == 0, said(capsys)
    first = RunStore.open(here / "first")
    assert tomllib.loads(first.run_toml.read_text(encoding="utf-8"))["dataset_file"] == str(here / "text.txt"), (
        "absolute"
    )
    losses = finished_curve(first)
    deadline = time.monotonic() + 20
    while first.is_locked() and time.monotonic() < deadline:
        time.sleep(0.02)  # the host says that the run is finished, and then ends itself

    shutil.move(here / "first", there / "copied run")
    shutil.move(here / "text.txt", there / "the text.txt")
    monkeypatch.chdir(tmp_path)
    config = there / "copied run" / "run.toml"
    before = tree(tmp_path)
    capsys.readouterr()
    assert main(["train", "--config", str(config)]) == 2
    title, cause, next_step = said(capsys)
    assert title == "The dataset is missing" and str(here / "text.txt") in cause and str(config) in cause
    assert "--dataset-file" in next_step
    assert tree(tmp_path) == before

    assert main(["train", "--config", str(config), "--dataset-file", str(there / "the text.txt")]) == 0, said(capsys)
    (again,) = list_runs(Path(str(tmp_path / "Läufe mit Raum")))
    store = RunStore.open(again.path)
    assert finished_curve(store) == losses, "the same seed and settings, so the same numbers"
    assert store.config().replace(dataset_file="text") == RunStore.open(config.parent).config().replace(
        dataset_file="text"
    )


@pytest.mark.windows
@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("dataset_file", "Z:\\\\data\\\\text.txt", "Z:\\data\\text.txt"),
        ("dataset_file", "/home/nobody here/text.txt", "text.txt"),
        ("recipe", "/home/nobody here/my-model", "my-model"),
        ("devices", "GPU-12345678-aaaa-bbbb-cccc-123456789abc", "GPU-12345678"),
    ],
)
def test_what_only_the_other_machine_has_is_named(
    tmp_path: Path, runs_dir: Path, capsys: pytest.CaptureFixture[str], setting: str, value: str, words: str
) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT)
    store = make_run(tmp_path, checkpoints=0)
    text = re.sub(rf"(?m)^{setting} = (\[[^\]]*\]|.*)\n", "", store.run_toml.read_text(encoding="utf-8"))
    shown = f'["{value}"]' if setting == "devices" else f'"{value}"'
    store.run_toml.write_text(f"{setting} = {shown}\n{text}", encoding="utf-8", newline="\n")
    before = tree(tmp_path)
    assert main(["train", "--config", str(store.run_toml)]) == 2
    error = said(capsys)
    assert len(error) == 3 and words in " ".join(error), error
    assert str(store.dir) + "/Z:" not in " ".join(error)
    assert tree(tmp_path) == before and json.loads(store.state_json.read_text(encoding="utf-8"))["state"] == "stopped"
    assert list(runs_dir.iterdir()) == []
