"""Results beside each other: losses, steps, time, speed, and what else the runs report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.compare.figures import Figures
from core.errors import RankdeckError
from core.formatting import UNKNOWN, byte_size, count, duration, number, rate
from core.metrics.column_group import rank_group
from core.metrics.last_value import last_value
from core.metrics.metric import Better, has_own_card, metric
from core.recipes.catalog import get_recipe
from core.recipes.heroes import DEFAULT_HEROES, Hero
from core.run_folder.record import RunRecord


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a comparison; `best` are the places of the best values, if one is better than another."""

    name: str
    label: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    best: tuple[int, ...] = ()

    @property
    def differs(self) -> bool:
        return len(set(self.texts)) > 1

    @property
    def is_empty(self) -> bool:
        return all(text == UNKNOWN for text in self.texts)

    @property
    def changed(self) -> tuple[int, ...]:
        return tuple(place for place, own in enumerate(self.texts) if own != self.texts[0])


MAX_OTHERS: Final = 12
# They say nothing about a whole run.
_NO_RESULTS: Final = ("lr", "grad_norm", "loss_scale")


@dataclass(frozen=True, slots=True)
class _Run:
    record: RunRecord
    figures: Figures


@dataclass(frozen=True, slots=True)
class _Value:
    value: Any
    text: str
    rank: float | None = None


_NOTHING: Final = _Value(None, UNKNOWN)


def result_rows(records: Sequence[RunRecord], figures: Sequence[Figures]) -> tuple[Row, ...]:
    """Make the rows of results. The best of several is marked only where all train the same recipe."""
    runs = [_Run(*pair) for pair in zip(records, figures, strict=True)]
    named = common_heroes(records)
    heroes = None if named is None else {hero.metric: hero for hero in named or DEFAULT_HEROES}
    table: list[tuple[str, str, Callable[[_Run], _Value]]] = [
        ("state", "State", _state),
        ("best_val_loss", "Best validation loss", lambda run: _eval(run, "val_loss", best="lower")),
        ("val_loss", "Last validation loss", lambda run: _eval(run, "val_loss")),
        ("loss", "Last loss", _loss),
        ("step", "Steps", _steps),
        ("duration_s", "Duration", _duration),
        ("tokens_per_s", "Tokens per second, mean", lambda run: _speed(run, "tokens_per_s", "tok/s")),
        ("samples_per_s", "Samples per second, mean", lambda run: _speed(run, "samples_per_s", "samples/s")),
        ("disk_bytes", "Size on disk", _disk),
    ]
    rows = [_row(name, label, [cell(run) for run in runs], _better(name, heroes)) for name, label, cell in table]
    for name in _others(runs, heroes):
        better, title = _better(name, heroes), _title(name, heroes)
        if better and any(run.figures.evals.get(name) for run in runs):
            rows.append(_row(f"best_{name}", f"Best {title}", [_eval(run, name, best=better) for run in runs], better))
        rows.append(_row(name, f"Last {title}", [_other(run, name) for run in runs], better))
    return tuple(row for row in rows if not row.is_empty)


def common_heroes(records: Sequence[RunRecord]) -> tuple[Hero, ...] | None:
    recipes = {record.entry.state.recipe for record in records if record.entry.state}
    if len(recipes) != 1:
        return None
    try:
        return get_recipe(*recipes).heroes
    except RankdeckError:  # a recipe that is gone or was changed
        return ()


def _better(name: str, heroes: Mapping[str, Hero] | None) -> Better:
    if heroes is None:
        return ""
    name = name.removeprefix("best_")
    named: dict[str, Better] = {"lower": "lower", "higher": "higher"}
    # Of a policy, a lower loss is not a better one.
    known = "" if "loss" in name else metric(name).better
    return named.get(heroes[name].better, known) if name in heroes else known


def _title(name: str, heroes: Mapping[str, Hero] | None) -> str:
    label = heroes[name].label if heroes and name in heroes else name.replace("_", " ").strip()
    return label if label[:2].isupper() else label[:1].lower() + label[1:]


def _row(name: str, label: str, cells: list[_Value], better: Better) -> Row:
    texts = tuple(cell.text for cell in cells)
    known = [cell.rank for cell in cells if cell.rank is not None] if better else []
    best = max(known, default=None) if better == "higher" else min(known, default=None)
    # Values that read the same are as good.
    good = {cell.text for cell in cells if best is not None and cell.rank == best}
    places = tuple(place for place, text in enumerate(texts) if text in good)
    return Row(name, label, tuple(cell.value for cell in cells), texts, places if len(places) < len(known) else ())


def _state(run: _Run) -> _Value:
    gone = run.record.entry.state is None and run.figures.disk_bytes is None
    word = "deleted" if gone else run.record.entry.word
    return _Value(word, word)


def _eval(run: _Run, name: str, *, best: Better = "") -> _Value:
    points = run.figures.evals.get(name)
    if not points:
        return _NOTHING
    pick = {"lower": min, "higher": max}.get(best)
    # The last one: the mean of each rank's newest.
    if pick is None:
        newest = list(run.figures.newest_evals.get(name, {}).values()) or points[-1:]
        step, mean = max(point[0] for point in newest), last_value(name, (point[1] for point in newest))
        value = points[-1][1] if mean is None else mean
    else:
        step, value = pick(points, key=lambda point: point[1])
    return _Value({"value": value, "step": int(step)}, f"{number(value, 4)} at {count(int(step))}", value)


def _loss(run: _Run) -> _Value:
    state = run.record.entry.state
    if state is None or state.loss is None:
        return _NOTHING
    return _Value(state.loss, number(state.loss, 4), state.loss)


def _steps(run: _Run) -> _Value:
    state = run.record.entry.state
    if state is None:
        return _NOTHING
    total = f" of {count(state.total_steps)}" if state.total_steps not in (None, state.step) else ""
    return _Value(state.step, count(state.step) + total)


def _duration(run: _Run) -> _Value:
    state = run.record.entry.state
    if state is None or not state.trained_s:
        return _NOTHING
    return _Value(round(state.trained_s, 3), duration(state.trained_s) + (" so far" if state.is_live else ""))


def _speed(run: _Run, name: str, unit: str) -> _Value:
    mean = run.figures.speeds.get(name)
    return _NOTHING if mean is None else _Value(mean, rate(mean, unit), mean)


def _disk(run: _Run) -> _Value:
    size = run.figures.disk_bytes
    return _NOTHING if size is None else _Value(size, byte_size(size))


def _others(runs: Sequence[_Run], heroes: Mapping[str, Hero] | None) -> list[str]:
    found: dict[str, None] = {}
    for run in runs:
        names = [*run.figures.evals, *run.figures.last.get(rank_group(0), ())]
        found |= dict.fromkeys(name for name in names if has_own_card(name) and name not in _NO_RESULTS)
    return sorted(found, key=lambda name: name not in (heroes or ()))[:MAX_OTHERS]


def _other(run: _Run, name: str) -> _Value:
    if run.figures.evals.get(name):
        return _eval(run, name)
    state = run.record.entry.state
    ranks = range(state.world_size if state is not None else 1)  # others are of attempts with more ranks
    value = last_value(name, (run.figures.last.get(rank_group(rank), {}).get(name) for rank in ranks))
    return _NOTHING if value is None else _Value(value, number(value, 4), value)
