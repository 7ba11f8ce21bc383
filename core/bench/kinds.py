"""Kinds of benchmarks."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What is measured."""

    WEAK = "weak"
    STRONG = "strong"
    COMM = "comm"
    MEMORY = "memory"
    ACCUMULATION = "accumulation"


TITLES: Final = {
    Kind.WEAK: "Weak scaling",
    Kind.STRONG: "Strong scaling",
    Kind.COMM: "Communication",
    Kind.MEMORY: "Memory",
    Kind.ACCUMULATION: "Gradient accumulation",
}
ABOUT: Final = {
    Kind.WEAK: "Samples a second with the same batch on each device: 100 % is the speed of one device, times devices.",
    Kind.STRONG: "Samples a second with the same global batch: 100 % is the speed of one device, times devices.",
    Kind.COMM: "Time and bandwidth of gradient all-reduces, by size and transport.",
    Kind.MEMORY: "Peak memory of each device, and whether it grows from step to step.",
    Kind.ACCUMULATION: "Time of a step with the same global batch in micro-batches of different size.",
}
TARGETS: Final = {Kind.WEAK: 0.9, Kind.STRONG: 0.8}
"""Efficiency that is good."""
TURNS: Final = {Kind.WEAK: 5, Kind.STRONG: 5, Kind.COMM: 3, Kind.MEMORY: 1, Kind.ACCUMULATION: 5}
SECONDS: Final = {Kind.WEAK: 2.0, Kind.STRONG: 2.0, Kind.COMM: 5.0, Kind.MEMORY: 30.0, Kind.ACCUMULATION: 2.0}
"""How long steps or sums are timed in a turn."""
