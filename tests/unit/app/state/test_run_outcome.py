"""What the bar over the plots says of a run, as a table."""

from __future__ import annotations

import pytest

from app.state.run_outcome import RunOutcome, run_outcome
from core.run_folder.state import RunState

ERROR = {"title": "CPU 1: out of memory", "cause": "It needed 3 GB.", "next_step": "Halve the micro-batch."}
LOGGED = {**ERROR, "log": "logs/rank1.log"}
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
        ("finished", None, None, None),
        ("failed", LOGGED, None, RunOutcome("error", ERROR["title"], TOLD, "rank1.log")),
        ("failed", OLD, None, RunOutcome("error", OLD["title"], TOLD, "rank1.log")),
        ("failed", None, None, RunOutcome("error", "The run failed", "")),
        ("failed", LOGGED, WHY, RunOutcome("error", ERROR["title"], TOLD, "rank1.log")),
        ("interrupted", ERROR, None, RunOutcome("warning", ERROR["title"], TOLD, resumes=True)),
        ("training", None, WHY, RunOutcome("warning", ALONE, f"{AGAIN}, stop the run and resume it.", "rank1.log")),
        ("stopped", None, WHY, RunOutcome("warning", WAS_ALONE, f"{AGAIN}, resume the run.", "rank1.log")),
        ("finished", None, WHY, RunOutcome("warning", WAS_ALONE, WHY, "rank1.log")),
    ],
)  # fmt: skip
def test_what_is_said(state: str, error: dict[str, str] | None, fallback: str | None, said: RunOutcome | None) -> None:
    assert run_outcome(RunState("a", state=state, error=error, fallback=fallback)) == said


def test_trouble_is_told_while_the_run_lives() -> None:
    state = RunState("a", state="training", trouble=ERROR, fallback=WHY)
    assert run_outcome(state) == RunOutcome("error", ERROR["title"], TOLD)
    assert run_outcome(state.replace(state="interrupted", error=None)) != RunOutcome("error", ERROR["title"], TOLD)


def test_another_engine_is_not_one_device() -> None:
    words = "DeepSpeed could not start ZeRO stage 2 on 2 devices, so PyTorch's engine is used instead. Why."
    said = run_outcome(RunState("a", state="training", fallback=words, world_size=2))
    assert said is not None
    assert said.title == "Continuing without DeepSpeed"
    assert said.text == f"{words} To try DeepSpeed again, stop the run and resume it."


def test_independent_devices_are_not_one_device() -> None:
    state = RunState("a", state="training", mode="independent", fallback="Why.", world_size=2)
    said, ended = run_outcome(state), run_outcome(state.replace(state="finished"))
    assert said is not None and ended is not None
    assert (said.title, ended.title) == ("Each device trains its own model", "Fell back to independent training")
    assert said.text == "Why. To try the mode you chose again, stop the run and resume it."
