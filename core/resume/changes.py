"""Changes at a resume: settings that may differ from the run's, as text, and state that cannot be restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.checkpoints.state_header import read_values
from core.checkpoints.store import Checkpoint
from core.config.device_names import count_notes
from core.config.layers import device_texts
from core.config.lr_schedule import CONTINUE, DECAY, REPLAN, RESTART, Schedule, cosine, saved_schedule
from core.config.run_config import FIELDS, RunConfig
from core.errors import ConfigError, StateFileError
from core.launch.resolved import ResolvedRun, TrainedRun

STOPS: Final = tuple(spec.name for spec in FIELDS if spec.changes == "stop")
# Settings that may change at a resume: how the work is shared, when it ends, and the learning rate.
CHANGES: Final = tuple(spec.name for spec in FIELDS if spec.changes)

_SCHEDULES: Final = {
    CONTINUE: "continues from the current rate",
    DECAY: "decays again from the current rate",
    RESTART: "warm-up and decay start again",
    REPLAN: "planned again over all steps",
}


def change_lines(before: TrainedRun, now: ResolvedRun) -> tuple[str, ...]:
    """The changed settings, one sentence each; modes and devices have a line of their own in the plan."""
    lines = []
    for spec in FIELDS:
        name, old, new = spec.name, getattr(before.config, spec.name), getattr(now.config, spec.name)
        if spec.changes not in ("how", "stop") or name in ("mode", "lr_schedule") or old == new:
            continue
        if name == "deepspeed_config":
            lines.append(f"{spec.label}: {'changed' if new else 'as Rankdeck has them for this stage'}.")
            continue
        if name == "env":  # the names only: a value may be a password
            names = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            lines.append(f"{spec.label}: {', '.join(names)} changed.")
            continue
        unit = f" {spec.unit}" if spec.unit else ""
        was, will = (f"{spec.text(value)}{unit}" if value is not None else "not set" for value in (old, new))
        lines.append(f"{spec.label}: {will}; it was {was}. {spec.effect}".rstrip())
    if before.batch is not None and before.batch.global_ != now.batch.global_:
        lines.append(
            f"Samples per step: {now.batch} (micro-batch × devices in step × accumulation); it was {before.batch}. "
            "Set the global batch to change it."
        )
    return tuple(lines)


class SavedRate:
    """The learning rate of a checkpoint, and of the steps that follow it.

    `before` are the run's settings so far: their options hold the rule for older checkpoints.
    """

    def __init__(self, checkpoint: Checkpoint, before: RunConfig) -> None:
        counters = read_values(checkpoint.folder / "rank0.safetensors").get("counters", {})
        named = {"peak": before.lr, **{name: before.options.get(name) for name in ("warmup_steps", "min_lr_ratio")}}
        self._step = checkpoint.step
        try:
            rule = {name: float(counters.get("lr_rule", named)[name]) for name in named}
            self._schedule = saved_schedule(counters.get("schedule"))
        except (TypeError, ValueError, KeyError, AttributeError):  # a rule of the recipe's own, or a damaged file
            rule, self._schedule = dict.fromkeys(named, 0.0), None
        self._peak, self._warmup_steps, self._min_lr_ratio = (rule[name] for name in named)

    @property
    def has_decayed_to_zero(self) -> bool:
        """Whether more steps along the rest of this schedule would change nothing."""
        return self._schedule is not None and self._peak > 0 and self._share(self._schedule, self._step) == 0

    def text(self, run: ResolvedRun, ends: int | None) -> str:
        """The rates now and next, as a sentence; empty where they aren't known, or no steps are left before `ends`.

        Raises:
            ConfigError: The rate would be zero from here on.
        """
        saved, config, step = self._schedule, run.config, self._step
        if saved is None or ends is None or ends <= step:
            return ""
        planned = Schedule.new(ends, (config.steps, config.epoch_limit), config.lr_schedule)
        following = saved.resumed(planned, step, self._curve)
        asked = (following.asked, following.choice) != (saved.asked, saved.choice)
        shares = [self._share(following, at) for at in (step + 1, ends)]
        if asked and config.lr > 0 and not any(shares):
            raise ConfigError(
                "lr_schedule",
                f"The learning rate has decayed to 0 at step {step:,}, so more steps would change nothing.",
                "Let the learning rate warm up and decay again, or plan its schedule again over all steps.",
                option=f"--lr-schedule {RESTART}, or {REPLAN}",
            )
        now = self._share(saved, step) * self._peak
        coming, last = (f"{share * config.lr:.3g}" for share in shares)
        how = f"; {_SCHEDULES[config.lr_schedule]}" if asked else ""
        return f"Learning rate: {now:.3g} now, {coming} at step {step + 1:,}, {last} at step {ends:,}{how}."

    def _share(self, schedule: Schedule, step: int) -> float:
        return schedule.share(step, self._curve)

    def _curve(self, place: float, length: float, warms_up: bool) -> float:
        return cosine(place, length, self._warmup_steps if warms_up else 0, self._min_lr_ratio, 1.0)


def device_count_notes(changes: Mapping[str, Any]) -> tuple[str, ...]:
    return count_notes(device_texts(changes["devices"])) if "devices" in changes else ()


def other_chunk_size(where: str, before: int, now: int) -> StateFileError:
    return StateFileError(
        f"The chunk size is not the same: {where} was made with {before} samples, and {now} is requested now.",
        "Start a new run, or resume with the chunk size from before.",
        option=f"--dataset-chunk-size {before}",
    )
