"""Which rank holds up the others, from where each one is."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.host.failures import RankFailure
from core.host.watches.hang_diagnosis import HangDiagnosis, RankView, diagnose, next_step, restart_limit, title
from core.protocol.messages import Stacks

WAITS = Stacks("…", "all_reduce/peer_watch.py:116 in _wait_long", "yes")
BACKWARD = Stacks("…", "autograd/graph.py:800 in _engine_run_backward", "perhaps")
BUSY = Stacks("…", "mine/train.py:57 in loss", "no")


def view(rank: int, stacks: Stacks | None, **fields: object) -> RankView:
    return RankView(rank, f"CPU {rank}", stacks=stacks, **fields)  # type: ignore[arg-type]


STOPPED = {"stopped": True, "process": "is stopped"}


@pytest.mark.parametrize(
    ("views", "found"),
    [
        ([view(0, WAITS), view(1, BUSY)], HangDiagnosis((1,), True)),
        ([view(0, BACKWARD), view(1, BUSY)], HangDiagnosis((1,), True)),
        ([view(0, WAITS), view(1, None)], HangDiagnosis((1,), True)),
        ([view(0, BUSY), view(1, None, **STOPPED)], HangDiagnosis((1,), True)),  # a GPU's queue hides that 0 waits
        ([view(0, WAITS, late=False), view(1, None, **STOPPED)], HangDiagnosis((1,), True)),
        ([view(0, None), view(1, None, **STOPPED)], HangDiagnosis((1,), True)),  # 0 may hang in what 1 left half done
        ([view(0, WAITS), view(1, BUSY), view(2, BUSY)], HangDiagnosis((1, 2), True)),
        ([view(0, WAITS), view(1, WAITS)], HangDiagnosis((0, 1), False)),
        ([view(0, BACKWARD), view(1, BACKWARD)], HangDiagnosis((0, 1), False)),
        ([view(0, BUSY), view(1, BUSY)], HangDiagnosis((0, 1), False)),
        ([view(0, None, **STOPPED), view(1, None, **STOPPED)], HangDiagnosis((0, 1), True)),
        ([view(0, None, asked=False), view(1, None, asked=False, late=False)], HangDiagnosis((0,), False)),
    ],
)
def test_of_ranks_that_wait_for_each_other(views: list[RankView], found: HangDiagnosis) -> None:
    assert diagnose(views, connected=True) == found


@pytest.mark.parametrize(
    ("stuck", "certain"), [(view(1, BUSY), False), (view(1, None), True), (view(1, None, **STOPPED), True)]
)
def test_of_ranks_by_themselves_the_silent_ones_are_named(stuck: RankView, certain: bool) -> None:
    assert diagnose([view(0, BUSY, late=False), stuck], connected=False) == HangDiagnosis((1,), certain)


def test_what_is_said_of_each() -> None:
    assert view(0, WAITS).text == "CPU 0 waits for other devices (all_reduce/peer_watch.py:116 in _wait_long)."
    assert view(0, BACKWARD).text == "CPU 0 is in a backward pass, which waits for other devices."
    assert view(0, BUSY).text == "CPU 0 is at mine/train.py:57 in loss."
    assert view(0, None, **STOPPED).text == "CPU 0 does not answer; its process is stopped."
    assert view(0, None, asked=False, process="sleeps").text == "CPU 0: its process sleeps."


def test_titles() -> None:
    sure, unsure = HangDiagnosis((1,), True), HangDiagnosis((0, 1), False)
    assert title(["CPU 1"], sure, connected=True) == "CPU 1 holds up the other devices"
    assert title(["CPU 1", "CPU 2"], sure, connected=True) == "CPU 1 and CPU 2 hold up the other devices"
    assert title(["CPU 1"], sure, connected=False) == "CPU 1 hangs"
    assert title(["CPU 0", "CPU 1"], sure, connected=False) == "CPU 0 and CPU 1 hang"
    assert title(["CPU 0", "CPU 1"], unsure, connected=True) == "CPU 0 and CPU 1 may hang"


@pytest.mark.parametrize(
    ("policy", "max_restarts", "hung", "limit"),
    [
        ("warn", 2, False, 2),
        ("restart", 0, False, 0),  # other failures have their own setting
        ("restart", 0, True, 3),
        ("restart", 7, True, 7),
        ("stop", 7, True, 0),
    ],
)
def test_how_often_a_run_is_restarted(policy: str, max_restarts: int, hung: bool, limit: int) -> None:
    config = RunConfig(hang_policy=policy, max_restarts=max_restarts)
    assert restart_limit(config, RankFailure(0, 1.0, hung=hung)) == limit
    assert restart_limit(config, None) == max_restarts


def test_each_policy_says_what_happens_and_where_the_stacks_are() -> None:
    texts = [next_step(policy, "logs/rank0.log", "the run continues.") for policy in ("warn", "restart", "stop")]
    assert all("The stacks are in logs/rank0.log." in text and "the run continues." in text for text in texts)
    assert ["was not stopped" in text for text in texts] == [True, False, False]
    assert "at most 3 times" in texts[1] and "ends now" in texts[2]
