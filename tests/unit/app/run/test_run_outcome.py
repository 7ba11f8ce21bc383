"""What the card below the tabs says of a run, as a table."""

from __future__ import annotations

import pytest

from app.run.run_outcome import RunOutcome, run_outcome
from app.run_data.run_series import RunSeries
from core.recipes.catalog import get_recipe
from core.recipes.heroes import Hero
from core.run_folder.state import RunState
from tests.helpers.synthetic_run import series_of

ERROR = {"title": "CPU 1: out of memory", "cause": "It needed 3 GB.", "next_step": "Halve the micro-batch."}
LOGGED = {**ERROR, "log": "logs/rank1.log"}
BARE = {"title": "No", "cause": "line 6: NaN", "next_step": "Lower the learning rate"}
OLD = {**ERROR, "title": "Rank 1: out of memory"}
WHY = "DDP could not start, so the run continues on CPU 0 alone. It ended. See logs/rank1.log for details."
TOLD = "It needed 3 GB. Halve the micro-batch."
ALONE = "Continuing on one device"
WAS_ALONE = "Fell back to one device"
AGAIN = f"{WHY} To try all devices again"


@pytest.mark.parametrize(
    ("state", "error", "fallback", "said"),
    [
        ("training", None, None, None),
        ("stopped", None, None, None),
        ("finished", None, None, RunOutcome("success", "Finished.", "", has_log=False)),
        ("failed", LOGGED, None, RunOutcome("error", ERROR["title"], TOLD, "rank1.log")),
        ("failed", OLD, None, RunOutcome("error", OLD["title"], TOLD, "rank1.log")),
        ("failed", None, None, RunOutcome("error", "The run failed", "")),
        ("failed", BARE, None, RunOutcome("error", "No", "line 6: NaN. Lower the learning rate.")),
        ("failed", LOGGED, WHY, RunOutcome("error", ERROR["title"], TOLD, "rank1.log")),
        ("interrupted", ERROR, None, RunOutcome("warning", ERROR["title"], TOLD, has_log=False)),
        ("training", None, WHY, RunOutcome("warning", ALONE, f"{AGAIN}, stop the run and resume it.", "rank1.log")),
        ("stopped", None, WHY, RunOutcome("warning", WAS_ALONE, f"{AGAIN}, resume the run.", "rank1.log")),
        ("finished", None, WHY, RunOutcome("success", "Finished.", WHY, "rank1.log")),
    ],
)  # fmt: skip
def test_what_is_said(state: str, error: dict[str, str] | None, fallback: str | None, said: RunOutcome | None) -> None:
    assert run_outcome(RunState("a", state=state, error=error, fallback=fallback), RunSeries()) == said


def test_trouble_is_told_while_the_run_lives() -> None:
    state = RunState("a", state="training", trouble=ERROR, fallback=WHY)
    assert run_outcome(state, RunSeries()) == RunOutcome("error", ERROR["title"], TOLD)
    assert run_outcome(state.replace(state="interrupted", error=None), RunSeries()) != RunOutcome(
        "error", ERROR["title"], TOLD
    )


def test_a_device_that_slows_down_the_others_is_told_while_the_run_lives() -> None:
    slowed = {"title": "CPU 1 slows down the other devices", "cause": "CPU 0 waits.", "gain": 0.2, "ranks": [1]}
    slowed |= {"next_step": "Resume it with --balance measured.", "window_step": "Resume it with load balancing."}
    state, series = RunState("a", state="training", mode="ddp"), RunSeries()
    told = run_outcome(state, series, pressing=slowed)
    text = "CPU 0 waits. Resume it with load balancing."
    assert told == RunOutcome("warning", str(slowed["title"]), text, has_log=False, balances=True)
    without = run_outcome(state, series, pressing={**slowed, "gain": 0.0})
    sharded = run_outcome(state.replace(mode="zero"), series, pressing=slowed)
    assert without is not None and sharded is not None and not without.balances and not sharded.balances
    assert run_outcome(state.replace(state="stopped"), series, pressing=slowed) is None
    failing = run_outcome(state.replace(trouble=ERROR), series, pressing=slowed)
    assert failing is not None and failing.title == ERROR["title"], "what is worse comes first"


