"""Summary of a benchmark, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from core.errors import full_stop
from core.formatting import listed, memory_size, short_duration
from core.measure.bench.contenders import Kind
from core.measure.bench.growth import find_growth
from core.measure.bench.rows import Bench, Row, rows_of
from core.measure.bench.table import percent, size_text, spread_text
from core.measure.trial import OUTCOMES, transport_title

NO_PICTURES: Final = "Pictures are missing"


def heading(bench: Bench) -> str:
    """The recipe, mode and numbers of devices, in one line."""
    run = bench.run
    counts = sorted({one.contender.devices for one in bench.measured})
    mode = "DDP" if bench.kind == Kind.COMM else run.mode.label
    devices = f"{listed([str(count) for count in counts])} device{'' if counts == [1] else 's'}"
    return f"{run.recipe.title}, {mode}, on {devices}"


def sentences(bench: Bench) -> list[str]:
    """What the table says, the most important first."""
    found = _SENTENCES[bench.kind](bench, rows_of(bench))
    for one in bench.measured:
        if one.failure is not None:
            word = OUTCOMES[one.failure.outcome]
            found.append(f"{one.contender.name}: {word}. {full_stop(one.failure.cause)}")
    if bench.is_stopped:
        found.append("Stopped early: the figures are from the turns that were over.")
    return found


def _scaling_sentences(_bench: Bench, rows: Sequence[Row]) -> list[str]:
    verdicts = {"reached": "reached", "missed": "missed", "unclear": "within the spread"}
    return [
        f"{_devices(row)}: {_efficiency(row)} of the ideal speed; "
        f"the target of {percent(row['target'])} is {verdicts[row['verdict']]}."
        for row in rows
        if row["verdict"] is not None
    ]


def _efficiency(row: Row) -> str:
    return spread_text(row["efficiency"], row["efficiency_low"], row["efficiency_high"], percent)


def _sum_sentences(_bench: Bench, rows: Sequence[Row]) -> list[str]:
    found = []
    for devices in sorted({row["devices"] for row in rows}):
        own = [row for row in rows if row["devices"] == devices and row.get("is_model")]
        if own:
            each = "; ".join(
                f"{transport_title(row['transport'])} {short_duration(row['time_s'])}"
                for row in sorted(own, key=lambda row: float(row["time_s"]))
            )
            size = size_text(own[0]["size_bytes"])
            found.append(f"The model's gradients ({size}) on {devices} devices: {each}.")
    return found


def _memory_sentences(bench: Bench, rows: Sequence[Row]) -> list[str]:
    found = []
    for one in bench.measured:
        peaks = [row["peak_bytes"] for row in rows if row["devices"] == one.contender.devices and "peak_bytes" in row]
        if not peaks:
            continue
        growths = [find_growth(answer.memory_bytes) for answer in one.turns[-1].answers]
        known = [growth for growth in growths if growth is not None]
        worst = max(known, key=lambda growth: growth.bytes_per_step - growth.error, default=None)
        verdict = worst.sentence if worst is not None else "Too few steps to judge a leak; give more --seconds."
        found.append(f"{_devices({'devices': one.contender.devices})}: peak {memory_size(max(peaks))} each. {verdict}")
    return found


def _accumulation_sentences(_bench: Bench, rows: Sequence[Row]) -> list[str]:
    found = []
    for devices in sorted({row["devices"] for row in rows}):
        own = [row for row in rows if row["devices"] == devices and row["step_ratio"] is not None]
        if len(own) > 1:
            best, worst = (pick(own, key=lambda row: float(row["step_ratio"])) for pick in (min, max))
            found.append(
                f"{_devices(best)}: micro-batch {best['micro_batch']} × {best['accumulation']} is the fastest; "
                f"{worst['micro_batch']} × {worst['accumulation']} takes {worst['step_ratio']:.2f} × as long "
                f"({worst['step_ratio_low']:.2f} to {worst['step_ratio_high']:.2f} ×)."
            )
    return found


def _devices(row: Row) -> str:
    return f"{row['devices']} device{'' if row['devices'] == 1 else 's'}"


_SENTENCES: Final[dict[Kind, Callable[[Bench, Sequence[Row]], list[str]]]] = {
    Kind.WEAK: _scaling_sentences,
    Kind.STRONG: _scaling_sentences,
    Kind.COMM: _sum_sentences,
    Kind.MEMORY: _memory_sentences,
    Kind.ACCUMULATION: _accumulation_sentences,
}
