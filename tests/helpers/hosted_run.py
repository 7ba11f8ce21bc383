"""A tiny MiniGPT under the real run host, in this process's control: run it, kill it, run it again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from core.checkpoints.store import CheckpointStore
from core.client import stop_run
from core.config import RunConfig
from core.fault_points import ENV_FAULT
from core.processes.identity import ProcessId, identify, is_alive
from core.recipes.catalog import get_recipe
from core.recipes.manifest import apply_recipe
from core.run_folder.store import RunStore
from tests.helpers import forked_host
from tests.helpers.forking import ROOT, Spawned, StartedProcess
from tests.helpers.wine import PATIENCE

# How long a run may take. Windows forks nothing, so there each process of each attempt imports PyTorch again.
HOST_S: Final = 300.0 if sys.platform == "win32" else 90.0
TINY = {"n_layer": 1, "n_head": 2, "n_embd": 16, "sample_tokens": 0, "warmup_steps": 2}


def write_text(path: Path, size: int = 40_000) -> Path:
    """Some text that is not all alike."""
    words = [f"{word} {number * number % 997}\n" for number in range(size // 8) for word in ("alpha", "beta", "gamma")]
    path.write_text("".join(words)[:size], encoding="utf-8")
    return path


def make_run(folder: Path, text: Path | str, mode: str, world: int, **settings: Any) -> RunStore:
    """A run's folder; nothing runs yet. Settings are `RunConfig`'s."""
    values: dict[str, Any] = {
        "devices": (f"cpu:{world}",),
        "seq_len": 16,
        "batch_size": 4,
        "dataset_chunk_size": 32,
        "samples_per_block": 320,
        "eval_every": 8,
        "val_samples": 8,
        "checkpoint_every_s": None,
        "strict": True,
        "gradient_exchange": "shared",  # the choice by measuring, half a second a start, has tests of its own
        "options": TINY,
        "start_timeout_s": RunConfig().start_timeout_s * PATIENCE,
        **settings,
    }
    if "recipe" not in settings:
        values["options"] = {**TINY, **values["options"]}
    asked = RunConfig(dataset_file=str(text), mode=mode, **values)
    config = apply_recipe(asked, get_recipe(asked.recipe))
    return RunStore.create(folder.parent, config, folder)


def host(
    store: RunStore, fault: str = "", *, stop_at: int | None = None, timeout_s: float = HOST_S, forked: bool = True
) -> int:
    """Runs the run's host to its end, or to its death.

    Args:
        store: The run.
        fault: Where all its processes are killed (`core.fault_points`).
        stop_at: Asks the host to stop once it reports a step of that number, or a later one.
        timeout_s: It is killed after that.
        forked: Host and ranks may be forked (`forked_host`).

    Returns:
        The host's exit code.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), ENV_FAULT: fault, "OMP_NUM_THREADS": "1"}
    before = len(lines(store, "step"))  # an attempt before may have gone on for some steps after it was to stop
    process: StartedProcess
    if forked and forked_host.can_fork():
        process = forked_host.start(store.dir, environment)
    else:
        process = _spawn(store, environment)
    deadline = time.monotonic() + PATIENCE * timeout_s
    try:
        while stop_at is not None and time.monotonic() < deadline and process.ended(0.02) is None:
            if any(line["step"] >= stop_at for line in lines(store, "step")[before:]):
                if sys.platform == "win32":  # where to terminate is to kill
                    stop_run(store)
                else:
                    process.terminate()
                break
        code = process.ended(max(0.1, deadline - time.monotonic()))
        assert code is not None, f"the host still runs after {PATIENCE * timeout_s:.0f} s"
        return code
    finally:
        process.kill()


def _spawn(store: RunStore, environment: dict[str, str]) -> Spawned:
    argv, nowhere = [sys.executable, "-m", "core.host", str(store.dir)], subprocess.DEVNULL
    return Spawned(subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=nowhere, stderr=nowhere))


def processes(store: RunStore) -> dict[int, ProcessId]:
    """Living processes of the newest attempt, by rank; the host's is -1."""
    log = (store.logs / "host.log").read_text(encoding="utf-8")
    found = {int(rank): identify(int(pid)) for rank, pid in re.findall(r"rank (\d+) is process (\d+)", log)}
    assert found, "the host's log names no rank"
    found[-1] = store.stored_state().host
    return {rank: process for rank, process in found.items() if process is not None and is_alive(process)}


def newest(store: RunStore) -> int:
    """The newest whole checkpoint's number, 0 for none; a damaged one is a failure."""
    found, damaged = CheckpointStore(store.checkpoints).newest_valid()
    assert not damaged, damaged
    return 0 if found is None else found.number


def lines(store: RunStore, event: str) -> list[dict[str, Any]]:
    """Metrics lines of one kind, over all attempts; a torn last line is left out."""
    return [line for line in all_lines(store) if line["event"] == event]


def all_lines(store: RunStore) -> list[dict[str, Any]]:
    data = store.metrics.read_bytes() if store.metrics.exists() else b""
    return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]


def kept(store: RunStore) -> list[dict[str, Any]]:
    """The metrics lines of what is in the weights, or was when copies were chosen from: each launch takes some back."""
    found: list[dict[str, Any]] = []
    for line in all_lines(store):
        if line["event"] == "launch" and line["resumed_from"]:
            back = {int(rank): step for rank, step in line["resumed_from"].items()}
            found = [old for old in found if old.get("step", 0) <= back.get(old["rank"], old.get("step", 0))]
        found.append(line)
    return found


def curve(store: RunStore, name: str = "loss") -> dict[int, float]:
    by_step: dict[int, dict[int, float]] = {}
    for line in lines(store, "step"):
        by_step.setdefault(line["step"], {})[line["rank"]] = line[name]
    return {step: sum(ranks.values()) / len(ranks) for step, ranks in sorted(by_step.items())}
