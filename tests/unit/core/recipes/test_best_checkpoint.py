"""The best checkpoint, by evaluations where the recipe's figure is evaluated, else by the steps before it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from core.checkpoints.checkpoint_choice import CheckpointEntry
from core.metrics import columns
from core.recipes.best_checkpoint import MOST_UNDECIDED, best_checkpoint, worth_keeping
from core.recipes.catalog import get_recipe
from core.recipes.heroes import Hero
from core.run_folder.store import RunStore
from tests.helpers.synthetic_run import make_run


def entry(number: int, step: int, val_loss: float | None = None, *, aside: bool = False) -> CheckpointEntry:
    return CheckpointEntry(number, step, val_loss, diverged=False, aside=aside)


def reported(folder: Path, lines: Iterable[dict[str, Any]]) -> RunStore:
    store = make_run(folder)
    texts = [json.dumps({"rank": 0, "attempt": 1, "ts": 1e9 + n, **line}) for n, line in enumerate(lines)]
    store.metrics.write_text("\n".join(texts) + "\n", encoding="utf-8")
    columns.rebuild(folder)
    return store


def test_a_loss_is_that_of_the_manifest(tmp_path: Path) -> None:
    entries = [entry(1, 20, 1.9, aside=True), entry(2, 20, 2.0), entry(3, 30), entry(4, 40, float("nan"))]
    assert best_checkpoint(tmp_path, (), entries) == 1
    assert best_checkpoint(tmp_path, get_recipe("minigpt").heroes, entries) == 1
    assert best_checkpoint(tmp_path, (), [CheckpointEntry(1, 20, 1.0, True, False)]) is None, "it is diverged"
    assert best_checkpoint(tmp_path, (), []) is None
    equal = [entry(1, 20, 2.0), entry(2, 30, 2.0), entry(3, 40, float("-inf"))]
    assert best_checkpoint(tmp_path, (), equal) == 2, "the newest of equal ones"


def test_a_return_that_only_steps_report_is_best_at_its_highest(tmp_path: Path) -> None:
    heroes = get_recipe("clstm_ppo").heroes
    best_at = {step: 200.0 - abs(step - 60) for step in range(1, 101)}
    store = reported(tmp_path / "run", ({"event": "step", "step": s, "episode_return": v} for s, v in best_at.items()))
    entries = [entry(1, 30), entry(2, 70), entry(3, 100, -190.0), entry(4, 70, aside=True)]
    assert best_checkpoint(store.columns, heroes, entries) == 2
    assert best_checkpoint(tmp_path / "none", heroes, entries) is None, "a run without columns"


def test_an_evaluation_counts_only_for_the_step_it_was_made_at(tmp_path: Path) -> None:
    evals = [
        {"event": "eval", "step": step, "val_accuracy": value} for step, value in ((10, 0.5), (20, 0.9), (30, 0.7))
    ]
    store = reported(tmp_path / "run", [*evals, {"event": "step", "step": 31, "accuracy": 1.0}])
    heroes = (Hero("memory", "Memory"), Hero("accuracy", "Accuracy", better="higher"))
    assert best_checkpoint(store.columns, heroes, [entry(1, 10), entry(2, 25), entry(3, 30)]) == 3
    assert best_checkpoint(store.columns, heroes, [entry(1, 5), entry(2, 25)]) is None


def test_what_may_be_the_best_stays_until_the_columns_reach_it(tmp_path: Path) -> None:
    heroes = get_recipe("clstm_ppo").heroes
    entries = [entry(1, 20), entry(2, 40), entry(3, 60)]
    none_yet = tmp_path / "none"
    assert worth_keeping(none_yet, heroes, entries) == {1, 2, 3}, "a run's first moments"
    falling = ({"event": "step", "step": step, "episode_return": -float(step)} for step in range(1, 46))
    store = reported(tmp_path / "run", falling)
    assert worth_keeping(store.columns, heroes, entries) == {1, 3}, "the second is known to be worse"
    rest = [entry(3, 60, aside=True), CheckpointEntry(4, 70, None, diverged=True, aside=False)]
    assert worth_keeping(store.columns, heroes, [*entries[:2], *rest]) == {1}
    many = [entry(number, 100 + number) for number in range(MOST_UNDECIDED + 5)]
    assert worth_keeping(none_yet, heroes, many) == {item.number for item in many[-MOST_UNDECIDED:]}
    assert worth_keeping(none_yet, (), [entry(1, 20, 2.0), entry(2, 40, 3.0)]) == {1}, "a loss is in the manifest"
