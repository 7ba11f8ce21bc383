"""Texts of New run's memory strip: memory and time of the run, every mode beside it, and remedies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from core.config.mode import Mode
from core.errors import RankdeckError, sentences
from core.formatting import UNKNOWN, byte_size, listed, megabytes, memory_size, number, percent, rate, short_duration
from core.launch.resolved import ResolvedRun
from core.machine.devices.names import short_label
from core.measure.estimate.free import Verdict
from core.measure.estimate.modes import ModeEstimate, Need
from core.measure.estimate.overview import Overview, hours_text
from core.measure.estimate.remedies import Remedy
from core.measure.estimate.speed import BalanceGain, TimeEstimate, can_balance

NO_BREAK: Final = "\N{NO-BREAK SPACE}"
# Name and tone of each verdict.
_VERDICTS: Final[dict[Verdict, tuple[str, str]]] = {
    "fits": ("Fits", "success"),
    "tight": ("Tight", "warning"),
    "too_large": ("Does not fit", "error"),
    "unknown": ("Memory not known", "muted"),
}
WEIGHTS_FIT: Final = "Weights fit"
_PARTS: Final = {
    "parameters": "Weights",
    "gradients": "Gradients",
    "optimizer": "Optimizer",
    "activations": "Activations",
    "communication": "Exchange between devices",
    "copy": "Copy for a checkpoint",
    "framework": "PyTorch and the recipe",
    "allocator": "Gaps",
}


@dataclass(frozen=True, slots=True)
class ModeLine:
    """One mode beside the others.

    Attributes:
        name: "DDP", "ZeRO 2".
        need: Of the device that needs most; empty for a mode that cannot be used.
        verdict, tone: As a word, and its colour.
        parts: Of the need, a line each; or why the mode cannot be used.
        is_chosen: It is the draft's mode.
        time: Speed-up and time; empty while nothing is known.
    """

    name: str
    need: str
    verdict: str
    tone: str
    parts: str
    is_chosen: bool
    time: str = ""


@dataclass(frozen=True, slots=True)
class BalanceText:
    """A proposal to share samples out by speed: the reason, the gain, and whether it can be measured now."""

    text: str
    gain: str = ""
    can_measure: bool = False


class Timed(Enum):
    """Whether steps were timed on each device of a draft."""

    NO = auto()
    NOW = auto()
    WHILE_TRAINING = auto()  # another run trains, so none is timed
    YES = auto()


@dataclass(frozen=True, slots=True)
class MemoryText:
    """Texts of the memory strip.

    Attributes:
        verdict, tone: Of the chosen mode, as a word, and its colour.
        figure: The need and the free memory that decide, and no others.
        detail: The device or memory that decides, in one line.
        note: Why something is not known, as a sentence.
        totals: Memory of the machine, disk space, a line each.
        time: Of the chosen mode: seconds a step, speed-up, time.
        advice: The recommendation, or the reason why there is none.
        balance: The proposal of load balancing; None where it brings nothing.
    """

    verdict: str
    tone: str
    figure: str = ""
    detail: str = ""
    note: str = ""
    modes: tuple[ModeLine, ...] = ()
    totals: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    time: str = ""
    advice: str = ""
    balance: BalanceText | None = None

    @property
    def is_too_large(self) -> bool:
        """Whether the run does not fit, so that a start asks first."""
        return self.tone == "error"


TIMING: Final = "Timing steps and the link between the devices…"
MEASURING: Final = MemoryText("Estimating memory…", "muted", detail="The model is built in a process of its own.")
NOT_ESTIMATED: Final = MemoryText("Memory not known", "muted", detail="Only the script knows its model.")
INCOMPLETE: Final = MemoryText("Memory not known", "muted", detail="A setting has to be fixed first.")


def memory_text(made: Overview, *, is_timing: bool = False) -> MemoryText:
    """Format an estimate; `is_timing`: steps and link are being timed."""
    chosen, note = made.chosen, made.note
    measured = made.figures.is_measured
    verdict, tone = _VERDICTS[chosen.verdict]
    need = chosen.worst
    if chosen.verdict == "unknown" and need.free_bytes is not None and made.figures.is_least:
        verdict = WEIGHTS_FIT
    times = made.times or (None,) * len(made.modes)
    modes = tuple(
        _mode_line(mode, mode.variant == chosen.variant, measured, time)
        for mode, time in zip(made.modes, times, strict=True)
    )
    own = made.time
    return MemoryText(
        verdict,
        tone,
        _figure(need, chosen.verdict),
        _detail(made, need),
        note,
        modes,
        _totals(made),
        made.remedies,
        TIMING if is_timing else "" if own is None else _time(own),
        " ".join(filter(None, (made.time_note, made.advice if own is None else made.advice or own.reason))),
    )


def balance_text(run: ResolvedRun, gain: BalanceGain | None, timed: Timed) -> BalanceText | None:
    """Propose load balancing where devices are unlike or were measured to be; None where it brings nothing.

    Args:
        run: The draft's.
        gain: From steps that were timed; None where it is not worth it, or not known.
        timed: Whether it is known.
    """
    names = [short_label(device) for device in run.devices]
    if not can_balance(run):
        return None
    if gain is not None:
        waits = f"Measured: in equal shares {names[gain.waiting]} waits {percent(gain.waits)} of each step."
        shares = " · ".join(f"{name} {count}" for name, count in zip(names, gain.shares, strict=True))
        return BalanceText(f"{waits} By speed: {shares} samples.", f"{gain.speedup:.2g} × the speed")
    if timed is Timed.YES or len({device.model for device in run.devices}) == 1:
        return None
    unlike = listed(list(dict.fromkeys(names)))
    waits = f"{unlike} differ. In equal shares, the faster wait for the slowest at each step."
    if timed is Timed.NO:
        return BalanceText(f"{waits} How long was not measured yet.", can_measure=True)
    later = "Timing steps on each of them…" if timed is Timed.NOW else "It can be measured once no run is training."
    return BalanceText(f"{waits} {later}")


def unknown_text(error: RankdeckError) -> MemoryText:
    return MemoryText(*_VERDICTS["unknown"], detail=error.cause, note=sentences(error.cause, error.window_step))


def _figure(need: Need, verdict: Verdict) -> str:
    if verdict == "too_large" or need.free_bytes is None:
        return need.text
    least = "at least " if verdict == "unknown" else ""
    return f"{least}{memory_size(need.bytes)} of {memory_size(need.free_bytes)}"


def _detail(made: Overview, need: Need) -> str:
    """Name the device or memory that decides, and the rest that stays free."""
    chosen = made.chosen
    if chosen.verdict == "unknown":
        return made.figures.note or "Of the parameters alone; the rest is measured next."
    here = chosen.devices
    if need.device is None:
        names = [short_label(one.device) for one in here]
        shares = len(names) > 1 and here[0].device.kind == "cpu"
        return (
            f"{listed(names)} share this computer's memory." if shares else f"{need.place[:1].upper()}{need.place[1:]}."
        )
    left = min((free - one.memory.total for one in here if (free := one.need.free_bytes) is not None), default=0)
    alike = len(here) > 1 and len({(one.device.model, one.memory.total) for one in here}) == 1
    where = f"On each of {len(here)} GPUs" if alike else f"{need.place[:1].upper()}{need.place[1:]}"
    return f"{where}; {memory_size(left)} stays free." if left > 0 else f"{where}."


def _time(time: TimeEstimate) -> str:
    """Format the chosen mode's time as one line."""
    step = f"{short_duration(time.step_s)} a step".replace(" ", NO_BREAK) if time.step_s is not None else ""
    return " · ".join(filter(None, (step, _gains(time, "× one device"))))