def test_a_hang_leads_to_the_log_of_the_device_at_fault() -> None:
    alert = {"kind": "hang", "title": "CPU 1 holds up the other devices", "cause": "It is stopped.", "ranks": [1]}
    told = run_outcome(RunState("a", state="training", mode="ddp"), RunSeries(), pressing=alert)
    assert told == RunOutcome("warning", str(alert["title"]), "It is stopped.", "rank1.log")


def test_a_run_that_was_stopped_by_a_rule_says_why() -> None:
    state = RunState("a", state="stopped", stopped_by="The validation loss has reached 2.", checkpoint=3)
    told = run_outcome(state, RunSeries(), stopping={"kind": "early_stop"})
    assert told == RunOutcome("success", "Stopped early.", state.stopped_by, has_log=False)
    full = {"kind": "disk_full", "next_step": "Free some space, then resume the run."}
    told = run_outcome(state.replace(stopped_by="The drive had 3 MB free."), RunSeries(), stopping=full)
    text = "The drive had 3 MB free. Free some space, then resume the run."
    assert told == RunOutcome("warning", "Stopped before the disk was full", text, has_log=False)


def test_another_engine_is_not_one_device() -> None:
    words = "DeepSpeed could not start ZeRO stage 2 on 2 devices, so PyTorch's engine is used instead. Why."
    said = run_outcome(RunState("a", state="training", fallback=words, world_size=2), RunSeries())
    assert said is not None
    assert said.title == "Continuing without DeepSpeed"
    assert said.text == f"{words} To try DeepSpeed again, stop the run and resume it."


def test_independent_devices_are_not_one_device() -> None:
    state = RunState("a", state="training", mode="independent", fallback="Why.", world_size=2)
    said, ended = run_outcome(state, RunSeries()), run_outcome(state.replace(state="stopped"), RunSeries())
    assert said is not None and ended is not None
    assert (said.title, ended.title) == ("Each device trains its own model", "Fell back to independent training")
    assert said.text == "Why. To try the mode you chose again, stop the run and resume it."


def test_a_finished_run_says_how_long_it_took_and_what_was_best() -> None:
    series = series_of(
        {"event": "launch", "ts": 100.0},
        {"event": "step", "rank": 0, "step": 1, "ts": 110.0, "loss": 3.0},
        {"event": "step", "rank": 0, "step": 2, "ts": 690.0, "loss": 2.0},
        {"event": "eval", "step": 1, "ts": 120.0, "val_loss": 1.82},
        {"event": "eval", "step": 2, "ts": 690.0, "val_loss": 1.9},
    )
    said = run_outcome(RunState("a", state="finished"), series)
    assert said is not None and said.title == "Finished in 9 m 50 s. Best validation loss 1.82 at step 1."
    without = series_of({"event": "step", "rank": 0, "step": 2, "ts": 690.0, "loss": 2.0})
    said = run_outcome(RunState("a", state="finished"), without)
    assert said is not None and said.title == "Finished in 0 s. Last loss 2.00."
    ppo = series_of({"event": "step", "rank": 0, "step": 2, "ts": 690.0, "loss": 0.1, "episode_return": 21.0})
    said = run_outcome(RunState("a", state="finished"), ppo, get_recipe("clstm_ppo").heroes)
    assert said is not None and said.title == "Finished in 0 s. Last return 21.0."


def test_a_failure_says_the_step_of_its_checkpoint() -> None:
    series = series_of({"event": "commit", "step": 450, "checkpoint": 3, "ts": 1.0})
    said = run_outcome(RunState("a", state="failed", error=ERROR, checkpoint=3), series)
    assert said is not None and said.text.endswith("The newest checkpoint is at step 450.")
    said = run_outcome(RunState("a", state="failed", error=ERROR), series)
    assert said is not None and "checkpoint" not in said.text


def test_what_was_best_is_what_the_recipe_names() -> None:
    series = series_of(
        {"event": "eval", "step": 10, "ts": 1.0, "val_loss": -18.0, "val_return": 18.0},
        {"event": "eval", "step": 20, "ts": 2.0, "val_loss": -12.0, "val_return": 12.0},
    )
    heroes = (Hero("kl", "KL"), Hero("val_return", "Evaluation return", better="higher"))
    said = run_outcome(RunState("a", state="finished"), series, heroes)
    assert said is not None and said.title == "Finished. Best evaluation return 18.0 at step 10."
