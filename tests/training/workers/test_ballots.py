"""Looking whether a ballot is complete: a moment's waiting that ends just before the ballot does is no failure."""

from __future__ import annotations

import datetime

import pytest

pytest.importorskip("torch", reason="they are torch's collectives")

from workers.strategies.local_sgd import _completed

pytestmark = pytest.mark.windows


class Ballot:
    """Behaves as `torch.distributed.Work`: a wait with a limit raises at the limit, and what failed raises always.

    With real ranks the end falls between the two questions once in some thousand rounds.
    """

    def __init__(self, *, ends_at: str, failure: str = "") -> None:
        self._ends_at = ends_at
        self._failure = failure

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        if timeout is not None and self._ends_at != "before":
            raise RuntimeError("Operation timed out!")
        assert self._ends_at != "never", "it would wait for ever"
        if self._failure:
            raise RuntimeError(self._failure)
        return True

    def is_completed(self) -> bool:
        return self._ends_at != "never"


def test_an_end_at_the_very_limit_is_an_end() -> None:
    assert _completed(Ballot(ends_at="just after")) is True  # type: ignore[arg-type]
    assert _completed(Ballot(ends_at="before")) is True  # type: ignore[arg-type]
    assert _completed(Ballot(ends_at="never")) is False  # type: ignore[arg-type]


@pytest.mark.parametrize("ends_at", ["before", "just after"])
def test_a_lost_rank_is_a_failure(ends_at: str) -> None:
    with pytest.raises(RuntimeError, match="closed by peer"):
        _completed(Ballot(ends_at=ends_at, failure="Connection closed by peer"))  # type: ignore[arg-type]
