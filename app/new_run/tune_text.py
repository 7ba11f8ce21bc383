"""Texts of tuning: the table of trials, and the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.errors import RankdeckError
from core.launch.resolved import ResolvedRun
from core.measure.tune.choice import check_tunable
from core.measure.tune.search import Result
from core.measure.tune.tuned import trial_cells

TIP: Final = "Try settings with real steps on the selected devices for about a minute"
TRAINING: Final = "A run is training. Trials would slow it down, and it would slow them down. Tune when it has ended."
SCRIPT: Final = "Your script chooses its own batches and steps, so Rankdeck cannot try others with it."
UNFIXED: Final = "Fix the marked settings first."


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One row of the table.

    Attributes:
        cells: In the order of `COLUMNS`.
        tone: Of the last cell.
        tip: Why there are no figures; empty where there are.
        is_best: The fastest so far.
    """

    cells: tuple[str, ...]
    tone: str = ""
    tip: str = ""
    is_best: bool = False


def why_not_tunable(run: ResolvedRun | None, *, is_script: bool, is_training: bool) -> str:
    """Why a draft cannot be tuned, as a sentence; empty where it can.

    Args:
        run: The draft's; None where a setting is wrong.
        is_script: It is a program of the person's own.
        is_training: A run trains on this machine.
    """
    if is_script:
        return SCRIPT
    if run is None:
        return UNFIXED
    try:
        check_tunable(run)
    except RankdeckError as error:
        return f"{error.cause} {error.window_step}"
    return TRAINING if is_training else ""


def trial_lines(results: tuple[Result, ...], best: Result | None) -> tuple[TrialLine, ...]:
    return tuple(
        TrialLine(
            trial_cells(result, is_best=result is best),
            "success" if result is best else "" if result.is_measured else "warning",
            result.cause,
            result is best,
        )
        for result in results
    )


def about_text(run: ResolvedRun) -> str:
    each = " of each device" if run.mode.is_apart else ""
    devices = "one device" if run.world_size == 1 else f"{run.world_size} devices"
    share = run.batch.micro * run.batch.accumulation
    return (
        f"Real steps in {run.mode.label} on {devices} show "
        f"which settings are fastest. The global batch{each} stays {run.batch.global_}, so micro-batches up to {share} "
        "can be tried. Nothing is trained or saved."
    )
