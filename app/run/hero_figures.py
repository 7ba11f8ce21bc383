"""Hero figures: the values of a run's heroes, each with its trend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from core.formatting import UNKNOWN, count, memory_of, number, scaled
from core.metrics.last_value import last_value
from core.metrics.metric import has_own_card, metric
from core.recipes.heroes import CHECKPOINT, DEFAULT_HEROES, MEMORY, MOST, Hero

if TYPE_CHECKING:
    from app.run_data.pyramid import Floats
    from app.run_data.run_series import RunSeries
    from app.run_data.series import Series
    from core.machine.devices.names import RankNames
    from core.run_folder.state import RunState

# Newest steps whose mean says how a value changes: one step of a small batch jumps.
RECENT_ROWS: Final = 20
# Share of the value below which a change is none.
LEAST_CHANGE: Final = 0.002
NOISE: Final = 2.0  # standard errors that a change must exceed
_FIRST: Final = ("loss", "val_loss", "accuracy", "val_accuracy", "tokens_per_s", "samples_per_s")
_LAST: Final = ("lr", "grad_norm", "loss_scale", "micro_batch")


@dataclass(frozen=True, slots=True)
class HeroFigure:
    """One figure of the header.

    Attributes:
        note: Its unit and how it changes: "tok/s", "↓ 0.04", "best at 450".
        trend: "better" or "worse" where the change is one of them; else empty.
        tip: For a tooltip and screen readers; empty: nothing more to say.
    """

    label: str
    value: str = UNKNOWN
    note: str = ""
    trend: str = ""
    tip: str = ""


def heroes_of(named: Sequence[Hero], series: RunSeries, *, is_script: bool) -> Sequence[Hero]:
    """Return the heroes of the run's recipe; for a script, whose metrics no recipe names, those that it reports."""
    if not is_script:
        return named or DEFAULT_HEROES
    reported = set(series.evals.columns).union(*(series.rank(rank).columns for rank in series.ranks()))
    first = [name for name in _FIRST if name in reported]
    others = sorted(name for name in reported if has_own_card(name) and name not in (*_FIRST, *_LAST))
    known = [*first, *others, *(name for name in _LAST if name in reported)]
    if "tokens_per_s" in known and "samples_per_s" in known:
        known.remove("samples_per_s")
    shown = [Hero(one.name, one.title, one.short_unit, one.better) for one in map(metric, known[: MOST - 1])]
    return (*shown, Hero(MEMORY, "Memory"))


def hero_figures(
    heroes: Sequence[Hero], series: RunSeries, state: RunState, names: RankNames, now: float
) -> tuple[HeroFigure, ...]:
    """Return the figures of `heroes_of`; `now` is in Unix seconds."""
    return tuple(_figure(hero, series, state, names, now) for hero in heroes)


def _figure(hero: Hero, series: RunSeries, state: RunState, names: RankNames, now: float) -> HeroFigure:
    if hero.metric == MEMORY:
        return _memory(hero, series, state, names)
    if hero.metric == CHECKPOINT:
        return _checkpoint(hero, series, state, now)
    ranks = [series.rank(rank) for rank in series.ranks()]
    reporting = [rank for rank in ranks if hero.metric in rank.columns]
    if reporting:
        return _of_steps(hero, reporting)
    return _of_evaluations(hero, series)


def _of_steps(hero: Hero, ranks: Sequence[Series]) -> HeroFigure:
    """Compare the mean of the newest steps with that of the steps before."""
    value = last_value(hero.metric, [rank.last(hero.metric) for rank in ranks])
    if metric(hero.metric).is_rate:
        figure, prefix = scaled(value)
        return HeroFigure(hero.label, f"{figure} {prefix}".rstrip(), hero.unit)
    pairs = [_recent(rank, hero.metric) for rank in ranks]
    now, before = (_mean_of([pair[place] for pair in pairs]) for place in (0, 1))
    noise = max((pair[2] for pair in pairs if not math.isnan(pair[2])), default=0.0)
    note, trend = _change(now, before, noise, hero.better)
    shown = " ".join(part for part in (hero.unit, note) if part)
    tip = "Last value" if len(ranks) == 1 else "Last value, the mean of all devices"
    if note:
        tip = f"{tip}. The arrow compares the means of the last {RECENT_ROWS} steps and of the {RECENT_ROWS} before."
    return HeroFigure(hero.label, number(value), shown, trend, tip)


