"""Names of CPU devices: ``cpu:0,cpu:1`` names two of them, ``cpux2`` counts two, ``cpu`` is one.

Until 0.1 a lone ``cpu:2`` counted. It still does, since commands and old runs say so: see `with_counts`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from core.errors import ConfigError

# Those of all machines of a run, which are numbered through.
MAX_CPU_DEVICES: Final = 1024
_CPU: Final = re.compile(r"cpu(?:([:x])(\d{1,9}))?", re.IGNORECASE)


def is_cpu(text: str) -> bool:
    return _CPU.fullmatch(text) is not None


def with_counts(texts: Sequence[str]) -> tuple[str, ...]:
    """Write a lone ``cpu:N``, N from 1 up, as the count ``cpuxN``."""
    cpus = [text for text in texts if is_cpu(text)]
    found = _CPU.fullmatch(cpus[0]) if len(cpus) == 1 else None
    if found is None or found[1] != ":" or int(found[2]) == 0:
        return tuple(texts)
    return tuple(f"cpux{int(found[2])}" if text is cpus[0] else text for text in texts)


def count_notes(texts: Sequence[str]) -> tuple[str, ...]:
    """Explain in a sentence that a lone ``cpu:N`` was read as a count."""
    return tuple(
        f"{old} is read as a count, as in earlier versions: write {new} to count CPU devices. cpu:0,cpu:1 names them."
        for old, new in zip(texts, with_counts(texts), strict=True)
        if old != new
    )


def cpu_numbers(text: str) -> list[int]:
    """The numbers of the CPU devices in one text of `with_counts`; raises `ConfigError` for an impossible count."""
    found = _CPU.fullmatch(text)
    if found is None or found[1] is None:
        return [0]
    number = int(found[2])
    if found[1] == ":":
        if number >= MAX_CPU_DEVICES:
            raise _wrong(f"There is no CPU device {text}; the last is cpu:{MAX_CPU_DEVICES - 1}.")
        return [number]
    if not 1 <= number <= MAX_CPU_DEVICES:
        raise _wrong(f"{text} counts {number} CPU devices; 1 to {MAX_CPU_DEVICES} are possible.")
    return list(range(number))


def cpu_texts(numbers: Sequence[int]) -> tuple[str, ...]:
    """The shortest texts for these CPU devices: a count where they are the first ones.

    One alone is as good as any other, and ``cpu:0`` is how it is listed.
    """
    if len(numbers) < 2:
        return ("cpu:0",) * len(numbers)
    if list(numbers) == list(range(len(numbers))):
        return (f"cpux{len(numbers)}",)
    return tuple(f"cpu:{number}" for number in numbers)


def count_devices(texts: Sequence[str]) -> int:
    """Count devices, GPUs included."""
    return sum(len(cpu_numbers(text)) if is_cpu(text) else 1 for text in with_counts(texts))


def _wrong(cause: str) -> ConfigError:
    return ConfigError("devices", cause, "Name CPU devices (cpu:0,cpu:1), or count them (cpux2).")
