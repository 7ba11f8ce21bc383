"""What a pass over a batch came to: the loss, and figures beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Measured:
    """A loss with figures beside it: what a `Task.loss` may return when the loss alone does not say enough.

    Figures are means over the batch, as the loss is. Those of a step's micro-batches are averaged and charted for each
    rank; those of an evaluation are averaged over all ranks' held-out samples and stand beside `val_loss`, their
    names after `val_`.

    Attributes:
        loss: What is minimised: mean over the batch, a tensor without dimensions.
        figures: By name, tensors without dimensions; always the same names. One called "loss" is shown as the loss
            in place of what is minimised.
    """

    loss: Tensor
    figures: Mapping[str, Tensor] = field(default_factory=dict)

    @staticmethod
    def of(returned: Tensor | Measured) -> Measured:
        """What a `Task.loss` returned, with figures or without; none of the figures holds on to its graph."""
        if isinstance(returned, Tensor):
            return Measured(returned, {"loss": returned.detach()})
        figures = {name: figure.detach() for name, figure in returned.figures.items()}
        return Measured(returned.loss, {"loss": returned.loss.detach(), **figures})