def _recent(series: Series, name: str) -> tuple[float, float, float]:
    """Return the mean of the newest steps, the mean of those before, and the difference that may be chance."""
    rows: Floats = series.columns[name].read(max(0, series.rows - 2 * RECENT_ROWS), series.rows)
    known = rows[~np.isnan(rows)]
    half = min(RECENT_ROWS, max(1, len(known) // 2))
    new, old = known[-half:], known[-2 * half : -half]
    noise = NOISE * math.sqrt((float(new.var()) + float(old.var())) / half) if len(new) and len(old) else math.nan
    return _mean(new), _mean(old), noise


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


def _mean_of(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _change(value: float, before: float, noise: float, better: str) -> tuple[str, str]:
    """Return the change as text ("↓ 0.04") and its trend; two empty texts where it may be chance."""
    change = value - before
    if math.isnan(change) or abs(change) <= max(noise, LEAST_CHANGE * max(abs(value), abs(before))):
        return "", ""
    trend = "" if not better else "better" if (change < 0) == (better == "lower") else "worse"
    return f"{'↓' if change < 0 else '↑'} {number(abs(change), 2)}", trend


def _of_evaluations(hero: Hero, series: RunSeries) -> HeroFigure:
    """Show the newest evaluation (the mean of ranks that evaluate by themselves) and the best one."""
    evaluating = [evals for evals in series.evaluations().values() if hero.metric in evals.columns]
    value = last_value(hero.metric, [evals.last(hero.metric) for evals in evaluating])
    best = series.best_evaluation(hero.metric, hero.better) if hero.better else None
    if best is None:
        return HeroFigure(hero.label, number(value), hero.unit)
    step = best[0].cell("step", best[1])
    is_best = step == max(evals.last("step") or 0.0 for evals in evaluating)
    sign = "↓" if hero.better == "lower" else "↑"
    where = "" if math.isnan(step) else f" at {count(int(step))}"
    note = f"{sign} best{where}" if is_best else f"best {number(best[0].cell(hero.metric, best[1]))}{where}"
    several = sum(evals.rows for evals in evaluating) > 1
    return HeroFigure(hero.label, number(value), note, "better" if is_best and several else "")


def _memory(hero: Hero, series: RunSeries, state: RunState, names: RankNames) -> HeroFigure:
    """Show the fullest device: now while the run is live, else at its peak."""
    fullest: tuple[float, float, float, str] | None = None
    for uuid in state.devices:
        samples = series.device(uuid)
        used = samples.last("memory_used_bytes") if state.is_live else samples.peak("memory_used_bytes")
        total = samples.last("memory_total_bytes")
        if used is not None and total:
            found = (used / total, used, total, uuid)
            fullest = found if fullest is None else max(fullest, found)
    if fullest is None:
        return HeroFigure(hero.label)
    _, used, total, uuid = fullest
    rank = state.devices.index(uuid)
    which = names.short(rank) if len(set(state.devices)) > 1 else ""
    note = " · ".join(part for part in ("" if state.is_live else "peak", which) if part)
    return HeroFigure(hero.label, memory_of(used, total), note, tip=names.full(rank))


def _checkpoint(hero: Hero, series: RunSeries, state: RunState, now: float) -> HeroFigure:
    if state.checkpoint is None:
        return HeroFigure(hero.label)
    saved = [mark for mark in series.marks if mark.kind == "checkpoint"]
    note, tip = "", ""
    if saved:
        step = int(saved[-1].step)
        tip = f"Saved at step {count(step)}."
        note = ago(state.now(now) - saved[-1].ts) if state.is_live else f"step {count(step)}"
    return HeroFigure(hero.label, count(state.checkpoint), note, tip=tip)


def ago(seconds: float) -> str:
    """A time span in its largest unit: "now", "1 min ago", "3 h ago"."""
    if seconds < 60:
        return "now" if seconds < 10 else f"{int(seconds) // 10 * 10} s ago"
    if seconds < 3600:
        return f"{int(seconds) // 60} min ago"
    return f"{int(seconds) // 3600} h ago" if seconds < 86_400 else f"{int(seconds) // 86_400} d ago"
