"""Task: what a recipe hands to the trainer, and what it gets back in each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn

from workers.optim.optimizer import Optimization
from workers.training.batches import Indices


@dataclass(frozen=True, slots=True)
class LossAndMetrics:
    """A loss with metrics: what a `Task.loss` may return when the loss alone does not say enough.

    Metrics are means over the batch, as the loss is. Those of a step's micro-batches are averaged and charted for each
    rank; those of an evaluation are averaged over all ranks' held-out samples and stand with `val_loss`, their names
    after `val_`.

    Attributes:
        loss: What is minimised: mean over the batch, a tensor without dimensions.
        metrics: By name, tensors without dimensions; always the same names. One called "loss" is shown as the loss
            in place of what is minimised.
    """

    loss: Tensor
    metrics: Mapping[str, Tensor] = field(default_factory=dict)

    @staticmethod
    def of(returned: Tensor | LossAndMetrics) -> LossAndMetrics:
        """What a `Task.loss` returned, with the loss among the metrics; none of them holds on to its graph."""
        if isinstance(returned, Tensor):
            return LossAndMetrics(returned, {"loss": returned.detach()})
        metrics = {name: metric.detach() for name, metric in returned.metrics.items()}
        return LossAndMetrics(returned.loss, {"loss": returned.loss.detach(), **metrics})


@dataclass(frozen=True, slots=True)
class StepSamples:
    """Which samples the next optimizer step is made of.

    Attributes:
        epoch: From 0.
        batch: Dataset indices of the whole batch, in their order; the same on every rank that trains in step.
        own: Those that this rank works on: a slice of `batch`, empty where it has none.
    """

    epoch: int
    batch: Indices
    own: Indices


class Goal(Protocol):
    """An end of training that only the recipe can count towards, such as a number of episodes.

    Its counters are saved with each checkpoint and come back with it. It is asked between chunks.
    """

    def is_reached(self) -> bool:
        """Whether training is done; the same answer on every rank that trains in step."""

    def progress(self) -> tuple[float, str] | None:
        """The share that is done, 0 … 1 and above, and how a person reads it; None where there is no goal.

        Steps still to make, and the time left, are estimated from the share.
        """

    def counters(self) -> dict[str, float]:
        """What has been counted so far."""

    def restore(self, counters: Mapping[str, float]) -> None:
        """Count on from what `counters` gave."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a recipe trains.

    Attributes:
        model: On any device; the trainer moves it.
        batch: CPU tensors of training samples by their indices, shape (n,): a tensor, or a tuple, list or dict.
        loss: Mean loss of the model over such a batch, a tensor without dimensions, or `LossAndMetrics`. Call the model
            it is given, not one's own: it may be wrapped.
        val_batch: As `batch`, for held-out samples; None measures no validation loss.
        sample: Text that the model writes, shown at each evaluation; called on rank 0 in evaluation mode.
        optimization: The update rule.
        tokens_per_sample: For the throughput in tokens.
        sample_prompt: What the sampled text was asked to go on from, for showing.
        before_step: Called before each optimizer step, without gradients and in the forward pass's format: for what
            has to be made with the weights as they are then, such as episodes to learn from. False leaves the step
            out: its samples count as trained and nothing is updated; every rank that trains in step must say the same
            (`Run.total`). The model's passes before the first step come without it.
        shuffled: Samples of a chunk come in a shuffled order; False: as they are numbered.
        whole_chunks: The run evaluates, commits and stops at the ends of chunks only, since what `before_step` made
            for a chunk cannot be made again with later weights. A stop then takes until the chunk is done.
        goal: Ends the training before its steps and epochs are done.
        val_samples: Held-out samples that an evaluation measures at most, where the person has not chosen; None: 1,000.
    """

    model: nn.Module
    batch: Callable[[Indices], Any]
    loss: Callable[[nn.Module, Any], Tensor | LossAndMetrics]
    val_batch: Callable[[Indices], Any] | None = None
    sample: Callable[[nn.Module], str] | None = None
    optimization: Optimization = field(default_factory=Optimization)
    tokens_per_sample: int = 1
    sample_prompt: str = ""
    before_step: Callable[[StepSamples], bool] | None = None
    shuffled: bool = True
    whole_chunks: bool = False
    goal: Goal | None = None
    val_samples: int | None = None
