"""The ``launch`` event: how an attempt trains, where it continues from, notes, and machines that were lost or came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from core.checkpoints.store import Checkpoint
from core.config.mode import Mode
from core.formatting import listed
from core.host.attempt_launch import AttemptLaunch
from core.launch.mode import pytorch_engine_note
from core.launch.resolved import ResolvedRun

NODE_LOST: Final = "node_lost"
NODE_RETURNED: Final = "node_returned"


def launch_fields(
    launch: AttemptLaunch, number: int, world_before: int, fallback: str | None, launcher: str | None
) -> dict[str, Any]:
    """The event's fields for the attempt of this number.

    Args:
        launch: The attempt.
        number: Its number.
        world_before: The number of ranks before this host.
        fallback: Why it trains in a lesser way than was asked for, if it does.
        launcher: Who started the ranks' processes; None: the run's host does.
    """
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
    """Rank → the step that its curve is taken back to.

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
    """Finds where a resumed script continues: known once each of its ranks names a step."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def new_in(self, lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, int]]:
        """Rank → the step before its first one, for each rank whose first step is among these metrics lines."""
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


def fewer_devices_alert(run: ResolvedRun, before: int) -> dict[str, str] | None:
    """The fields of an alert; None where no device is missing."""
    now = run.world_size
    if now >= before:
        return None
    learning, keep = _learning(run)
    if run.config.mode is Mode.SINGLE:  # resuming has set it: a run on several machines never begins so
        learning = f"One device cannot share the model's state, so it now holds all of it. {learning}"
    return {
        "kind": "fewer_devices",
        "title": "The run continues on fewer devices",
        "cause": f"A machine is missing: {now} of {before} devices {'train' if now > 1 else 'trains'}. {learning}",
        "next_step": f"To take the machine back, start its command there again. {keep}".rstrip(),
    }


def _learning(run: ResolvedRun) -> tuple[str, str]:
    """The effect on the batch, and the next step."""
    batch = run.batch
    if run.config.mode.is_apart:
        return f"Each device trains with its own global batch of {batch.global_}, as before.", ""
    if run.config.global_batch_size is not None:
        ranks = f"{batch.ranks} device{'s' if batch.ranks > 1 else ''}"
        return (
            f"The global batch is {batch.global_} samples = micro-batch {batch.micro} × {ranks} × accumulation "
            f"{batch.accumulation}: a step takes longer, and learns from as many samples.",
            "",
        )
    return (
        f"The global batch is now {batch.global_} samples, with the same learning rate: a step learns from fewer "
        "samples than before.",
        "To keep the batch, stop the run, and resume it with a global batch.",
    )


def node_changes(before: Sequence[str], now: Sequence[str]) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Events for the machines that were lost or joined between two attempts, each with its fields.

    Args:
        before: The names of the machines of the last attempt, which may be the same; empty: it was on one machine.
        now: Those of this attempt.
    """
    if not before or not now:
        return ()
    lost, new = list((Counter(before) - Counter(now)).elements()), list((Counter(now) - Counter(before)).elements())
    machines = f"{len(now)} machine{'' if len(now) == 1 else 's'} ({', '.join(dict.fromkeys(now))})"
    left = f"The run continues on {machines}"
    changes: list[tuple[str, Mapping[str, Any]]] = []
    if lost:
        alert = {
            "kind": NODE_LOST,
            "title": f"{_machines(lost)} lost",
            "cause": f"{listed(lost)} does not answer any more: it was ended or switched off, or the network to it is "
            f"cut. {left}, from its last checkpoint.",
            "next_step": f"Start the command of the run on {listed(lost)} again: the run takes it back.",
        }
        changes.append(("alert", alert))
    if new:
        is_back = {"kind": NODE_RETURNED, "title": f"{_joined(new)}", "cause": f"{left}, from a new checkpoint."}
        changes.append((NODE_RETURNED, is_back))
    return tuple(changes)


def _machines(names: Sequence[str]) -> str:
    return "A machine was" if len(names) == 1 else f"{len(names)} machines were"


def _joined(names: Sequence[str]) -> str:
    return "A machine has joined" if len(names) == 1 else f"{len(names)} machines have joined"
