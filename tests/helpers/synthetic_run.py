"""Writes the folder of a run that never was: any number of steps in a second or two."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.run_data.metrics_batch import parse_lines
from app.run_data.run_series import RunSeries
from core.config import RunConfig
from core.config.config_file import to_toml
from core.metrics import columns
from core.metrics.column_index import EVENTS_NAME, ColumnsIndex, GroupIndex, safe_stem, tail_sha256
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

START_S = 1_780_000_000.0
BYTES_PER_STEP = 230
UUIDS = ("GPU-11111111-aaaa-bbbb-cccc-000000000001", "GPU-22222222-aaaa-bbbb-cccc-000000000002")


@dataclass(frozen=True, slots=True)
class Shape:
    """How long and how wide the run is."""

    steps: int = 2000
    ranks: int = 2
    step_s: float = 0.05
    eval_every: int = 100
    seed: int = 0
    first_step: int = 1


def make_run(folder: Path, **state: Any) -> RunStore:
    """A run folder with `run.toml` and `state.json`, without metrics."""
    folder.mkdir(parents=True, exist_ok=True)
    store = RunStore(folder)
    store.run_toml.write_text(to_toml(RunConfig()), encoding="utf-8", newline="\n")
    values: dict[str, Any] = {"state": "finished", "created": START_S, "devices": UUIDS, "recipe": "minigpt"}
    store.write_state(RunState(run_id=folder.name, name=folder.name).replace(**(values | state)))
    return store


def write_events(store: RunStore, lines: Iterable[Mapping[str, Any]]) -> RunStore:
    """The run with these lines alone as its metrics."""
    store.metrics.write_bytes(b"".join(json.dumps({"attempt": 1, **line}).encode() + b"\n" for line in lines))
    return store


def series_of(*lines: Mapping[str, Any]) -> RunSeries:
    """The series of a run that reported these lines."""
    run = RunSeries()
    run.apply(parse_lines([json.dumps(line).encode() for line in lines]))
    return run


def make_many_runs(runs_dir: Path, count: int) -> None:
    """Run folders with settings, state and a few lines of metrics, cheaply: files of one kind have the same text.

    Args:
        runs_dir: Where they are made.
        count: How many; the first is the newest.
    """
    lines = b"".join(metrics_lines(Shape(steps=12, ranks=1, eval_every=4)))
    states = ("finished", "failed", "stopped")
    settings = [to_toml(RunConfig(lr=lr)) for lr in (1e-4, 3e-4, 6e-4, 1e-3)]
    for number in range(count):
        store = RunStore(runs_dir / f"minigpt-{number:04}")
        store.dir.mkdir(parents=True)
        store.run_toml.write_text(settings[number % 4], encoding="utf-8", newline="\n")
        store.metrics.write_bytes(lines)
        end = time.time() - 600.0 * number
        state = RunState(store.dir.name, name="MiniGPT · stdlib", state=states[number % 3], recipe="minigpt")
        values = {"created": end - 300, "updated": end, "loss": 1 + number / count, "mode": "ddp", "world_size": 2}
        text = json.dumps(state.replace(step=12, total_steps=12, devices=UUIDS, **values).as_dict())
        store.state_json.write_text(text, encoding="utf-8", newline="\n")


def write_columns(folder: Path, shape: Shape, **state: Any) -> RunStore:
    """A finished run as its columns hold it; its `metrics.jsonl` is a hole of the right length."""
    store = make_run(folder, step=shape.steps, total_steps=shape.steps, **state)
    size = shape.steps * shape.ranks * BYTES_PER_STEP
    with store.metrics.open("wb") as file:
        file.truncate(size)
    store.columns.mkdir(exist_ok=True)
    groups: dict[str, GroupIndex] = {}
    for name, values in groups_of(shape):
        groups[name] = _write_group(store.columns, name, values, {group.folder for group in groups.values()})
    events = b"".join(event_lines(shape))
    (store.columns / EVENTS_NAME).write_bytes(events)
    ColumnsIndex(size, tail_sha256(store.metrics, size), groups, len(events)).save(store.columns)
    return store


def write_lines(folder: Path, shape: Shape, *, with_columns: bool = False, **state: Any) -> RunStore:
    """A run with a real `metrics.jsonl`: each line in the order of its time."""
    store = make_run(folder, **({"step": shape.steps, "total_steps": shape.steps} | state))
    store.metrics.write_bytes(b"".join(metrics_lines(shape)))
    if with_columns:
        columns.rebuild(folder)
    return store


def metrics_lines(shape: Shape) -> Iterator[bytes]:
    found: list[tuple[float, bytes]] = []
    for group, values in groups_of(shape):
        if group == "eval":
            continue
        fixed: dict[str, Any] = {"event": "device", "rank": -1, "attempt": 1, "uuid": group.removeprefix("device/")}
        if group.startswith("rank"):
            fixed = {"event": "step", "rank": int(group[4:]), "attempt": 1}
        names, rows = list(values), np.stack(list(values.values()), axis=1).tolist()
        for row in rows:
            line = fixed | dict(zip(names, row, strict=True))
            line.update({name: int(line[name]) for name in ("step", "tokens_seen") if name in line})
            found.append((line["ts"], json.dumps(line).encode() + b"\n"))
    found += [(json.loads(line)["ts"], line) for line in event_lines(shape)]
    found.sort(key=lambda item: item[0])
    return (line for _, line in found)


def event_lines(shape: Shape) -> list[bytes]:
    end_s = START_S + shape.steps * shape.step_s
    lines: list[dict[str, Any]] = [
        {"ts": START_S - 4, "event": "launch", "rank": -1, "mode": "ddp", "devices": list(UUIDS), "resumed_from": None}
    ]
    evals = _evals(shape)
    for step, ts, val_loss in zip(evals["step"], evals["ts"], evals["val_loss"], strict=True):
        lines.append({"ts": ts, "event": "eval", "rank": 0, "step": int(step), "val_loss": val_loss})
    lines.append({"ts": end_s, "event": "sample", "rank": 0, "step": shape.steps, "prompt": "def ", "text": "def f():"})
    lines.append({"ts": end_s, "event": "finished", "rank": -1})
    return [json.dumps({"attempt": 1} | line).encode() + b"\n" for line in lines]


def groups_of(shape: Shape) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    for rank in range(shape.ranks):
        yield f"rank{rank}", _steps(shape, rank)
    seconds = max(2, int(shape.steps * shape.step_s) + 3)
    for number, uuid in enumerate(UUIDS[: shape.ranks]):
        yield f"device/{uuid}", _samples(seconds, number, shape.seed)
    yield "device/host", {"ts": START_S - 3 + np.arange(seconds), "cpu_percent": np.full(seconds, 21.0)}
    yield "eval", _evals(shape)


def _steps(shape: Shape, rank: int) -> dict[str, np.ndarray]:
    chance = np.random.default_rng([shape.seed, rank])
    step = np.arange(shape.first_step, shape.first_step + shape.steps, dtype=np.float64)
    wait = 0.02 * shape.step_s * chance.random(shape.steps, dtype=np.float32)
    took = shape.step_s * (0.95 + 0.1 * chance.random(shape.steps, dtype=np.float32))
    scale = shape.steps / 12
    noise = chance.standard_normal(shape.steps, dtype=np.float32)
    return {
        "step": step,
        "ts": START_S + shape.step_s * (step - shape.first_step + 1) + 0.001 * rank,
        "loss": 1.55 + 0.05 * rank + 3.2 * np.exp(-step / scale) + 0.1 * noise,
        "lr": 1e-3 * np.minimum(1, step / max(1, shape.steps // 50)),
        "tokens_per_s": 8192 / took,
        "step_time_s": took.astype(np.float64),
        "data_wait_s": wait.astype(np.float64),
        "sync_wait_s": 0.1 * took.astype(np.float64),
        "tokens_seen": step * 8192,
    }


def _evals(shape: Shape) -> dict[str, np.ndarray]:
    step = np.arange(shape.eval_every, shape.steps + 1, shape.eval_every, dtype=np.float64)
    loss = 1.6 + 3.2 * np.exp(-step / (shape.steps / 12))
    return {"step": step, "ts": START_S + shape.step_s * step, "val_loss": loss}


def _samples(seconds: int, number: int, seed: int) -> dict[str, np.ndarray]:
    chance = np.random.default_rng([seed, 100 + number])
    ts = START_S - 3 + np.arange(seconds, dtype=np.float64)
    busy = np.clip(95 + 4 * chance.standard_normal(seconds), 0, 100)
    busy[: min(5, seconds)] = 3.0
    return {
        "ts": ts,
        "utilization_percent": busy,
        "memory_used_bytes": np.minimum(31.0, 2 + 6 * np.arange(seconds)) * 2**30,
        "memory_total_bytes": np.full(seconds, 48.0 * 2**30),
        "temperature_celsius": 40 + 22 * (1 - np.exp(-np.arange(seconds) / 30)) + number * 6,
        "power_w": 2.9 * busy,
        "power_limit_w": np.full(seconds, 300.0),
    }


def _write_group(folder: Path, name: str, values: dict[str, np.ndarray], taken: set[str]) -> GroupIndex:
    group = folder / safe_stem(name, taken)
    group.mkdir(exist_ok=True)
    rows = len(values["ts"])
    for column, numbers in values.items():
        np.asarray(numbers, dtype="<f8").tofile(group / f"{column}.f64")
    return GroupIndex(name, group.name, rows, tuple(values))
