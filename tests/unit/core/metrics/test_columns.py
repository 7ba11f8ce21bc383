from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
import sys
import threading
from array import array
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.metrics.columns import ColumnsWriter, is_current, rebuild
from core.metrics.metrics_file import MetricsWriter
from core.run_folder.rebuild_columns import main
from core.run_folder.store import RunStore

pytestmark = pytest.mark.windows


class Host:
    """A run folder whose metrics and columns are appended to as a host does."""

    def __init__(self, run_dir: Path) -> None:
        self.dir = run_dir
        run_dir.mkdir(exist_ok=True)
        self.open()

    def open(self) -> None:
        self.metrics = MetricsWriter(self.dir / "metrics.jsonl")
        self.columns = ColumnsWriter(self.dir)
        assert self.columns.problem is None

    def say(self, *values: dict[str, Any]) -> None:
        lines = [json.dumps(value).encode() for value in values]
        self.columns.append(lines, list(values), self.metrics.append(lines))

    def killed(self) -> None:
        """What was not flushed is lost; nothing is closed in order."""
        self.metrics.close()

    def close(self) -> None:
        self.columns.close()
        self.metrics.close()


@pytest.fixture
def host(tmp_path: Path) -> Any:
    made = Host(tmp_path / "run ä")
    yield made
    made.close()


def step(rank: int, number: int, **values: Any) -> dict[str, Any]:
    return {"ts": 1.0 * number, "event": "step", "rank": rank, "attempt": 1, "step": number, **values}


def index(run_dir: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run_dir / "columns" / "index.json").read_bytes())
    return document


def column(run_dir: Path, group: str, name: str) -> list[float]:
    entry = index(run_dir)["groups"][group]
    stem = entry.get("files", {}).get(name, name)
    values = array("d")
    values.frombytes((run_dir / "columns" / entry["folder"] / f"{stem}.f64").read_bytes())
    assert len(values) >= entry["rows"]
    return list(values[: entry["rows"]])


def snapshot(run_dir: Path) -> dict[str, dict[str, Any]]:
    """Everything a reader may look at, NaN as text so that equal is equal."""
    found: dict[str, dict[str, Any]] = {}
    for group, entry in index(run_dir)["groups"].items():
        found[group] = {name: [repr(v) for v in column(run_dir, group, name)] for name in sorted(entry["names"])}
    events = run_dir / "columns" / "events.jsonl"
    data = events.read_bytes() if events.exists() else b""
    found["events"] = {"lines": data[: index(run_dir)["events"]["bytes"]].splitlines()}
    return found


