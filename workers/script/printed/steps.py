"""Steps of readings: counters that restart each epoch, lines that name no step, several lines a step.

Pure. The rule, from the surest to the weakest: a step the line names; the place within the epoch, added up over
epochs; the training progress bar's; else the records are counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from workers.script.printed.counter_filter import CounterFilter
from workers.script.printed.lines import read_line, without_stamps
from workers.script.printed.names import Names
from workers.script.printed.readings import BAR, ITERATION, STEP, Bar, Counter, Reading
from workers.script.printed.segments import Segments, Tables

# Lines with numbers in which there may be nothing to chart: libraries print their settings first.
PATIENCE: Final = 50
MOST_NAMES: Final = 40
_NAMED: Final = 6
_EXAMPLE_CHARS: Final = 60
_JSON_FILE_LINE: Final = re.compile(r'"[^"]*"\s*:')


class Unread:
    """Counts the lines that hold numbers and gave no point; `names` has the names in them."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self.lines = 0
        self._example = ""

    def take(self, text: str) -> None:
        message = without_stamps(text[: 10 * _EXAMPLE_CHARS])
        if re.search(r"\d", message) and not _JSON_FILE_LINE.match(message):
            self.lines += 1
            self._example = message.strip(" |")[:_EXAMPLE_CHARS]

    def describe(self) -> dict[str, Any]:
        """An alert's title, cause and next step; `names` (printed → chart) and `numbers` (printed → the last ones).

        Names whose numbers change come first, since settings do not; and fractions, since counters have none.
        """
        found = self._names.numbers
        order = sorted(found, key=lambda name: _rank(found[name]))[:MOST_NAMES]
        numbers = {name: found[name] for name in order}
        how = "Map printed names to charts" if numbers else "Print a name before each number"
        step = f"{how}, or call rankdeck.log(step=…, loss=…) in the script."
        many = "1 line with numbers" if self.lines == 1 else f"{self.lines} lines with numbers"
        cause = f"The script has printed {many}, but Rankdeck recognised no step, loss or other metric in them."
        return {
            "title": "The script's output could not be charted",
            "cause": f"{cause} {_seen(numbers) or f'The numbers have no names, for example in “{self._example}”.'}",
            "next_step": f"{step} For example: --map {order[0]}=loss" if order else step,
            "window_step": f"{step} To chart them, open Charts in New run." if order else step,
            "names": {name: self._names.seen.get(name, name) for name in order},
            "numbers": numbers,
        }


def _rank(numbers: list[float]) -> tuple[bool, bool]:
    return len(numbers) < 2, all(number % 1 == 0 for number in numbers)


def _seen(numbers: Mapping[str, list[float]]) -> str:
    shown = [f"{name} ({', '.join(f'{value:g}' for value in numbers[name])})" for name in list(numbers)[:_NAMED]]
    more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
    return f"Names seen: {', '.join(shown)}{more}." if shown else ""


# The kind of counter used where lines name none: weaker than all others.
_COUNTED: Final = 99


@dataclass(slots=True)
class Point:
    """Numbers to chart, of training or of an evaluation; the epoch where one was named."""

    step: int
    values: dict[str, float] = field(default_factory=dict)
    evaluation: bool = False
    epoch: float | None = None


class StepCounter:
    """Turns counters that restart into steps that only rise."""

    def __init__(self) -> None:
        self.step = 0
        self.kind = _COUNTED
        self._base = 0
        self._last: int | None = None
        self._total: int | None = None
        self._stride = 1
        self._epoch: float | None = None
        self._begun = False

    def begin(self, epoch: float) -> None:
        """Begin an epoch after a heading ("Epoch 2/3"): a place that does not rise is the next epoch's."""
        self._begun = self._epoch is not None and epoch > self._epoch
        self._epoch = epoch

    def take(self, counter: Counter, epoch: float | None) -> bool:
        """Take the step of a counter; false where a surer counter is in use."""
        # Programs say "step" in one line and "iter" in the next and mean the same.
        kind = STEP if counter.kind == ITERATION else counter.kind
        if kind > self.kind:
            return False
        # A surer one than before: it starts a count of its own.
        if kind < self.kind:
            self.kind, self._base, self._last, self._stride = kind, 0, None, 1
        number, last = counter.number, self._last
        # A bar that is drawn again is where it was, whatever is printed beside it.
        new_epoch = kind != BAR and epoch is not None and self._epoch is not None and epoch > self._epoch
        new_epoch, self._begun = new_epoch or self._begun, False
        if last is not None and (number < last or (number == last and new_epoch)):
            self._base = self.step + self._stride - number if self._total is None else self._base + self._total
        elif last is not None and number > last:
            self._stride = number - last
        self._last, self._total = number, counter.total
        self._epoch = epoch if epoch is not None else self._epoch
        self.step = self._base + number
        return True

    def forget_bar(self) -> None:
        """Forget the steps of a bar, which were none."""
        if self.kind == BAR:
            self.step, self.kind, self._base, self._last = 0, _COUNTED, 0, None

    def count(self) -> None:
        """Count a record that names no step."""
        self.step += 1


