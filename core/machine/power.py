"""Power: whether this computer is kept awake while a run trains, and whether it runs on a battery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import psutil

from core.files.kept_settings import keep_settings, read_settings

BATTERY_NOTE: Final = (
    "This PC runs on its battery. Plug it in: GPUs are slower on a battery, and a run stops when it is empty."
)
_FILE: Final = "power.json"
_FORMAT: Final = "rankdeck-power"


@dataclass(frozen=True, slots=True)
class PowerSettings:
    """What a person has chosen.

    Attributes:
        keep_awake: The computer does not fall asleep by itself while a run trains.
    """

    keep_awake: bool = True


@dataclass(frozen=True, slots=True)
class Battery:
    """The computer's battery.

    Attributes:
        percent: How full it is.
        is_used: The computer is not plugged in.
    """

    percent: int
    is_used: bool


def read_power_settings() -> PowerSettings:
    """What was kept; the defaults where there is nothing."""
    return read_settings(_FILE, PowerSettings())


def keep_power_settings(settings: PowerSettings) -> None:
    """Keeps them for runs that are started from now on.

    Raises:
        RankdeckError: The folder of runs cannot be written.
    """
    keep_settings(_FILE, _FORMAT, settings)


def read_battery() -> Battery | None:
    """The battery; None where there is none, or the system does not tell."""
    ask = getattr(psutil, "sensors_battery", None)  # not on every system
    try:
        found = None if ask is None else ask()
    except (OSError, RuntimeError, ValueError, psutil.Error):  # drivers that list a battery and cannot read it
        return None
    if found is None or found.power_plugged is None:
        return None
    return Battery(round(found.percent), not found.power_plugged)


def battery_notes(battery: Battery | None) -> tuple[str, ...]:
    """What a person should know before a run is started."""
    return (BATTERY_NOTE,) if battery is not None and battery.is_used else ()
