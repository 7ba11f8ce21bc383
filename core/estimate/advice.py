"""Advice on how many devices to train on, in one sentence made of an estimate's figures. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from core.config.mode import Mode
from core.estimate.estimate import ModeEstimate
from core.estimate.prices import Prices
from core.estimate.speed import NO_STEP, TimeEstimate
from core.formatting import number
from core.launch.resolved import ResolvedRun


def advice(run: ResolvedRun, modes: Sequence[ModeEstimate], times: Sequence[TimeEstimate], prices: Prices) -> str:
    """What the figures recommend; empty for one device, and why nothing is recommended where too little is known.

    Modes that do not fit are left out; so are independent ranks, which train models of their own, unless they were
    chosen.
    """
    if run.world_size < 2:
        return ""
    one = times[0]
    pairs = [
        (mode, time)
        for mode, time in zip(modes, times, strict=True)
        if mode.mode != Mode.SINGLE and (mode.mode == Mode.INDEPENDENT) == (run.mode == Mode.INDEPENDENT)
    ]
    if one.samples_per_s is None:
        return one.reason or NO_STEP
    usable = [(mode, time) for mode, time in pairs if not mode.reason and mode.verdict != "too_large"]
    known = [(mode, time) for mode, time in usable if time.speedup is not None]
    if not known:
        return next((time.reason for _, time in usable if time.reason), "")
    mode, time = max(known, key=lambda pair: pair[1].speedup or 0.0)
    devices = _devices(run)
    speedup = f"{number(time.speedup, 2)} × {'as in an earlier run' if time.source == 'runs' else 'predicted'}"
    if modes[0].verdict == "too_large":
        return f"Use {devices} in {mode.label}, since the model does not fit one: {speedup}."
    if time.gain == "same":
        error = f"{100 * time.error:.0f}\N{NO-BREAK SPACE}%"
        return f"Use one device: {devices} in {mode.label} are about as fast ({speedup}, give or take {error})."
    if time.gain == "slower":
        return f"Use one device: {devices} in {mode.label} are not faster ({speedup})."
    return f"Use {devices} in {mode.label}: {', '.join([speedup, *_differences(one, time, prices)])}."


def _devices(run: ResolvedRun) -> str:
    kind = "cards" if all(device.kind == "cuda" for device in run.devices) else "devices"
    return f"both {kind}" if run.world_size == 2 else f"all {run.world_size} {kind}"


def _differences(one: TimeEstimate, other: TimeEstimate, prices: Prices) -> list[str]:
    """Time and money against one device."""
    found = []
    if one.hours is not None and other.hours is not None:
        found.append(f"{hours_text(abs(one.hours - other.hours))} {'less' if other.hours <= one.hours else 'more'}")
    if one.cost is not None and other.cost is not None:
        more = other.cost - one.cost
        found.append(f"{prices.amount(abs(more))} {'more' if more >= 0 else 'less'}")
    return found


def hours_text(hours: float) -> str:
    """A time as people plan with it: "0.4 h", "12 h", "25 min", "40 s"."""
    if hours >= 0.1:
        return f"{number(hours, 2)} h"
    return f"{number(60 * hours, 2)} min" if hours >= 1 / 60 else f"{number(3600 * hours, 2)} s"
