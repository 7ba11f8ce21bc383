"""How long ranks that outlived a failure are waited for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from core.host.attempt_end import SurvivorCheckpoint

TRAINS: dict[str, Any] = {"done": None, "exited_at": None}
DONE: dict[str, Any] = {"done": object(), "exited_at": None}
EXITED: dict[str, Any] = {"done": None, "exited_at": 5.0}


@pytest.mark.parametrize(
    ("survivors", "now", "committing", "over"),
    [
        ([], 1.0, False, True),
        ([], 1.0, True, True),  # nothing to save, whoever commits
        ([TRAINS], 1.0, False, False),
        ([TRAINS, DONE], 1.0, False, False),
        ([DONE, EXITED], 1.0, False, True),
        ([DONE, EXITED], 1.0, True, False),  # their checkpoint is being written
        ([TRAINS], 9.9, True, False),
        ([TRAINS], 10.0, True, True),  # the time is up
    ],
)
def test_survivors_are_waited_for_until_they_have_saved(
    survivors: list[dict[str, Any]], now: float, committing: bool, over: bool
) -> None:
    ranks: list[Any] = [SimpleNamespace(**rank) for rank in survivors]
    assert SurvivorCheckpoint(ranks, 10.0).is_over(now, committing) is over
