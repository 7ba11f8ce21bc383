"""`ResumePlan`: what resuming a run will do, as a value that a person can read before agreeing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core.checkpoints.checkpoint_choice import CheckpointEntry, aside_line
from core.config.mode import Mode, mode_label
from core.config.run_config import RunConfig
from core.ledger.progress import LedgerProgress
from core.ledger.state_file import LedgerFile
from core.machine.devices.names import label_by_uuid
from core.recipes.outside_code import OutsideCode
from core.recipes.user_script import RECIPE as USER_SCRIPT

NOT_STARTED_HERE: Final = "It was not started on this machine. Nothing of it runs until you agree."


@dataclass(frozen=True, slots=True)
class PlanSummary:
    lines: tuple[str, ...]
    checkpoints: tuple[CheckpointEntry, ...] = ()
    best: int | None = None
    code_accepted: bool = False


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """The effect of resuming a run.

    Attributes:
        run_dir: The run's folder; None when a new run is made (AI-OS's state file).
        checkpoint: The checkpoint it continues from; None starts with fresh weights.
        progress: Samples trained of the epoch, and of how many, where that is known.
        damaged: Reasons why newer checkpoints are not used, one line each.
        copies: The weights that continue, where each rank wrote its own and not all of them do.
        changed: Other changes: a setting now and then, one sentence each.
        state_file: AI-OS's file, which the new run's ledger starts from; None for a run of ours.
        best: The number of the best checkpoint, by the recipe; None where none has a value.
        set_aside: Numbers of newer checkpoints that are set aside, as `checkpoint` was asked for by its number.
        code: A recipe, program or variables that this run executes and that did not come with Rankdeck.
        code_accepted: It was started on this machine before, or the person agrees.
    """

    run_dir: Path | None
    runs_dir: Path
    config: RunConfig
    progress: LedgerProgress | None
    mode_now: str
    devices_now: tuple[str, ...]
    checkpoint: int | None = None
    step: int = 0
    mode_then: str = ""
    devices_then: tuple[str, ...] = ()
    device_labels: Mapping[str, str] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    copies: str = ""
    changed: tuple[str, ...] = ()
    state_file: LedgerFile | None = None
    checkpoints: tuple[CheckpointEntry, ...] = ()
    best: int | None = None
    set_aside: tuple[int, ...] = ()
    goes_back: bool = False
    code: OutsideCode | None = None
    code_accepted: bool = True
    name: str = ""
    learning_rate: str = ""

    def lines(self) -> list[str]:
        lines = [f"A new run continues from {self.state_file.path}."] if self.state_file is not None else []
        if self.run_dir is not None:
            lines.append(f"Continues {self.name or self.run_dir.name}{self._from_where()}.")
        lines += self._script_lines() if self.config.recipe == USER_SCRIPT else self._training_lines()
        now = self._on_devices(self.mode_now, self.devices_now)
        then = self._on_devices(self.mode_then, self.devices_then)
        same = (self.mode_then, self.devices_then) in ((self.mode_now, self.devices_now), ("", ()))
        lines.append(f"Devices: {now}" + ("." if same else f"; it was {then}."))
        lines += self.changed
        lines += self.code.lines if self.code is not None else ()
        lines += [] if self.code_accepted else [NOT_STARTED_HERE]
        return [*lines, *(f"Note: {warning}" for warning in self.warnings)]

    def summary(self) -> PlanSummary:
        return PlanSummary(
            lines=tuple(self.lines()),
            checkpoints=self.checkpoints,
            best=self.best,
            code_accepted=self.code_accepted,
        )

    def _from_where(self) -> str:
        if self.checkpoint is None or self.config.recipe == USER_SCRIPT:
            return ""
        return f" from step {self.step:,} (checkpoint {self.checkpoint})"

    def _training_lines(self) -> list[str]:
        rate = [self.learning_rate] if self.learning_rate else []
        return [*self._weights_lines(), *self._data_lines(), self._target(), *rate]

    def _script_lines(self) -> list[str]:
        lines = [f"Not used: {reason}" for reason in self.damaged]
        lines.append("The script is started again. Where it continues is up to the script.")
        if self.checkpoint is not None:
            lines.append(f"rankdeck.last_checkpoint() gives it its own checkpoint of step {self.step:,}.")
        return lines

    def _weights_lines(self) -> list[str]:
        lines = list(self.damaged)
        if self.checkpoint is not None:
            lines += [f"Weights: {self.copies}."] if self.copies else []
            return [*lines, aside_line(self.set_aside)] if self.set_aside else lines
        return [*lines, "Weights: there is no checkpoint, so the run starts with fresh ones."]

    def _data_lines(self) -> list[str]:
        done = self.progress
        if done is None:
            return ["Data: from the beginning."]
        of_epochs = f" of {done.epochs:,}" if done.epochs else ""
        return [
            f"Data: epoch {done.epoch + 1:,}{of_epochs}; {done.samples_done:,} of its {done.samples_total:,} samples "
            "are trained. None is trained twice."
        ]

    def _target(self) -> str:
        steps, epochs = self.config.steps, self.config.epoch_limit
        limits = [f"step {steps:,}"] if steps is not None else []
        limits += [f"the end of epoch {epochs:,}"] if epochs is not None else []
        return f"Trains until {' or '.join(limits)}."

    def _on_devices(self, mode: str, devices: Sequence[str]) -> str:
        named = ", ".join(label_by_uuid(uuid, self.device_labels) for uuid in devices)
        return f"{named} alone" if mode == Mode.SINGLE else f"{mode_label(mode, mode)} on {named}"
