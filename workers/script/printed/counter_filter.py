"""Counter filter: a printed number is a step only where it stands in the line of a loss, or was seen to rise.

``gradient accumulation steps = 8``, ``steps: 100`` and ``Resuming from step 500`` look like steps and are none. So a
counter without a loss beside it waits until a line of the same words shows a greater number; what is read meanwhile
waits with it. It is given up where a second loss, a progress bar or a line with both a loss and a counter comes first.
Pure.
"""

from __future__ import annotations

from typing import Final

from workers.script.printed.names import Names
from workers.script.printed.readings import LEADING, PLACE, Counter, Reading

# Readings that wait for the proof of a counter, at most.
MOST_HELD: Final = 50


class CounterFilter:
    """Passes readings on in their order, without unproven counters."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._last: dict[str, float] = {}
        self._risen: set[str] = set()
        self._of_losses: set[str] = set()
        self._above = ""
        self._step: int | None = None
        self._held: list[Reading] = []

    def take(self, reading: Reading) -> list[Reading]:
        """The readings that are settled now."""
        record = self._is_record(reading)
        if not record and reading.bar is None and not self._is_epoch(reading):
            reading.epoch = None
        counter = reading.counter
        if reading.bar is not None:
            return [*self.give_up(), reading]
        if counter is None:
            return self._without_counter(reading, record)
        rises = self._has_risen(counter.form, counter.number)
        if record and (counter.kind != LEADING or rises):
            self._of_losses.add(counter.form)
            return self._settled(reading, counter)
        if self._is_believed(counter, rises, bool(reading.values or reading.evaluation)):
            self._above = counter.form
            return self._settled(reading, counter)
        if self._of_losses or len(self._held) >= MOST_HELD or (record and self._is_second(reading)):
            reading.counter = None
            return [*self.give_up(), reading]
        self._held.append(reading)
        return []

    def _is_record(self, reading: Reading) -> bool:
        return any(self._names.begins_record(chart) for chart in (*reading.values, *reading.evaluation))

    def _is_epoch(self, reading: Reading) -> bool:
        """True for an epoch alone in a line: of a total, at the beginning, or seen to rise."""
        if reading.epoch is None or not reading.epoch_form or self._has_risen(reading.epoch_form, reading.epoch):
            return True
        return reading.epoch <= 1 and not reading.epoch_form.endswith("s")  # `epochs: 1` is a setting

    def _has_risen(self, form: str, number: float) -> bool:
        last = self._last.get(form)
        self._last[form] = number
        if last is not None and number > last:
            self._risen.add(form)
        return form in self._risen

    def _is_believed(self, counter: Counter, rises: bool, has_values: bool) -> bool:
        if counter.number == self._step or counter.form in self._of_losses:
            return True
        if not rises or counter.kind >= PLACE:  # `[2/3] loading data` rises too
            return False
        return not self._of_losses or (has_values and self._step is not None and counter.number > self._step)

    def _without_counter(self, reading: Reading, record: bool) -> list[Reading]:
        if record and self._above:
            self._of_losses.add(self._above)  # `step: 2` and below it `loss: 2.5`
        if not self._held:
            return [reading]
        if record and self._is_second(reading):
            return [*self.give_up(), reading]
        self._held.append(reading)
        return [] if len(self._held) < MOST_HELD else self.give_up()

    def _is_second(self, reading: Reading) -> bool:
        """True for a second loss while a counter waits for its proof: the number before the first was no step."""
        return any(self._is_record(held) and _overlap(held, reading) for held in self._held)

    def _settled(self, reading: Reading, counter: Counter) -> list[Reading]:
        """Believe `reading`, and the waiting readings that agree with it."""
        self._step = counter.number
        held, self._held = self._held, []
        for other in held:
            waits = other.counter
            if waits is not None and waits.form != counter.form and waits.number != counter.number:
                other.counter = None
        return [*(other for other in held if not other.is_empty), reading]

    def give_up(self) -> list[Reading]:
        """The waiting readings, without their counters."""
        held, self._held = self._held, []
        for reading in held:
            reading.counter = None
        return [reading for reading in held if not reading.is_empty]


def _overlap(one: Reading, other: Reading) -> bool:
    return bool(one.values.keys() & other.values.keys() or one.evaluation.keys() & other.evaluation.keys())