def test_each_kind_of_line_goes_to_its_group(host: Host) -> None:
    host.say(
        {"ts": 0.5, "event": "launch", "rank": -1, "attempt": 1, "resumed_from": None},
        step(0, 1, loss=3.5, lr=0.1),
        step(1, 1, loss=3.25, lr=0.1),
        {"ts": 2.0, "event": "device", "rank": -1, "attempt": 1, "uuid": "GPU-1/2:x", "power_w": 99.5, "name": "card"},
        {"ts": 2.0, "event": "device", "rank": -1, "attempt": 1, "cpu_percent": 5},
        {"ts": 3.0, "event": "eval", "rank": 0, "attempt": 1, "step": 1, "val_loss": 2.5},
        step(0, 2, loss=3.0, lr=0.2),
    )
    host.close()
    assert column(host.dir, "rank0", "loss") == [3.5, 3.0]
    assert column(host.dir, "rank1", "loss") == [3.25]
    assert column(host.dir, "rank0", "step") == [1, 2]
    assert column(host.dir, "device/GPU-1/2:x", "power_w") == [99.5]
    assert column(host.dir, "device/host", "cpu_percent") == [5]
    assert column(host.dir, "eval", "val_loss") == [2.5]
    groups = index(host.dir)["groups"]
    assert groups["rank0"]["names"] == ["ts", "step", "loss", "lr"]
    assert groups["device/GPU-1/2:x"]["names"] == ["ts", "power_w"]
    assert groups["device/GPU-1/2:x"]["folder"] == "device_GPU-1_2_x"
    events = (host.dir / "columns" / "events.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["event"] for line in events] == ["launch", "eval"]
    assert index(host.dir)["source_bytes"] == (host.dir / "metrics.jsonl").stat().st_size
    assert is_current(host.dir)


def test_what_is_no_number_is_nan(host: Host) -> None:
    host.say(
        step(0, 1, loss=None, nonfinite=["loss"], note="text", flag=True),
        step(0, 2, loss=1.5, new=7),
        step(0, 3, loss="1.5", new=10**400, other=[1]),
        step(0, 4, loss=False, new=-(10**400)),
    )
    host.close()
    assert [repr(v) for v in column(host.dir, "rank0", "loss")] == ["nan", "1.5", "nan", "nan"]
    assert [repr(v) for v in column(host.dir, "rank0", "new")] == ["nan", "7.0", "inf", "-inf"]
    assert index(host.dir)["groups"]["rank0"]["names"] == ["ts", "step", "loss", "new"]


def test_a_name_that_comes_late_is_nan_before(host: Host) -> None:
    for number in range(1, 601):
        host.say(step(0, number))
        if number == 300:
            host.columns.flush()
    host.say(step(0, 601, late=5.0))
    host.columns.flush()
    for number in range(602, 800):
        host.say(step(0, number, late=float(number)))
    host.close()
    late = column(host.dir, "rank0", "late")
    assert all(math.isnan(v) for v in late[:600])
    assert late[600:] == [5.0, *map(float, range(602, 800))]


def test_a_resumed_attempt_takes_back_what_it_trains_again(host: Host) -> None:
    for number in range(1, 701):
        host.say(step(0, number, loss=1.0), step(1, number, loss=1.0))
        if number % 100 == 0:
            host.say({"ts": 1.0, "event": "eval", "rank": 0, "attempt": 1, "step": number, "val_loss": 1.0})
    host.say({"event": "launch", "rank": -1, "attempt": 2, "ts": 1.0, "resumed_from": {"0": 300, "1": 520, "7": 1}})
    for number in range(301, 601):
        host.say(step(0, number, loss=2.0))
    host.close()
    assert column(host.dir, "rank0", "step") == list(range(1, 601))
    assert column(host.dir, "rank0", "loss") == [1.0] * 300 + [2.0] * 300
    assert column(host.dir, "rank1", "step") == list(range(1, 521))
    assert column(host.dir, "eval", "step") == [100, 200, 300, 400, 500]


def lines_of_a_life(chance: random.Random) -> list[dict[str, Any]]:
    """A run with several attempts, ranks, evaluations, names that come and go."""
    at = {0: 0, 1: 0}
    found: list[dict[str, Any]] = []
    for _ in range(1500):
        rank = chance.randrange(2)
        at[rank] += 1
        found.append(step(rank, at[rank], loss=chance.random()))
        if chance.random() < 0.3:
            found[-1]["grad_norm"] = chance.choice([None, 1.0, 2])
        if chance.random() < 0.02:
            found.append({"ts": 1, "event": "eval", "rank": rank, "attempt": 1, "step": at[rank], "val_loss": 1.0})
        if chance.random() < 0.02:
            found.append({"ts": 1, "event": "device", "rank": -1, "attempt": 1, "uuid": "cpu:0", "power_w": 1.5})
        if chance.random() < 0.004:
            at = {rank: chance.randrange(step + 1) for rank, step in at.items()}
            resumed = {str(rank): step for rank, step in at.items()}
            found.append({"ts": 1, "event": "launch", "rank": -1, "attempt": 1, "resumed_from": resumed})
    return found


@pytest.mark.parametrize("seed", range(6))
def test_written_live_killed_or_rebuilt_columns_are_the_same(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    life = lines_of_a_life(chance)
    live = Host(tmp_path / "live")
    while life:
        count = chance.randrange(1, 200)
        live.say(*life[:count])
        del life[:count]
        action = chance.random()
        if action < 0.3:
            live.columns.flush()
        elif action < 0.5:
            # Rows reach the disk, the index does not: what a kill in the middle of a flush leaves.
            live.columns._columns.write()
            live.killed()
            live.open()
        elif action < 0.6:
            live.killed()
            live.open()
    live.close()
    written = snapshot(live.dir)
    rebuild(live.dir)
    assert snapshot(live.dir) == written
    assert is_current(live.dir)


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: shutil.rmtree(run / "columns"),
        lambda run: (run / "columns" / "index.json").unlink(),
        lambda run: (run / "columns" / "index.json").write_bytes(b'{"format"'),
        lambda run: (run / "columns" / "index.json").write_bytes(b"[]"),
        lambda run: (run / "columns" / "index.json").write_bytes(json.dumps(index(run) | {"version": 3}).encode()),
        lambda run: (run / "columns" / "rank0" / "loss.f64").unlink(),
        lambda run: (run / "columns" / "rank0" / "loss.f64").write_bytes(b"short"),
        lambda run: (run / "columns" / "events.jsonl").write_bytes(b""),
    ],
)
def test_damaged_columns_are_stale_and_made_again_on_opening(host: Host, damage: Any) -> None:
    host.say({"event": "launch", "rank": -1, "attempt": 1, "ts": 0.0, "resumed_from": None})
    host.say(*[step(0, number, loss=1.0) for number in range(1, 400)])
    host.close()
    before = snapshot(host.dir)
    damage(host.dir)
    assert not is_current(host.dir)
    host.open()
    assert is_current(host.dir)
    assert snapshot(host.dir) == before