def _gains(time: TimeEstimate, times: str = "×") -> str:
    """Speed-up and time, as far as they are known."""
    speedup = "" if time.speedup is None or time.name == Mode.SINGLE else f"{number(time.speedup, 2)} {times}"
    hours = "" if time.hours is None else hours_text(time.hours)
    return " · ".join(part.replace(" ", NO_BREAK) for part in (speedup, hours) if part)


def _mode_line(mode: ModeEstimate, is_chosen: bool, measured: bool, time: TimeEstimate | None) -> ModeLine:
    name = mode.variant.title
    if mode.reason:
        return ModeLine(name, "", UNKNOWN, "muted", mode.reason, is_chosen)
    largest = max(mode.devices, key=lambda need: need.memory.total)
    sizes = largest.memory.as_dict() | ({} if measured else {"activations": None})
    parts = [f"{text}: {memory_size(sizes[part])}" for part, text in _PARTS.items()]
    verdict, tone = _VERDICTS[mode.verdict] if mode.verdict != "unknown" else (UNKNOWN, "muted")
    lines = [mode.sentence(), f"{short_label(largest.device)}:", *parts, *_time_parts(time)]
    gains = "" if time is None else _gains(time)
    return ModeLine(name, memory_size(mode.largest), verdict, tone, "\n".join(lines), is_chosen, gains)


def _time_parts(time: TimeEstimate | None) -> list[str]:
    if time is None or time.step_s is None:
        return [] if time is None else [time.reason]
    parts = [f"Time of a step: {short_duration(time.step_s)}"]
    if time.exchange_s:
        parts.append(f"Of that in the exchange: {short_duration(time.exchange_s)}")
    if time.sent_bytes:
        parts.append(f"Sent by each device: {megabytes(time.sent_bytes)}")
    if time.tokens_per_s is not None:
        parts.append(f"Speed: {rate(time.tokens_per_s, 'tok/s')}")
    return parts


def _totals(made: Overview) -> tuple[str, ...]:
    chosen, free = made.chosen, made.free
    lines = [f"Memory of this computer: {memory_size(chosen.host_bytes)} of {memory_size(free.ram)} free"]
    if chosen.commit_bytes is not None:
        lines.append(f"With the page file: {memory_size(chosen.commit_bytes)} of {memory_size(free.commit)} free")
    copies = made.run.config.keep_checkpoints + 1
    each = f"{copies} × {byte_size(chosen.checkpoint_bytes)}"
    lines.append(f"Checkpoints: {byte_size(chosen.disk_bytes)} ({each}) of {byte_size(free.disk)} free")
    return tuple(lines)
