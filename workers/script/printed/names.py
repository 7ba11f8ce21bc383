"""Names of printed metrics: `Train Loss`, `train/loss` and `lm loss` are all the chart `loss`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core.recipes.user_script import DROP, plain

_ALIASES: Final[Mapping[str, str]] = {
    alias: name
    for name, aliases in {
        "loss": "loss lm_loss avg_loss average_loss mean_loss total_loss batch_loss running_loss trainloss step_loss "
        "loss_step minibatch_loss cur_loss loss_avg lm_loss_value",
        "val_loss": "val_loss_epoch",
        "lr": "lr learning_rate lrate current_lr lr_0",
        "grad_norm": "grad_norm gradnorm gradient_norm gnorm norm total_norm global_grad_norm",
        "tokens_per_s": "tokens_per_s tokens_per_second tokens_per_sec tok_s toks_s tokens_s tok_sec tokens_sec "
        "tokens_second tps wps tokens_per_second_per_gpu",
        "samples_per_s": "samples_per_s samples_per_second samples_per_sec samples_s samples_sec images_s images_sec "
        "img_s imgs_s img_sec images_per_second images_per_sec examples_s examples_sec samplespersec fps",
        "step_time_s": "step_time_s step_time time dt iter_time iter_dt batch_time time_per_step time_per_iteration "
        "elapsed_time_per_iteration iteration_time step_avg sec_per_step s_it seconds_per_step step_dt time_s dt_s "
        "iter_time_s",
        "data_wait_s": "data_wait_s data_time data",
        "accuracy": "accuracy acc acc@1 acc1 top1 prec@1 top_1_acc",
        "accuracy_top5": "accuracy_top5 acc@5 acc5 top5 prec@5 top_5_acc",
        "perplexity": "perplexity ppl",
        "epoch": "epoch epochs",
        "mfu": "mfu bf16_mfu",
        "tokens_seen": "tokens_seen num_tokens num_input_tokens_seen consumed_tokens",
        "loss_scale": "loss_scale",
        "reward": "reward mean_reward episode_reward ep_rew_mean return episode_return episodic_return averageepret "
        "eprewmean",
    }.items()
    for alias in aliases.split()
}
_COMMON: Final = frozenset(_ALIASES.values())
_NOT_METRICS: Final = frozenset((
    "train", "val", "test", "rank", "local_rank", "global_rank", "world_size", "gpu", "gpus", "cuda", "cpu",
    "device", "devices", "node", "nodes", "pid", "port", "seed", "batchsize", "batch_size", "bsz",
    "micro_batch_size", "global_batch_size", "per_device_batch_size", "num_workers", "workers", "v_num", "version",
    "eta", "value", "total_steps", "max_steps", "num_steps", "steps_per_epoch", "num_epochs", "total_epochs",
    "max_epochs", "max_iters", "id", "warmup_steps", "train_steps", "gradient_accumulation_steps",
    "grad_accum_steps", "line", "files", "size", "python", "torch", "runtime", "eval_runtime",
    "eval_samples_per_second", "eval_steps_per_second", "train_runtime", "eval_model_preparation_time",
))  # fmt: skip
# A name that is mapped to it counts the steps.
STEP: Final = "step"
# What each line of metrics.jsonl has of its own: no printed number may replace it.
RESERVED: Final = frozenset(("ts", "event", "rank", "attempt", "step", "nonfinite"))
# They mean what they are taken for in a line about training; a script that logs such a name itself means its own.
_VAGUE: Final = frozenset(("time", "data", "norm", "dt", "wps", "tps"))
_UNITS_IN_NAMES: Final = {"ms": 1e-3, "us": 1e-6, "s": 1.0, "sec": 1.0, "seconds": 1.0, "min": 60.0}
_PASSES: Final = ("batch", "step", "it", "iter", "iteration")
_LOSS: Final = re.compile(
    r"loss(?!\w*_(?:scale|weights?|scaling|coefs?|coeff\w*|factor|ratio|fn|func\w*|type|alpha|beta|gamma|smoothing)$)"
)
_TRAINED: Final = re.compile(r"^(?:train|training)_|_(?:train|training)$")
_EVALUATED: Final = re.compile(r"_(?:val|valid|validation|eval|test|dev)$")
_EVALUATION: Final = re.compile(r"(?:val|valid|validation|eval|evaluation|test|dev)(?:_|$)")


# Common charts whose numbers are large: a comma in them stands between thousands.
_COUNTS: Final = frozenset(("tokens_per_s", "samples_per_s", "tokens_seen", "loss_scale"))
_GROUPED: Final = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?!\d)")
MOST_SEEN: Final = 500


@dataclass(frozen=True, slots=True)
class Names:
    """Turns printed names into charts; the person's own mapping comes first.

    Attributes:
        charts: Printed name, as `plain` gives it → chart; `DROP` leaves it out.
        seen: Names that were printed → chart, as `charts` could name them; of the first `MOST_SEEN`.
        numbers: Names that were printed → the last two different numbers behind them.
        points: The signs before decimals so far, "." or ",".
    """

    charts: Mapping[str, str] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict, compare=False)
    numbers: dict[str, list[float]] = field(default_factory=dict, compare=False)
    points: set[str] = field(default_factory=set, compare=False)

    def number(self, text: str, chart: str) -> float | None:
        """Read a printed number of a chart. ``0,833`` has a decimal comma, ``21,494`` is in thousands.

        Where ``1,234`` may be either, the program's other numbers decide; None where they do not.
        """
        known = self.is_known(chart)
        if "," not in text:
            self.points.update({"."} & set(text))
            return float(text)
        grouped = _GROUPED.match(text) is not None
        if not grouped and known:
            self.points.add(",")
        if "." in text or text.count(",") > 1:
            return float(text.replace(",", ""))
        is_large = chart.removeprefix("val_") in _COUNTS
        if (self.points == {","} and not (is_large and grouped)) or (known and not grouped):
            return float(text.replace(",", "."))
        certain = is_large or not known or self.points == {"."}
        return float(text.replace(",", "")) if grouped and certain else None

    def note(self, name: str, number: float) -> None:
        """Remember a number behind a name."""
        if (key := plain(name)) in self.seen and math.isfinite(number):
            before = self.numbers.setdefault(key, [])
            if number not in before:
                before[:] = [*before[-1:], number]

    def chart(self, name: str, evaluation: bool = False, *, logged: bool = False) -> tuple[str, float]:
        """The chart of a printed name, and the factor of its numbers; an empty chart is none.

        Args:
            name: As it was printed; it is remembered.
            evaluation: It stands in a line about evaluation, so `loss` is the validation loss.
            logged: The script passed it to `rankdeck.log`, so it is charted under any name.
        """
        printed = plain(name)
        key, factor = (printed, 1.0) if logged else _without_unit(printed)
        chart = self.charts.get(printed, self.charts.get(key))
        if chart is None:
            chart = self._chart_of(key, evaluation, logged)
        elif chart == DROP or chart in RESERVED - {STEP}:
            chart = ""
        if chart and len(self.seen) < MOST_SEEN:
            self.seen.setdefault(printed, chart)
        return chart, factor

    @staticmethod
    def _chart_of(key: str, evaluation: bool, logged: bool) -> str:
        """The chart of a name that the person has not mapped."""
        if key in RESERVED or not re.search(r"[a-z]", key):
            return ""
        if not logged:
            return "" if key in _NOT_METRICS or "_every_" in key else _usual(key, evaluation)
        return key if key in _VAGUE else _usual(key, evaluation)

    def is_known(self, chart: str) -> bool:
        """True for a usual chart of training programs, so that a line without a step may be about it."""
        return chart in _COMMON or chart.removeprefix("val_") in _COMMON or chart in self.charts.values()

    @staticmethod
    def is_evaluation(chart: str) -> bool:
        """True for a chart of data that the model does not train on."""
        return _EVALUATION.match(chart) is not None

    @staticmethod
    def begins_record(chart: str) -> bool:
        """True for a chart of learning, not of speed: a line with it is a point of its own, though it names no step."""
        name = chart.removeprefix("val_")
        return name in ("accuracy", "accuracy_top5", "perplexity", "reward") or _LOSS.search(name) is not None


def _usual(key: str, evaluation: bool) -> str:
    evaluation = evaluation and _TRAINED.search(key) is None
    if key in _ALIASES and (not evaluation or _EVALUATION.match(key)):
        return _ALIASES[key]
    before, after = _EVALUATION.match(key), _EVALUATED.search(key)
    if before or after:
        bare = _TRAINED.sub("", key[before.end() :] if before else _EVALUATED.sub("", key))
        return f"val_{_ALIASES[bare]}" if bare in _ALIASES else key
    if evaluation:
        return f"val_{_ALIASES.get(key, key)}"
    bare = _TRAINED.sub("", key)
    if bare == key or not bare or bare in _VAGUE:
        return key
    return _usual(bare, False)


def _without_unit(key: str) -> tuple[str, float]:
    """``elapsed_time_in_ms`` as ``elapsed_time`` and 0.001, ``ms/batch`` as ``step_time`` and 0.001."""
    unit, _, what = key.partition("_")
    if unit in _UNITS_IN_NAMES and what.removeprefix("per_") in _PASSES:
        return "step_time", _UNITS_IN_NAMES[unit]
    name, found, unit = key.rpartition("_in_")
    if found and unit in _UNITS_IN_NAMES:
        return name, _UNITS_IN_NAMES[unit]
    return key, 1.0
