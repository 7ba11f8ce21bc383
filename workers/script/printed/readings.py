"""Readings: the contents of a printed line as values (numbers, their step, a progress bar). Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Final

from workers.script.printed.names import STEP as MAPPED_STEP
from workers.script.printed.names import Names

# Counters from the surest to the weakest; what a line has of the surest kind is its step.
GLOBAL, STEP, ITERATION, BATCH, BAR, PLACE, LEADING = range(7)

# A greater number counts nothing, and no JSON reader keeps it.
MOST_STEPS: Final = 1 << 53
NUMBER: Final = (
    r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?!\d)(?:\.\d*)?(?:[eE][-+]?\d+)?"
    r"|[-+]?\d+,\d+(?![\d.]|,\d)(?:[eE][-+]?\d+)?"  # a decimal comma: `Names.number`
    r"|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|[-+]?\.\d+(?:[eE][-+]?\d+)?"
)
# Only in ASCII: without regard to case `ı` is an `i`, which `float` does not read.
NAN: Final = r"[-+]?(?a:nan|inf(?:inity)?)"
NUMBER_OR_NAN: Final = re.compile(f"{NUMBER}|{NAN}", re.IGNORECASE)
WRAPPED_NUMBER: Final = re.compile(
    r"(?:tensor|array|(?:np|numpy|torch|jnp)\.\w+)\(\s*\[?\s*([-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|nan|inf))\s*\]?[^()]*\)"
)
EVALUATION_LINE: Final = re.compile(
    r"^\W*(?:\[[^\]]*\]\s*)?(?:(?:epoch|iter)\()?"
    r"(?:test|tests|testing|val|valid|validation|validating|eval|evaluation|dev)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Counter:
    """A line's position in the training.

    Attributes:
        kind: Its certainty: `GLOBAL` … `LEADING`.
        total: The end of the count, if the line names it.
        form: The words before it, without digits: alike in all lines of one kind.
    """

    kind: int
    number: int
    total: int | None = None
    form: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A progress bar's state.

    Attributes:
        title: Its words with the digits taken out: the same for each epoch's bar.
        number, total: Its position and end; a bar without an end has None.
        training: False where its words or its unit tell of downloads, files, rows.
    """

    title: str
    number: int
    total: int | None
    training: bool = True


@dataclass(slots=True)
class Reading:
    """The contents of one line.

    Attributes:
        values: Chart → number, of training.
        evaluation: Chart → number, of an evaluation (`val_loss`, …).
        counter: The surest counter in the line.
        epoch_form: The words before its epoch, as a counter's; empty where it needs no proof.
        bar: A progress bar in it; `counter` is then the bar's only where nothing surer stands there.
        heading: The line only opens an evaluation ("Test Error:") or ends one; None: neither.
        is_known: A well-known name is among the charts.
    """

    values: dict[str, float] = field(default_factory=dict)
    evaluation: dict[str, float] = field(default_factory=dict)
    counter: Counter | None = None
    epoch: float | None = None
    epoch_form: str = ""
    bar: Bar | None = None
    heading: bool | None = None
    is_known: bool = False

    def add(self, chart: str, number: float, names: Names) -> None:
        """Add a number; the first of a name counts, since running means follow it."""
        if chart == MAPPED_STEP:  # the person says that this name counts steps
            if math.isfinite(number):
                self.count(Counter(STEP, int(number), form="mapped"))
            return
        if chart == "epoch":
            self.epoch = number if self.epoch is None and math.isfinite(number) else self.epoch
            return
        target = self.evaluation if names.is_evaluation(chart) else self.values
        target.setdefault(chart, number)
        self.is_known = self.is_known or names.is_known(chart)

    def add_all(self, part: Reading, names: Names) -> None:
        for chart, number in {**part.values, **part.evaluation}.items():
            self.add(chart, number, names)

    @property
    def is_empty(self) -> bool:
        """Nothing in it could be charted, or change a chart."""
        parts = (self.counter, self.epoch, self.bar, self.heading)
        return not self.values and not self.evaluation and all(part is None for part in parts)

    def count(self, counter: Counter) -> None:
        """Take a counter, if it is surer than the present one."""
        if counter.number < MOST_STEPS and (self.counter is None or counter.kind < self.counter.kind):
            self.counter = counter
