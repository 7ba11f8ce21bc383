"""Options of charts with ranks: which curves are hidden, and which ranks are offered."""

from __future__ import annotations

from app.plots.curve_options import MOST_RANKS, CurveOptions
from app.run_data.run_series import RunSeries
from app.run_data.series import Series

KEYS = ("rank 0", "rank 1", "eval")


def test_curves_are_hidden_and_shown() -> None:
    options = CurveOptions()
    options.choose("rank 1", False, KEYS)
    options.choose("eval", False, KEYS)
    assert options.hidden == {"rank 1", "eval"}
    options.choose("rank 1", False, KEYS)
    assert [key for key in KEYS if options.is_hidden(key)] == ["eval"]


def test_a_curve_is_left_alone_and_all_come_back() -> None:
    options = CurveOptions()
    options.choose("rank 1", True, KEYS)
    assert [key for key in KEYS if options.is_hidden(key)] == ["rank 0", "eval"]
    options.choose("rank 1", True, KEYS)
    assert not any(options.is_hidden(key) for key in KEYS)


def test_of_thousands_of_ranks_some_are_offered() -> None:
    run = RunSeries({f"rank{rank}": Series() for rank in range(3000)})
    offered = CurveOptions().offered(run)
    assert len(offered) <= MOST_RANKS and offered[0] == 0 and offered[-1] > 2800
    assert CurveOptions(hidden={"rank 0"}).ranks(run) == offered[1:]
