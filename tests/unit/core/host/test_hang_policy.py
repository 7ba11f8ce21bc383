"""What a run does about ranks that hang."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.host.failures import RankFailure
from core.host.hang_policy import next_step, restart_limit

pytestmark = pytest.mark.windows


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
