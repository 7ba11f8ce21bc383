"""The ``launch`` event: how an attempt trains, where it continues from, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.checkpoints.store import Checkpoint
from core.host.attempt_launch import AttemptLaunch
from core.launch.mode import pytorch_engine_note
from core.launch.resolved import ResolvedRun


def launch_fields(
    launch: AttemptLaunch, number: int, world_before: int, fallback: str | None, launcher: str | None
) -> dict[str, Any]:
    """Return the event's fields; `fallback` is the reason for a lesser way, `launcher` None for spawned ranks."""
    run, checkpoint = launch.run, launch.context.checkpoint
    return {
        "mode": run.mode,
        "devices": [device.uuid for device in run.devices],
        "world_size": run.world_size,
        "backend": run.backend,
        "ddp": "spawning_workers" if launcher is None else "external_launcher_detected",
        "launcher": launcher,
        "resumed_from": _resumed_from(run, checkpoint, number, world_before),
        "checkpoint": None if checkpoint is None else checkpoint.number,
        "total_steps": run.config.steps,
        "tokens_per_step": None
        if run.recipe.self_contained
        else run.batch.global_ * run.config.seq_len * run.replica_groups,
        "engine": run.choice.engine or None,
        "notes": _notes(launch, fallback),
    }


def _resumed_from(
    run: ResolvedRun, checkpoint: Checkpoint | None, attempt: int, world_before: int
) -> dict[str, int] | None:
    """Rank → the step to which its curve is taken back.

    None for the run's first attempt, and for a script, which shows its step only later (`ScriptSteps`).
    """
    if attempt <= 1 or run.recipe.self_contained:
        return None
    known = {} if checkpoint is None else checkpoint.positions
    # Of a rank that had no part in the checkpoint, what earlier attempts committed lies below its step.
    otherwise = 0 if checkpoint is None else checkpoint.step
    ranks = max(run.world_size, world_before, *(rank + 1 for rank in known), 0)
    return {str(rank): known[rank].step if rank in known else otherwise for rank in range(ranks)}


class ScriptSteps:
    """Finds the steps from which a resumed script continues, known once each of its ranks reports a step."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def new_in(self, lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, int]]:
        """Yield rank → the step before its first one, for each rank whose first step is among these lines."""
        for line in lines:
            if line["event"] == "step" and line["rank"] not in self._known:
                self._known.add(line["rank"])
                step = line.get("step")
                if isinstance(step, int):
                    yield {str(line["rank"]): step - 1}


def _notes(launch: AttemptLaunch, fallback: str | None) -> list[str]:
    asked, config, choice = launch.context.run, launch.run.config, launch.run.choice
    engine = choice.engine_note
    if engine and config.zero_engine != asked.config.zero_engine:
        engine = pytorch_engine_note(config.zero_stage, "DeepSpeed could not start")
    lesser = "" if engine else fallback
    weights = f"Weights: {launch.restore_plan.note}." if launch.restore_plan.note else ""
    return [note for note in (lesser, engine, *asked.device_notes, *choice.notes, weights) if note]
