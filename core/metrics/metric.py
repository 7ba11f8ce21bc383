"""Metrics: title, unit, better direction and chart card of each known column. A new chart is a line here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Better = Literal["", "lower", "higher"]
OWN_CARD: Final = ""
# It says where the run is, or is measured of devices.
NO_CARD: Final = "-"
LOSS: Final = "loss"
THROUGHPUT: Final = "throughput"
STEP_TIME: Final = "step_time"
GIB: Final = 2.0**30
_SHORT_FORMS: Final = frozenset((
    "auc", "bleu", "cpu", "f1", "fps", "gpu", "iou", "kl", "lr", "mae", "mse", "rmse", "vram",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of numbers.

    Attributes:
        name: As ranks report it.
        unit: In the head of a card: "tokens per second".
        short_unit: Behind a figure: "tok/s"; "s" for seconds, which are shown in ms where that is shorter.
        better: The better direction, whatever a recipe says.
        card: The card of a run that draws it: `OWN_CARD`, `NO_CARD`, or one that draws several.
        is_rate: Ranks work at the same time, so a run's value is the sum of theirs; of others it is the mean.
        is_set: A schedule sets it: smoothing would hide its jumps.
        is_evaluated: Evaluations measure it.
        divisor: Divides values where they are shown.
    """

    name: str
    title: str
    unit: str = ""
    short_unit: str = ""
    better: Better = ""
    card: str = OWN_CARD
    is_rate: bool = False
    is_set: bool = False
    is_evaluated: bool = False
    divisor: float = 1.0

    @property
    def floor(self) -> float | None:
        return 0.0 if self.is_rate or self.short_unit in ("s", "GiB") else None


# In the order of a run's figures and of a comparison's cards. Any other name has a card of its own, before the last
# three.
METRICS: Final = (
    Metric("loss", "Loss", better="lower", card=LOSS),
    Metric("val_loss", "Validation loss", better="lower", card=LOSS, is_evaluated=True),
    Metric("tokens_per_s", "Throughput", "tokens per second", "tok/s", "higher", THROUGHPUT, is_rate=True),
    Metric("samples_per_s", "Throughput", "samples per second", "samples/s", "higher", THROUGHPUT, is_rate=True),
    Metric("lr", "Learning rate", is_set=True),
    Metric("grad_norm", "Gradient norm"),
    Metric("loss_scale", "Loss scale", is_set=True),
    Metric("micro_batch", "Micro-batch", is_set=True),
    Metric("step_time_s", "Step time", short_unit="s", card=STEP_TIME),
    Metric("accuracy", "Accuracy", better="higher"),
    Metric("val_accuracy", "Val accuracy", better="higher", is_evaluated=True),
    Metric("f1", "F1", better="higher"),
    Metric("perplexity", "Perplexity", better="lower"),
    Metric("reward", "Reward", better="higher"),
    Metric("device_mem_bytes", "Memory", "GiB", "GiB", card=NO_CARD, divisor=GIB),
    Metric("data_wait_s", "Waiting for data", short_unit="s", card=STEP_TIME),
    Metric("sync_wait_s", "Waiting for other devices", short_unit="s", card=STEP_TIME),
)
_KNOWN: Final = {metric.name: metric for metric in METRICS}
_PLACES: Final = {metric.name: place for place, metric in enumerate(METRICS)}
NOT_CHARTED: Final = frozenset((
    "step", "ts", "rank", "attempt", "tokens_seen", "epoch", "block_id", "chunk_id", "sync_bytes", "sync_rounds",
))  # fmt: skip


def metric(name: str) -> Metric:
    return _KNOWN.get(name) or Metric(name, metric_title(name))


def sort_key(name: str) -> tuple[float, str]:
    """Sort known metrics in the order of `METRICS`, others by name before those that matter least."""
    return _PLACES.get(name, _PLACES["device_mem_bytes"] - 0.5), name


def has_own_card(name: str) -> bool:
    return name not in NOT_CHARTED and metric(name).card == OWN_CARD


def metric_title(name: str) -> str:
    parts = name.replace("_", " ").split()
    title = " ".join(part.upper() if part.lower() in _SHORT_FORMS else part for part in parts)
    return title[:1].upper() + title[1:]