def test_columns_of_another_file_are_stale(host: Host) -> None:
    host.say(step(0, 1, loss=1.0))
    host.close()
    path = host.dir / "metrics.jsonl"
    text = path.read_bytes()
    path.write_bytes(text.replace(b"1.0", b"2.0"))
    assert not is_current(host.dir)
    path.write_bytes(text[:-5])
    assert not is_current(host.dir)
    path.write_bytes(text + text)
    assert is_current(host.dir)


def test_columns_of_version_1_are_read_and_continued(host: Host) -> None:
    """They had minima and maxima in files of their own and the rows of a bin in the index."""
    host.say(*[step(0, number, loss=1.0) for number in range(1, 600)])
    host.close()
    document = index(host.dir) | {"version": 1, "bin": 256}
    (host.dir / "columns" / "index.json").write_text(json.dumps(document), encoding="utf-8")
    (host.dir / "columns" / "rank0" / "loss.minmax.f64").write_bytes(bytes(32))
    assert is_current(host.dir)
    host.open()
    host.say(step(0, 600, loss=2.0, **{"loss.minmax": 3.0}))
    host.close()
    assert column(host.dir, "rank0", "loss") == [1.0] * 599 + [2.0]
    assert column(host.dir, "rank0", "loss.minmax")[-1] == 3.0 and index(host.dir)["version"] == 2


