"""What a run's metrics come to in one line."""

from __future__ import annotations

from typing import Any

import pytest

from core.cli.progress_line import RunProgress
from core.recipes.main_metric import MainMetrics


def _step(step: int, rank: int = 0, **values: Any) -> dict[str, Any]:
    return {"event": "step", "step": step, "rank": rank, "ts": 1000.0 + step / 2, **values}


def _launch(**values: Any) -> dict[str, Any]:
    return {"event": "launch", "rank": -1, "mode": "ddp", "world_size": 2, "total_steps": 100, **values}


def test_nothing_seen_yet() -> None:
    progress = RunProgress()
    assert (progress.step, progress.value, progress.tokens_per_s, progress.left_s) == (0, None, None, None)
    assert progress.text() == "step 0 · loss –"


def test_a_scripts_epoch_is_shown_as_it_was_printed() -> None:
    progress = RunProgress()
    progress.take(_launch())
    progress.first_epoch = 0
    for epoch, shown in ((1, "epoch 1 "), (1.69, "epoch 1 "), (2, "epoch 2 "), (1e300, "epoch 2 ")):
        progress.take(_step(3, 0, loss=2.0, epoch=epoch))
        assert shown in progress.text()


def test_ranks_in_step_add_up_their_tokens() -> None:
    progress = RunProgress()
    progress.take(_launch())
    for step in (1, 2, 3):
        for rank, loss in ((0, 2.0), (1, 3.0)):
            progress.take(_step(step, rank, loss=loss, tokens_per_s=1000.0, epoch=1))
    progress.take({"event": "eval", "val_loss": 2.25, "step": 3, "rank": 0})
    assert progress.text() == "step 3/100 · epoch 2 · loss 2.500 · val 2.250 · 2,000 tok/s · 48 s left"


def test_independent_ranks_show_the_one_behind() -> None:
    progress = RunProgress()
    progress.take(_launch(mode="independent"))
    progress.take(_step(9, 0))
    progress.take(_step(4, 1))
    assert progress.step == 4


def test_a_new_launch_forgets_the_ranks_of_the_one_before() -> None:
    progress = RunProgress()
    progress.take(_step(50, 1, loss=9.0))
    progress.take(_launch())
    progress.take(_step(41, 0, loss=1.0))
    assert (progress.step, progress.value) == (41, 1.0)


def test_the_figure_is_the_recipes_own() -> None:
    progress = RunProgress()
    progress.metric = MainMetrics().of("clstm_ppo")
    progress.take(_step(3, loss=-0.02, episode_return=21.0))
    progress.take({"event": "eval", "val_loss": -19.0, "val_return": 19.0, "step": 3, "rank": 0})
    assert progress.text() == "step 3 · return 21.00 · val 19.00"


@pytest.mark.parametrize("line", [{}, {"event": "step"}, {"event": "step", "step": "x"}, _step(1, loss=None)])
def test_a_line_that_lacks_figures_breaks_nothing(line: dict[str, Any]) -> None:
    progress = RunProgress()
    progress.take(line)
    assert progress.value is None


def test_where_a_goal_ends_the_run_its_progress_is_shown() -> None:
    progress = RunProgress()
    progress.take({"event": "step", "rank": 0, "step": 8, "ts": 10.0, "loss": 2.5})
    progress.take({"event": "step", "rank": 0, "step": 12, "ts": 14.0, "loss": 2.5})
    progress.goal = "0 of 600 episodes"
    assert progress.text() == "step 12 · 0 of 600 episodes · loss 2.500", "no time left while it is not known"
    progress.goal, progress.total_steps = "150 of 600 episodes", 48
    assert progress.text() == "step 12/48 · 150 of 600 episodes · loss 2.500 · 36 s left"
