"""Step start: what a step changes besides weights, as it is before the step, so that the step can leave no trace."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from workers.optim.seeding import Generators


class StepStart:
    """A model's saved buffers, such as running means, and the random generators, as they were before a step.

    Other buffers are made of nothing that was trained, as masks are.
    """

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        saved = model.state_dict(keep_vars=True)
        self._buffers = [buffer for name, buffer in model.named_buffers() if name in saved and buffer.numel()]
        self._copies = [buffer.clone() for buffer in self._buffers]
        self._generators = Generators(device)

    @property
    def has_buffers(self) -> bool:
        return bool(self._buffers)

    def keep(self) -> None:
        """Copy everything.

        All buffers: a change cannot be seen, since kernels (batch normalisation's) don't bump versions.
        """
        _copy(self._copies, self._buffers)
        self._generators.keep()

    def restore_buffers(self) -> None:
        """Restore the buffers of a batch that is left out; the generators move on, as after any other batch."""
        _copy(self._buffers, self._copies)

    def restore(self) -> None:
        """Restore everything for a step that is done again."""
        self.restore_buffers()
        self._generators.restore()


def _copy(to: list[Tensor], source: list[Tensor]) -> None:
    if to:
        with torch.no_grad():
            torch._foreach_copy_(to, source)  # one kernel, as the optimizers have it