@pytest.mark.parametrize("rows", [0, 1, 4, 5, 9])
def test_steps_are_taken_back_from_the_first_that_is_past(
    host: Host, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Over the seams of what is read at a time; a step that is not a number is not past."""
    monkeypatch.setattr("core.metrics.column_group._SLICE_ROWS", 4)
    host.say(*[step(0, n, loss=1.0) | ({"step": None} if n == 3 else {}) for n in range(1, 10)])
    host.say({"event": "launch", "rank": -1, "attempt": 2, "ts": 1.0, "resumed_from": {"0": rows}})
    host.close()
    assert len(column(host.dir, "rank0", "loss")) == rows


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    good = json.dumps(step(0, 1, loss=1.0)).encode()
    (tmp_path / "metrics.jsonl").write_bytes(b"\n".join([b"{", good, b"", b"[1]", b'{"a":1}', b"\xff", good]) + b"\n{")
    rebuild(tmp_path)
    assert column(tmp_path, "rank0", "loss") == [1.0, 1.0]
    assert is_current(tmp_path)


def test_strange_names_get_files_of_their_own(host: Host) -> None:
    names = ["train/loss", "train:loss", "Loss", "loss", "LOSS", "loss~2", "CON", "nul", "x.minmax", "x", "ä", ""]
    names += ["n" * 300, "../up", ".dot"]
    host.say(step(0, 1, **{name: float(number) for number, name in enumerate(names)}))
    host.close()
    for number, name in enumerate(names):
        assert column(host.dir, "rank0", name) == [float(number)]
    folder = host.dir / "columns" / "rank0"
    assert len(list(folder.iterdir())) == len(names) + 2
    assert not list(host.dir.glob("up*"))


def test_a_script_that_invents_names_does_not_fill_the_disk(host: Host) -> None:
    host.say(step(0, 1, **{f"name{n}": 1.0 for n in range(1500)}))
    host.close()
    assert len(index(host.dir)["groups"]["rank0"]["names"]) == 1000
    assert column(host.dir, "rank0", "step") == [1]


def test_ranks_of_any_kind_do_no_harm(host: Host) -> None:
    host.say(step(0, 1), {"event": "step", "ts": 1.0}, {"event": "step", "rank": [1], "ts": 1.0})
    host.say({"event": "step", "rank": "a", "ts": 1.0}, {"event": "launch", "resumed_from": {"0": "x"}})
    host.close()
    assert column(host.dir, "rank0", "ts") == [1.0, 1.0]


def test_a_disk_that_refuses_does_not_stop_the_run(host: Host) -> None:
    host.say(step(0, 1, loss=1.0))
    host.columns.flush()
    shutil.rmtree(host.dir / "columns" / "rank0")
    (host.dir / "columns" / "rank0").write_bytes(b"a file in the way")
    host.say(step(0, 2, loss=1.0))
    host.columns.flush()
    assert host.columns.problem is not None
    host.say(step(0, 3, loss=1.0))
    host.columns.close()
    (host.dir / "columns" / "rank0").unlink()
    host.metrics.close()
    host.open()
    host.close()
    assert column(host.dir, "rank0", "step") == [1, 2, 3]


def test_the_command_makes_columns_and_says_how_far_it_is(runs_dir: Path) -> None:
    store = RunStore.create(runs_dir, RunConfig())
    store.metrics.write_bytes(b"".join(json.dumps(step(0, n, loss=1.0)).encode() + b"\n" for n in range(1, 100)))
    root = Path(__file__).resolve().parents[4]
    command = [sys.executable, "-m", "core.run_folder.rebuild_columns", str(store.dir)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    shown = [float(line) for line in ended.stdout.split()]
    assert shown == sorted(shown)
    assert shown[-1] == 1.0
    assert is_current(store.dir)
    assert [path.name for path in store.dir.glob("columns*")] == ["columns"]


def test_the_command_refuses_what_is_no_run_or_a_live_one(
    tmp_path: Path, runs_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 2
    assert main([str(tmp_path)]) == 2
    store = RunStore.create(runs_dir, RunConfig())
    with store.lock():
        assert main([str(store.dir)]) == 2
    assert "live" in capsys.readouterr().err
    assert not store.columns.exists()


def test_lines_written_while_the_columns_are_opened_are_caught_up_on(tmp_path: Path) -> None:
    metrics = MetricsWriter(tmp_path / "metrics.jsonl")
    values = [step(0, number, loss=float(number)) for number in range(1, 7)]
    lines = [json.dumps(value).encode() for value in values]
    metrics.append(lines[:2])
    columns = ColumnsWriter(tmp_path)
    metrics.append(lines[2:4])  # nobody told the columns, which were not open yet
    columns.append(lines[4:5], values[4:5], metrics.append(lines[4:5]))
    columns.append(lines[5:], values[5:], metrics.append(lines[5:]))
    columns.close()
    metrics.close()
    assert column(tmp_path, "rank0", "loss") == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert is_current(tmp_path)


def test_opening_ends_when_nobody_waits_for_it(tmp_path: Path) -> None:
    metrics = MetricsWriter(tmp_path / "metrics.jsonl")
    metrics.append([json.dumps(step(0, number)).encode() for number in range(1, 7)])
    metrics.close()
    given_up = threading.Event()
    given_up.set()
    columns = ColumnsWriter(tmp_path, given_up)
    assert columns.problem is not None and "ended before" in columns.problem
    assert not list(tmp_path.glob("columns*"))
    ColumnsWriter(tmp_path).close()
    assert len(column(tmp_path, "rank0", "step")) == 6
