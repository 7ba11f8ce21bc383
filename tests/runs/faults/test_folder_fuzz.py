"""Run folders with random damage: every command ends with a code and a message, and other runs are not affected.

`RANKDECK_FUZZ_ROUNDS` and `RANKDECK_FUZZ_SEED` try more and other damage than a test run has time for.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from app.models.run_list import RunListModel
from app.models.run_scanner import RunScanner
from app.run_data.metrics_batch import parse_lines
from core.cli import main
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run

pytestmark = pytest.mark.windows

ROUNDS: Final = int(os.environ.get("RANKDECK_FUZZ_ROUNDS", "6"))
SEED: Final = int(os.environ.get("RANKDECK_FUZZ_SEED", "17"))
JSON_FILES: Final = ("state.json", "chunk_tracker_state.json", "host.json", "host.spawned.json", "metrics.jsonl")
FILES: Final = (*JSON_FILES, "run.toml", "checkpoints/2/manifest.json", "checkpoints/2/chunk_tracker_state.json")
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**299, 10**400, 0.5, -0.0, 1e308, -1e18, 5e-324),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "x" * 5000, "\0", "\x1b[2J", "\ud800", "../..", "/", "NaN"),
    *(
        [],
        {},
        [[]],
        [None],
        {"a": {"b": []}},
        [1] * 1000,
        {"pid": 1, "started": float("nan")},
        {"": ""},
        "cpu:0",
        "1e999",
    ),
)
LINES: Final[tuple[dict[str, Any], ...]] = (
    {
        "event": "launch",
        "mode": "ddp",
        "world_size": 2,
        "total_steps": 100,
        "devices": ["cpu:0"],
        "resumed_from": {"0": 5},
    },
    {"event": "step", "step": 20, "loss": 2.0, "tokens_per_s": 5.0, "epoch": 0},
    {"event": "eval", "step": 20, "val_loss": 2.5, "val_return": 1.0},
    {"event": "sample", "step": 20, "prompt": "a", "text": "b"},
    {"event": "alert", "title": "t", "message": "m"},
    {"event": "balance", "step": 1, "text": "x"},
    {"event": "commit", "step": 20, "checkpoint": 1},
    {"event": "device", "uuid": "cpu:0", "util": 5},
    {"event": "merge", "step": 1, "ranks": [0, 1]},
)


@pytest.fixture
def runs(tmp_path: Path, runs_dir: Path) -> tuple[RunStore, RunStore]:
    """One run to damage and one that stays as it is."""
    (tmp_path / "text.txt").write_bytes(TEXT)
    bad, good = make_run(tmp_path, runs_dir=runs_dir), make_run(tmp_path, runs_dir=runs_dir)
    host = {"pid": os.getpid(), "started": 1.0, "port": 5, "token": "t", "attempt": 1}
    for name in ("host.json", "host.spawned.json"):
        (bad.dir / name).write_text(json.dumps(host), encoding="utf-8")
    for store in (bad, good):
        text = "".join(json.dumps({"ts": 1.0, "rank": 0, "attempt": 1, **line}) + "\n" for line in LINES)
        store.metrics.write_text(text, encoding="utf-8", newline="\n")
    return bad, good


@pytest.mark.parametrize(
    "number", [0, 1, *(pytest.param(number, marks=pytest.mark.second_tier) for number in range(2, ROUNDS))]
)
def test_no_damage_goes_unnoticed_or_spreads(
    number: int, runs: tuple[RunStore, RunStore], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = runs
    chance = random.Random(SEED * 1_000_003 + number)
    whole = tmp_path / "whole"
    shutil.copytree(bad.dir, whole)
    for _ in range(6):
        shutil.rmtree(bad.dir)
        shutil.copytree(whole, bad.dir)
        names = chance.sample(FILES, chance.choice((1, 1, 2)))
        done = [f"{name}: {damage(bad.dir / name, chance)}" for name in names]
        check(bad, good, " and ".join(done), capsys)


def check(bad: RunStore, good: RunStore, done: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = bad.dir.name
    data = ["--dataset-file", str(bad.dir.parent.parent / "text.txt")]
    for words in (
        ["runs"],
        ["runs", "--json"],
        ["show", name],
        ["show", name, "--json"],
        ["show", name, "--samples"],
        ["attach", name],
        ["resume", name, "--dry-run"],
        ["resume", str(bad.ledger), "--dry-run", *data],
    ):
        if words[0] == "attach" and _is_live(bad):
            continue  # that would be waited for
        code = main(words)
        out, err = capsys.readouterr()
        assert code in (0, 1, 2, 3), f"{words} after {done}: {code}"
        assert "Rankdeck failed unexpectedly" not in err and "Traceback" not in out + err, (
            f"{words} after {done}: {err}"
        )
        assert code == 0 or len(err.splitlines()) >= 3, f"{words} after {done}: {err}"
        if words[0] == "runs":
            assert code == 0 and good.dir.name in out, f"{words} after {done}"
    rows = {row.path: row for row in RunScanner(bad.dir.parent).scan()}
    assert rows[good.dir].entry.word == "stopped", done
    model = RunListModel()
    model.show(list(rows.values()))
    for row in range(model.rowCount()):
        for role in (0, 3, *range(256, 264)):
            model.data(model.index(row), role)
    if bad.metrics.is_file():
        parse_lines(bad.metrics.read_bytes().split(b"\n"))


def _is_live(store: RunStore) -> bool:
    try:
        return store.state().is_live
    except Exception:  # whatever it is, attach has to name it
        return False


# --- damage ----------------------------------------------------------------------------------------------


def damage(path: Path, chance: random.Random) -> str:
    """Damages a file in one way, and says how."""
    ways: list[Callable[[Path, random.Random], str]] = [in_bytes, as_a_whole]
    ways += [in_toml] * 4 if path.suffix == ".toml" else [in_values] * 5
    return chance.choice(ways)(path, chance)


def in_values(path: Path, chance: random.Random) -> str:
    """Puts another value in a place of the document, or takes a key away."""
    lines = (
        path.read_text(encoding="utf-8").split("\n") if path.suffix == ".jsonl" else [path.read_text(encoding="utf-8")]
    )
    at = chance.randrange(max(1, len(lines) - 1))
    document = json.loads(lines[at])
    holders: list[Any] = [document]
    for holder in holders:
        inner = holder.values() if isinstance(holder, dict) else holder
        holders += [item for item in inner if isinstance(item, dict | list) and item]
    holder = chance.choice(holders)
    key = chance.choice(sorted(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
    value = chance.choice(VALUES)
    if chance.random() < 0.15:
        del holder[key]
    elif chance.random() < 0.1 and isinstance(holder, dict):
        holder[chance.choice(("version", "unknown", "\ud800", "type"))] = value
    else:
        holder[key] = value
    text = json.dumps(document)
    if chance.random() < 0.1:
        text = text.replace("null", "[" * 5000 + "]" * 5000, 1)
    lines[at] = text
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    return f"{key} = {value!r:.40}"


def in_toml(path: Path, chance: random.Random) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    at = chance.randrange(len(lines))
    key = lines[at].partition("=")[0].strip() or "steps"
    texts = [
        "9" * 5000,
        "9" * 299,
        "-1",
        "nan",
        "inf",
        "1e308",
        '""',
        '"x"',
        "[]",
        "[[]]",
        "true",
        "{a = 1}",
        "1979-05-27",
    ]
    texts += [
        '"' + "x" * 5000 + '"',
        '"\\u0000"',
        '"\\u001b[2J"',
        "[" * 500 + "]" * 500,
        "{a" + ".a" * 3000 + " = 1}",
        "0x_",
    ]
    value = chance.choice(texts)
    lines[at] = chance.choice(
        (f"{key} = {value}", f"{key}{value}", f"[{key}]", f"zz = {value}", f"[options]\nq = {value}")
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return lines[at][:60]


def in_bytes(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 3, 30))):
        data[chance.randrange(len(data))] = chance.choice(
            (0, 0xFF, 0x1B, 0x22, 0x5B, 0x7B, 0x39, chance.randrange(256))
        )
    path.write_bytes(data)
    return "other bytes"


def as_a_whole(path: Path, chance: random.Random) -> str:
    data = path.read_bytes()
    contents = {
        "empty": b"",
        "cut": data[: chance.randrange(len(data))],
        "twice": data + data,
        "UTF-16": data.decode("utf-8").encode("utf-16"),
        "deep": b"[" * 100_000,
        "long": b'{"a": ' + b"9" * 5000 + b"}\n",
        "zeros": bytes(5000),
        "scalar": b"5\n",
    }
    way = chance.choice((*contents, "folder", "missing"))
    path.unlink()
    if way == "folder":
        path.mkdir()
    elif way != "missing":
        path.write_bytes(contents[way])
    return way