class PrintedMetrics:
    """Reads a program's output as it comes; returns the points to chart."""

    def __init__(self, names: Names | None = None) -> None:
        self._names = names or Names()
        self._segments = Segments()
        self._tables = Tables()
        self._counters = CounterFilter(self._names)
        self._unread = Unread(self._names)
        self._counter = StepCounter()
        self._pending: Point | None = None
        self._points: list[Point] = []
        self._evaluating = False
        self._bar: Bar | None = None
        self._bar_is_trained = False
        self._held: Reading | None = None
        self._given: dict[bool, Point] = {}
        self._epoch: float | None = None

    @property
    def has_pending(self) -> bool:
        """A step may get more lines; `flush` returns it as it is."""
        return self._pending is not None or self._held is not None or self._tables.is_open

    def describe_unread(self, ended: bool = False) -> dict[str, Any] | None:
        """Describe the output where nothing of it could be charted; None where something was, or little is printed."""
        enough = self._unread.lines >= PATIENCE or (ended and bool(self._names.numbers))
        return self._unread.describe() if enough and not self._given else None

    @property
    def _follows_bar(self) -> bool:
        return self._bar is not None and self._counter.kind == BAR

    def feed(self, data: bytes) -> list[Point]:
        """Take output; return the complete points."""
        return self._take(self._tables.join(self._segments.feed(data)))

    def flush(self) -> list[Point]:
        """Return the points that wait for more lines; called when the program has been quiet for a moment."""
        points = self._take(self._tables.finish())
        held, self._held = self._held, None
        # The bar that was drawn behind it has no end until it is drawn again.
        if held is not None:
            drawn = read_line(self._segments.unfinished, self._names)
            self._settle(held, None if drawn is None else drawn.bar)
        self._end_step()
        return [*points, *self._taken()]

    def finish(self) -> list[Point]:
        points = self._take(self._tables.join(self._segments.finish()))
        points += self._take(self._tables.finish())
        for reading in self._counters.give_up():
            self._note(reading)
        return [*points, *self.flush()]

    def _take(self, pieces: list[str]) -> list[Point]:
        for text in pieces:
            reading = read_line(text, self._names, self._evaluating)
            if not self._given and (reading is None or reading.bar is None):
                self._unread.take(text)
            if reading is None:
                continue
            if reading.heading is not None or reading.evaluation:
                self._evaluating = reading.heading is True and not reading.evaluation
            for settled in self._counters.take(reading):
                self._note(settled)
        return self._taken()

    def _taken(self) -> list[Point]:
        points, self._points = self._points, []
        return points

    def _note(self, reading: Reading) -> None:
        """Take a reading; numbers printed beside a bar wait for the bar to be drawn again.

        A bar is drawn ten times a second at most, so it lags; behind something printed it is drawn again, as it is.
        """
        held, self._held = self._held, None
        if held is not None:
            self._settle(held, reading.bar)
        bare = reading.bar is None and reading.counter is None
        if bare and (reading.values or reading.evaluation) and self._follows_bar:
            self._held = reading
        else:
            self._settle(reading)

    def _settle(self, reading: Reading, drawn: Bar | None = None) -> None:
        """Chart a reading; `drawn` is the bar drawn right behind it."""
        ours = self._bar
        if drawn is not None and ours is not None and (drawn.title, drawn.total) == (ours.title, ours.total):
            self._bar = drawn
            self._counter.take(Counter(BAR, drawn.number, drawn.total), None)
        counter = reading.counter
        if reading.epoch is not None and counter is None and not reading.values and not reading.evaluation:
            self._counter.begin(reading.epoch)
        if reading.bar is not None:
            counter = self._bar_counter(reading, counter)
        self._epoch = reading.epoch if reading.epoch is not None else self._epoch
        named = counter is not None and self._counter.take(counter, reading.epoch)
        if reading.values:
            self._add(reading, named or self._follows_bar)
        if reading.evaluation and not self._is_drawn_again(reading):
            self._end_step()
            point = Point(self._counter.step, reading.evaluation, evaluation=True, epoch=reading.epoch)
            if reading.bar is not None and not self._counter.step:
                # Lightning's sanity check, before the first step.
                self._given[True] = point
            else:
                self._give(point)

    def _is_drawn_again(self, reading: Reading) -> bool:
        """True while a bar repeats the last evaluation's numbers."""
        before = self._given.get(True)
        return reading.bar is not None and before is not None and before.values == reading.evaluation

    def _add(self, reading: Reading, named: bool) -> None:
        if self._bar is not None and reading.is_known:
            self._bar_is_trained = True
        pending = self._pending
        repeats = pending is None or not reading.values.keys().isdisjoint(pending.values)
        if not named and self._counter.kind == _COUNTED and repeats:
            if not any(self._names.begins_record(chart) for chart in reading.values):
                # Settings printed before training, or speed alone.
                return
            self._counter.count()
        step = self._counter.step
        # The same step beside a bar is the bar drawn again.
        if pending is None or pending.step != step or (repeats and reading.bar is None):
            self._end_step()
            self._pending = pending = Point(step)
        pending.values.update(reading.values)
        pending.epoch = self._epoch if reading.epoch is None and self._counter.kind != BAR else reading.epoch

    def _end_step(self) -> None:
        if self._pending is not None:
            self._give(self._pending)
            self._pending = None

    def _give(self, point: Point) -> None:
        """Add a point, unless it is the one before, drawn again."""
        if point != self._given.get(point.evaluation):
            self._given[point.evaluation] = point
            self._points.append(point)

    def _bar_counter(self, reading: Reading, counter: Counter | None) -> Counter | None:
        """The line's counter, unless it is a bar's that does not tell the training's step."""
        bar = reading.bar
        assert bar is not None
        if counter is not None and counter.kind != BAR:
            return counter
        if not bar.training:
            return None
        ours = self._bar
        if ours is not None and (bar.title, bar.total) != (ours.title, ours.total):
            finished = ours.total is not None and ours.number >= ours.total
            # Nothing was learned beside that one: it counted something else.
            if not self._bar_is_trained:
                self._counter.forget_bar()
            elif not (finished and bar.title == ours.title and ours.title and bar.total is not None):
                # An evaluation's, drawn between two steps, and not the next epoch's, of another length.
                return None
        self._bar = bar
        return counter
