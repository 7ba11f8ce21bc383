"""Choices of the Resume dialog: runs, checkpoints, devices and modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.checkpoints.checkpoint_choice import CheckpointEntry
from core.config.lr_schedule import DECAY, REPLAN, RESTART
from core.config.mode import Mode
from core.formatting import count
from core.machine.devices import Device, device_texts
from core.machine.devices.names import SEPARATOR, device_label, label_by_uuid
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.naming import label
from core.run_folder.notes import RunNotes
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry

UNCHANGED: Final = "unchanged"
THIS_COMPUTER: Final = "This computer"
NEWEST: Final = "Newest checkpoint"
# How the learning rate continues under another number of steps, as text and as `RunConfig.lr_schedule` has it.
LR_CHOICES: Final = (
    ("continues from the current rate", None),
    ("decays again from the current rate", DECAY),
    ("warms up and decays again", RESTART),
    ("planned again over all steps", REPLAN),
)
# What an alert about a slow device advises.
BALANCED: Final[Mapping[str, str]] = {"mode": Mode.DDP, "balance": "measured"}


@dataclass(frozen=True, slots=True)
class TrainingPlace:
    """A machine on which a run can be resumed.

    Attributes:
        machine: The name of another machine; empty: this computer.
        devices: Its devices; none where they are not known yet.
        ticked: The devices selected in New run, as a run's config names them.
    """

    machine: str = ""
    devices: Sequence[Device] = ()
    ticked: Sequence[str] = ()


def run_choices(entries: Sequence[RunEntry], names: Mapping[Path, str]) -> Iterator[tuple[str, str]]:
    """Runs that can be resumed, as text and folder: "night · stopped at step 610 of 1,000"."""
    for entry in entries:
        state = entry.state
        if state is not None and not state.is_live:
            of = f" of {count(state.total_steps)}" if state.total_steps else ""
            name = names.get(entry.path) or label(state, RunNotes())
            yield f"{name} · {state.state} at step {count(state.step)}{of}", str(entry.path)


def checkpoint_choices(entries: Sequence[CheckpointEntry], best: int | None) -> Iterator[tuple[str, int | None]]:
    """Checkpoints that a run can be resumed from, newest first, as text and number; None: the newest."""
    good = [entry for entry in reversed(entries) if not entry.diverged]
    newest = next((entry for entry in good if not entry.aside), None)
    yield (NEWEST if newest is None else _checkpoint_text(newest, best)), None
    for entry in good:
        if entry is not newest:
            yield _checkpoint_text(entry, best), entry.number


def _checkpoint_text(entry: CheckpointEntry, best: int | None) -> str:
    marks = [mark for mark, holds in (("best", entry.number == best), ("set aside", entry.aside)) if holds]
    return SEPARATOR.join([f"Checkpoint {entry.number}", f"step {count(entry.step)}", *marks])


def device_choices(place: TrainingPlace) -> Iterator[tuple[str, list[str] | None]]:
    """Sets of a place's devices, as text and as a run's config names them; None: unchanged."""
    ticked, available = place.ticked, place.devices
    labels = {device.uuid: device_label(device) for device in available}
    yield UNCHANGED, None
    if ticked:
        yield f"selected in New run: {', '.join(_device_text(text, labels) for text in ticked)}", list(ticked)
    for kind, name in (("cuda", "GPUs"), ("cpu", "CPU devices")):
        devices = [device for device in available if device.kind == kind and not device.hidden_by]
        if len(devices) > 1:
            yield f"all {len(devices)} {name}", list(device_texts(devices))
        for device in devices[: 1 if kind == "cpu" else None]:  # one CPU device is as good as another
            yield labels[device.uuid], list(device_texts([device]))


def mode_choices(mode: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str] | None]]:
    """Modes, as text and as changes of a run; None: unchanged."""
    yield UNCHANGED, None
    yield f"as in New run: {_mode_text(mode)}", dict(mode)
    for variant in (one for other in Mode if other is not Mode.SINGLE for one in other.variants):
        changes = {name: str(value) for name, value in variant.settings.items()}
        yield _mode_text(changes), changes
        if variant.mode is Mode.DDP:
            yield _mode_text(BALANCED), dict(BALANCED)


def finished_at(state: RunState | None) -> int | None:
    """The last step of a finished run, beyond which it can be trained further; None for all others."""
    if state is None or state.state != "finished" or state.recipe == USER_SCRIPT or not state.step:
        return None
    return max(state.step, state.total_steps or 0)


def _device_text(text: str, labels: Mapping[str, str]) -> str:
    if text.startswith("cpux"):
        return f"{text.removeprefix('cpux')} CPU devices"
    return label_by_uuid(text, labels).partition(SEPARATOR)[0]


def _mode_text(mode: Mapping[str, str]) -> str:
    name = Mode.read(mode.get("mode", Mode.AUTO))
    if len(name.variants) > 1:
        return f"{name.label}, stage {mode.get('zero_stage', '1')}"
    if name.is_apart and mode.get("sync_every"):
        return f"{name.label}, synchronised every {mode['sync_every']} steps"
    balanced = " with load balancing" if mode.get("balance") == "measured" and name == Mode.DDP else ""
    return f"{name.label}{balanced}"
