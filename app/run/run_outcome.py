"""Run outcome: how a run ended, or a problem while it trains, with the next step."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from app.run.run_summary import seconds_run
from core.config.mode import Mode
from core.errors import full_stop, sentences
from core.formatting import byte_size, duration, number
from core.metrics.last_value import last_value
from core.recipes.heroes import DEFAULT_HEROES, Hero

if TYPE_CHECKING:
    from app.run_data.run_series import RunSeries
    from core.run_folder.state import RunState


NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Title, cause and next step, for the card below the tabs.

    Attributes:
        kind: "success", "error" or "warning".
        log: Name of the log that says more ("rank1.log"); None where no single process is to blame.
        smaller_batch: A next step is to stop it and resume it with this micro-batch and accumulation.
    """

    kind: str
    title: str
    text: str
    log: str | None = None
    has_log: bool = True
    balances: bool = False
    smaller_batch: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The model that training made.

    Attributes:
        size_bytes: How large it is; None while it is still looked for.
    """

    name: str
    folder: str
    size_bytes: int | None

    @property
    def path(self) -> str:
        return str(Path(self.folder) / self.name)

    @property
    def head(self) -> str:
        """ "model.safetensors, 3.4 MB, in", to stand before the folder."""
        return f"{self.name}, {byte_size(self.size_bytes)}, in"


def run_outcome(
    state: RunState,
    series: RunSeries,
    heroes: Sequence[Hero] = DEFAULT_HEROES,
    pressing: Mapping[str, Any] = NOTHING,
    stopping: Mapping[str, Any] = NOTHING,
) -> RunOutcome | None:
    """Return the end of a run, or a problem of a live one; None when there is nothing to tell.

    `pressing` is the alert about a present problem, `stopping` the one that says why the run ended by itself.
    """
    error = state.error or {}
    text = sentences(cause_and_step(error), _saved_text(state, series))
    if state.state == "failed":
        title = error.get("title", "The run failed")
        return RunOutcome("error", title, text, _log_in(error.get("log", title)))
    if state.state == "interrupted":
        title = error.get("title", "The run was interrupted")
        return RunOutcome("warning", title, text, has_log=False)
    if state.trouble and state.is_live:
        text = cause_and_step(state.trouble)
        return RunOutcome("error", state.trouble.get("title", "The run cannot be saved"), text)
    if state.state == "finished":
        text = full_stop(state.fallback or "")
        return RunOutcome("success", finished_title(series, heroes), text, _log_in(text), has_log=bool(text))
    if state.fallback:
        again = "stop the run and resume it" if state.is_live else "resume the run"
        title, what = _fallen_back(state)
        text = sentences(state.fallback, f"To try {what} again, {again}.")
        return RunOutcome("warning", title, text, _log_in(state.fallback))
    if state.is_live and pressing:
        return _pressed(state, pressing)
    if state.state == "stopped" and state.stopped_by:
        return _stopped_by_itself(state, series, heroes, stopping)
    return None


def _pressed(state: RunState, alert: Mapping[str, Any]) -> RunOutcome:
    text = cause_and_step({name: str(alert.get(name) or "") for name in ("cause", "next_step", "window_step")})
    balances = state.mode == Mode.DDP and bool(alert.get("gain"))
    hangs = alert.get("kind") == "hang"
    ranks = alert.get("ranks")
    log = f"rank{ranks[0]}.log" if hangs and isinstance(ranks, list) and ranks else None
    micro, accumulation = alert.get("micro_batch"), alert.get("grad_accum_steps")
    smaller = (micro, accumulation) if isinstance(micro, int) and isinstance(accumulation, int) else None
    title = str(alert.get("title"))
    return RunOutcome("warning", title, text, log, has_log=hangs, balances=balances, smaller_batch=smaller)


def _stopped_by_itself(
    state: RunState, series: RunSeries, heroes: Sequence[Hero], alert: Mapping[str, Any]
) -> RunOutcome:
    """Say why a run ended by itself: it is good enough, has used its time, or the disk is nearly full."""
    if str(alert.get("kind", "")).startswith("disk"):
        text = sentences(state.stopped_by, alert.get("next_step"))
        return RunOutcome("warning", "Stopped before the disk was full", text, has_log=False)
    title = sentences("Stopped early.", best_text(series, heroes))
    return RunOutcome("success", title, state.stopped_by, has_log=False)


def finished_title(series: RunSeries, heroes: Sequence[Hero]) -> str:
    """ "Finished in 9 m 50 s. Best validation loss …"."""
    took = seconds_run(series)
    first = f"Finished in {duration(took)}." if took is not None else "Finished."
    return sentences(first, best_text(series, heroes))


def best_text(series: RunSeries, heroes: Sequence[Hero]) -> str:
    """Return the best evaluation, or the last value of the first hero; empty where neither is known."""
    for hero in heroes:
        best = series.best_evaluation(hero.metric, hero.better) if hero.better else None
        if best is not None and not math.isnan(step := best[0].cell("step", best[1])):
            value = number(best[0].cell(hero.metric, best[1]))
            return f"Best {_inside(hero.label)} {value} at step {int(step):,}."
    for hero in (*heroes[:1], DEFAULT_HEROES[0]):
        last = last_value(hero.metric, [series.rank(rank).last(hero.metric) for rank in series.ranks()])
        if last is not None and hero.better:
            return f"Last {_inside(hero.label)} {number(last)}."
    return ""


def _inside(label: str) -> str:
    return label if label[:2].isupper() else label[:1].lower() + label[1:]


def cause_and_step(error: Mapping[str, str]) -> str:
    """Cause and next step of an error, each a sentence with its full stop."""
    return full_stop(sentences(error.get("cause"), error.get("window_step") or error.get("next_step")))


def _saved_text(state: RunState, series: RunSeries) -> str:
    saved = [mark for mark in series.marks if mark.kind == "checkpoint"]
    return (
        f"The newest checkpoint is at step {int(saved[-1].step):,}." if saved and state.checkpoint is not None else ""
    )


def _fallen_back(state: RunState) -> tuple[str, str]:
    """Return the title of a fallback, and the mode that was asked for."""
    if state.world_size == 1:
        return "Continuing on one device" if state.is_live else "Fell back to one device", "all devices"
    if state.mode == Mode.INDEPENDENT:
        live = "Each device trains its own model"
        return live if state.is_live else "Fell back to independent training", "the mode you chose"
    return "Continuing without DeepSpeed" if state.is_live else "Fell back to PyTorch's engine", "DeepSpeed"


def _log_in(text: str) -> str | None:
    """Return the log that a text names: logs/rank1.log, or "rank 1" in runs of early versions."""
    found = re.search(r"\brank ?(\d+)", text, re.IGNORECASE)
    return f"rank{found[1]}.log" if found else None
