"""Run folders with anything in their files: a damaged one is listed as such, and never takes the others away."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from app.runs.run_scanner import RunScanner
from core.cli import main
from core.processes.identity import ProcessId, is_alive, own
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run

pytestmark = pytest.mark.windows
HUGE = 10**399


@pytest.fixture
def pair(tmp_path: Path, runs_dir: Path) -> tuple[RunStore, RunStore]:
    """A run whose files are damaged, and one that is well."""
    (tmp_path / "text.txt").write_bytes(TEXT)
    return make_run(tmp_path, runs_dir=runs_dir), make_run(tmp_path, runs_dir=runs_dir)


def put(store: RunStore, **changes: Any) -> None:
    values = json.loads(store.state_json.read_text(encoding="utf-8"))
    store.state_json.write_text(json.dumps({**values, **changes}), encoding="utf-8")


@pytest.mark.parametrize(
    "changes",
    [{"created": HUGE}, {"host": {"pid": 1, "started": float("nan")}, "state": "training"}, {"name": "\ud800"}],
    ids=lambda changes: str(changes)[:40],
)
def test_a_state_that_cannot_be_is_damaged_and_the_others_stay(
    pair: tuple[RunStore, RunStore], changes: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = pair
    put(bad, **changes)
    assert main(["runs"]) == 0
    rows = capsys.readouterr().out.splitlines()
    damaged = next(row for row in rows if bad.dir.name in row)
    assert " damaged " in damaged and "state.json" in damaged and len(damaged) < 600
    assert any(good.dir.name in row and "stopped" in row for row in rows)
    assert main(["show", good.dir.name]) == 0
    capsys.readouterr()
    for words in (["show"], ["attach"], ["resume", "--dry-run"], ["stop"]):
        assert main([words[0], bad.dir.name, *words[1:]]) == 2, words
        err = capsys.readouterr().err.splitlines()
        assert err[0] == "The state file cannot be used" and len(err) == 3
    entries = {row.path.name: row.entry for row in RunScanner(bad.dir.parent).scan()}
    assert (entries[bad.dir.name].word, entries[good.dir.name].word) == ("damaged", "stopped")


def test_a_start_time_that_is_not_a_number_is_no_live_process() -> None:
    """Every comparison with NaN is false, "differs by more than a second" too."""
    assert is_alive(own())
    assert not is_alive(ProcessId(own().pid, float("nan")))


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"event": "step", "rank": 0, "step": ' + b"9" * 5000 + b"}",
        b'{"event": "step", "rank": 0, "ts": 1, "step": ' + b"9" * 400 + b', "loss": ' + b"9" * 400 + b"}",
        b'{"event": "step", "rank": 0, "ts": 1, "step": 7, "loss": 1e999, "tokens_per_s": NaN, "epoch": -1}',
        b'{"event": "step", "rank": 0, "ts": 1e300, "step": 1}\n{"event": "step", "rank": 0, "ts": 2e300, "step": 9}',
        b'{"event": "eval", "step": [1], "val_loss": "many"}',
        b'{"event": "eval", "step": 1, "val_loss": [[1]], "val_x": ' + b"9" * 400 + b"}",
        b'{"event": "launch", "devices": 5, "total_steps": "x", "world_size": -1}',
        b'{"event": "launch", "devices": [[1], null], "total_steps": ' + b"9" * 299 + b"}",
        b'{"event": "commit", "checkpoint": {}}',
        b'{"event": "alert", "title": 5, "message": [1]}',
        b'{"event": "\\ud800", "title": "\\udfff"}',
        b'{"event": "sample", "step": null, "text": 5, "prompt": ["x"]}',
        "{}".encode("utf-16"),
        b"\0\0\0",
    ],
    ids=lambda line: repr(line[:40]),
)
def test_a_metrics_line_with_anything_in_it_is_survived(
    pair: tuple[RunStore, RunStore], line: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    store, _ = pair
    store.metrics.write_bytes(line + b"\n" + b'{"event": "eval", "ts": 1, "rank": 0, "step": 20, "val_loss": 2.5}\n')
    for words in (["attach"], ["attach", "--json"], ["show", "--samples"], ["show", "--samples", "--json"]):
        assert main([words[0], store.dir.name, *words[1:]]) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    assert "validation loss 2.5" in out


@pytest.mark.parametrize("command", ["show", "attach", "stop", "resume", "export"])
@pytest.mark.parametrize(
    "name", ["n" * 5000, "n" * 300, "a/" * 3000, "\0", "x\0y", "~" * 5000, "\ud800"], ids=lambda name: ascii(name[:8])
)
@pytest.mark.usefixtures("pair")
def test_a_name_that_no_file_can_have_is_no_run(command: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--to", "csv"] if command == "export" else []
    assert main([command, name, *more]) == 2
    err = capsys.readouterr().err
    assert err.splitlines()[0] == "There is no such run" and len(err) < 1000


LONG = "9" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ["train", "--steps", LONG],
        ["train", "--devices", f"cpu:{LONG}"],
        ["train", "--recipe", LONG],
        ["train", "--model", LONG],
        ["train", "--run-dir", LONG],
        ["train", "--log-file", LONG],
        ["train", "--config", LONG],
        ["train", "--dataset-file", LONG],
        ["show", "x", "--step", LONG],
        ["run", LONG],
        ["recipes", LONG],
    ],
    ids=lambda words: " ".join(words)[:24],
)
def test_a_word_of_thousands_of_letters_is_bad_input(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 3 and len(err) < 5000


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (b"steps = " + b"9" * 5000, "digits"),
        (b"a" + b".a" * 20_000 + b" = 1", "more than 16 parts"),
        (b"steps = " + b"[" * 100_000, "nested"),
        ("steps = 1".encode("utf-16"), "UTF-16"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_a_run_toml_beyond_the_limits_is_bad_input(
    pair: tuple[RunStore, RunStore], text: bytes, cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = pair
    bad.run_toml.write_bytes(text)
    for words in (["show"], ["resume", "--dry-run"]):
        assert main([words[0], bad.dir.name, *words[1:]]) == 2
        err = capsys.readouterr().err
        assert cause in err and "run.toml" in err
    assert main(["runs"]) == 0
    assert main(["train", "--config", str(bad.run_toml)]) == 2
    assert cause in capsys.readouterr().err
    assert main(["show", good.dir.name]) == 0


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202e\u2066\x08\x00\r"


def test_no_command_passes_on_what_controls_a_terminal(
    pair: tuple[RunStore, RunStore], capsys: pytest.CaptureFixture[str]
) -> None:
    """What files and ranks say is shown, and never obeyed; a line break in it does not make a line of its own."""
    store, _ = pair
    evil = f"a{ESCAPES}b\nrun-2  finished  10"
    error = {"title": evil, "cause": evil, "next_step": evil}
    put(
        store, name=evil, phase=evil, fallback=evil, state="failed", error=error, devices=[evil], recipe=evil, mode=evil
    )
    lines = [
        {"event": "sample", "step": evil, "rank": 0, "text": f"{evil}\n\tindented\r\nlast", "prompt": evil},
        {"event": "launch", "devices": [evil], "mode": evil},
        {"event": "alert", "title": evil, "message": evil},
        {"event": "fallback", "reason": evil},
        {"event": "step", "rank": 0, "step": 3, "loss": evil},
    ]
    text = "".join(json.dumps({"ts": 1, "rank": 0, **line}) + "\n" for line in lines)
    store.metrics.write_text(text, encoding="utf-8", newline="\n")
    config = store.run_toml.read_text(encoding="utf-8")
    name = json.dumps(evil)
    store.run_toml.write_text(config.replace('recipe = "minigpt"', f"recipe = {name}"), encoding="utf-8", newline="\n")
    shown = ""
    for words in (["runs"], ["show"], ["show", "--samples"], ["attach"], ["resume", "--dry-run"]):
        main([words[0], *([store.dir.name] if words != ["runs"] else []), *words[1:]])
        out, err = capsys.readouterr()
        shown += out + err
        assert not any(line.startswith("run-2") for line in (out + err).splitlines() if "--samples" not in words)
    assert "owned" in shown and r"\x1b" in shown and r"\u202e" in shown
    assert "\n\tindented\nlast" in shown
    assert not [character for character in shown if _controls(character)]


def _controls(character: str) -> bool:
    return (unicodedata.category(character) == "Cc" and character not in "\n\t") or 0x2066 <= ord(character) <= 0x2069
