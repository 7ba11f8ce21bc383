"""Runs that end by a stop rule, with the real host: what is saved, exported and said, also over a resume."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError
from tests.helpers.forked_host import FAKE_RECIPE
from tests.helpers.host_fixture import STOPPED, FakeRun, MakeRun

LOSSES = [3.0, 2.5, 2.0, 2.2, 2.1, 2.0, 1.9995, 2.3]


def alerts(run: FakeRun, kind: str = "early_stop") -> list[dict[str, Any]]:
    """The alerts of one kind."""
    return [line for line in run.events("alert") if line["kind"] == kind]


def exported_step(run: FakeRun) -> int:
    """The step of the weights that were exported: of the rank that made them, as independent ranks differ in theirs."""
    for folder in run.store.checkpoints.iterdir():
        for weights in folder.glob("weights*"):
            if weights.read_text(encoding="utf-8") == run.weights():
                positions = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["positions"]
                step: int = positions[weights.stem.removeprefix("weights").removeprefix("_rank") or "0"]["step"]
                return step
    raise AssertionError("no checkpoint holds the exported weights")


def kept_steps(run: FakeRun) -> list[int]:
    """The steps of the checkpoints that are there."""
    held = [json.loads(path.read_text(encoding="utf-8")) for path in run.store.checkpoints.glob("*/manifest.json")]
    return sorted(manifest["step"] for manifest in held)


@pytest.mark.parametrize("mode", ["ddp", "independent"])
def test_a_run_that_no_longer_improves_stops_and_exports_its_best(make_run: MakeRun, mode: str) -> None:
    run = make_run(mode=mode, early_stop_patience=4, keep_checkpoints=1)
    run.behave(steps=100_000, step_s=0.02, eval_every=5, commit_every=5, val_losses=LOSSES).start()
    state = run.end()
    assert (state.state, state.exit_code, state.error) == (STOPPED, 0, None)
    assert "The validation loss has not improved by more than 0.001 in 4 evaluations; best" in state.stopped_by
    (alert,) = alerts(run)
    assert (alert["rule"], alert["cause"]) == ("early_stop_patience", state.stopped_by)
    (stop,) = run.events("stop_requested")
    (end,) = run.events("finished")
    assert stop["by"] == "early_stop_patience" and end["reason"] == state.stopped_by
    # 1.9995 is the best value, though no improvement.
    assert "best 2.000 at step 35" in state.stopped_by
    assert exported_step(run) == 35
    assert run.ledger()["completed_chunks"] is not None


def test_the_best_checkpoint_is_never_removed(make_run: MakeRun) -> None:
    run = make_run(early_stop_patience=50, keep_checkpoints=1)
    run.behave(steps=40, eval_every=4, commit_every=2, val_losses=[3.0, 1.0, 2.0]).start()
    run.end()
    assert kept_steps(run) == [8, 40]


def test_without_rules_the_recipe_says_which_checkpoint_is_best(make_run: MakeRun, tmp_path: Path) -> None:
    recipe = shutil.copytree(FAKE_RECIPE, tmp_path / "scored" / "fake")
    hero = '\n[[heroes]]\nmetric = "score"\nlabel = "Score"\nbetter = "higher"\n'
    manifest = recipe / "recipe.toml"
    manifest.write_text(manifest.read_text(encoding="utf-8") + hero, encoding="utf-8")
    for name, best in ((str(recipe), 24), (FAKE_RECIPE, 8)):
        run = make_run(recipe=name, keep_checkpoints=1)
        losses = [2.0, 1.0, 2.0, 2.0, 2.0, 3.0, 1.5]
        run.behave(steps=40, eval_every=4, commit_every=4, commits_all=True, val_losses=losses).start()
        run.end()
        assert kept_steps(run) == [best, 40], "the highest score or the lowest loss, and the newest"


def test_patience_is_counted_over_a_kill(make_run: MakeRun) -> None:
    run = make_run(early_stop_patience=6)
    run.behave(steps=100_000, step_s=0.02, eval_every=5, commit_every=5, val_losses=[2.0, 1.0, 3.0]).start()
    run.wait_for_step(26)
    run.kill_host()
    run.wait(lambda state: state.state == "interrupted")
    run.resume()
    state = run.end()
    assert state.state == STOPPED and state.attempt == 2
    assert "in 6 evaluations; best 1.000 at step 10" in state.stopped_by
    steps = [line["step"] for line in run.events("eval") if line["attempt"] == 2 and line["rank"] == 0]
    assert steps[0] > 10 and steps[-1] <= 45  # not six evaluations again
    assert exported_step(run) == 10


def test_a_run_resumed_after_its_stop_trains_until_its_next_evaluation(make_run: MakeRun) -> None:
    run = make_run(early_stop_patience=2)
    run.behave(steps=100_000, step_s=0.02, eval_every=5, val_losses=[2.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0]).start()
    first = run.end()
    assert "best 2.000 at step 5" in first.stopped_by
    run.resume(early_stop_patience=8).wait(lambda state: state.step >= 25)
    state = run.end()
    assert "in 8 evaluations; best 1.000 at step 25" in state.stopped_by


def test_a_run_stops_at_its_target(make_run: MakeRun) -> None:
    run = make_run(stop_at="val_loss=2.05").behave(steps=100_000, step_s=0.02, eval_every=5, val_losses=LOSSES).start()
    state = run.end()
    assert state.state == STOPPED
    assert state.stopped_by == "The validation loss has reached 2.000 at step 15 (target: 2.05 or lower)."
    assert exported_step(run) == 15


def test_training_time_counts_over_all_attempts(make_run: MakeRun) -> None:
    run = make_run(max_hours=4.0 / 3600).behave(steps=100_000, step_s=0.02, commit_every=10).start()
    run.wait(lambda state: state.trained_s >= 2.0)
    before = run.stop().end()
    assert before.stopped_by == "" and 2.0 <= before.trained_s < 4.0
    run.resume()
    state = run.end()
    assert state.state == STOPPED and "its time limit" in state.stopped_by
    assert state.trained_s >= 4.0
    with pytest.raises(ConfigError, match="has trained for"):
        run.resume()


def test_a_stop_by_a_person_names_no_rule(make_run: MakeRun) -> None:
    run = make_run(early_stop_patience=3).behave(steps=100_000).start()
    run.wait_for_step(3)
    assert run.stop().end().stopped_by == ""
    assert Path(run.store.model).is_file()
