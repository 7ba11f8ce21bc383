"""Outer optimizer: averages the weights of ranks that trained apart, or takes DiLoCo's step towards their mean.

DiLoCo (Douillard et al., arXiv 2311.08105, algorithm 1): all ranks start a round from the same weights θ. At its end
Δ = θ - mean(ranks' weights) is taken for a gradient, and SGD with Nesterov momentum makes the next θ:

    b ← μ b + Δ        θ ← θ - lr (Δ + μ b)

With lr = 1 and μ = 0 that is the mean itself, and then neither θ nor b is kept. Each rank's inner optimizer keeps its
own state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import torch
from torch import Tensor, nn

from core.config.sync import AVERAGE, Synchronisation
from core.fault_points import reach

# Elements that go through one all-reduce, unless a single tensor has more: 16 MiB in fp32.
BUCKET_ELEMENTS: Final = 4 << 20
K = TypeVar("K")

BASE: Final = "base."
MOMENTUM: Final = "momentum."


class OuterOptimizer:
    """The weights that all ranks share, and the step that moves them.

    Args:
        model: Its trainable parameters and saved floating-point buffers are synchronised.
        rule: Method and outer settings.
        all_reduce: Sums a one-dimensional fp32 tensor over the ranks in place, giving all ranks the same bits.
        wire: The device of that tensor.
    """

    def __init__(
        self, model: nn.Module, rule: Synchronisation, all_reduce: Callable[[Tensor], None], wire: torch.device
    ) -> None:
        self._rule = rule
        self._all_reduce = all_reduce
        self._wire = wire
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        kept = model.state_dict(keep_vars=True)
        self._buffers = [b for name, b in model.named_buffers() if name in kept and b.is_floating_point()]
        self._base: dict[str, Tensor] = {}
        self._momentum: dict[str, Tensor] = {}

    @property
    def elements(self) -> int:
        """Numbers that each rank puts into a round."""
        return sum(t.numel() for t in (*self._parameters.values(), *self._buffers))

    def is_finite(self) -> bool:
        """Whether this rank's weights can be averaged; a buffer may well hold infinities, as a mask does."""
        checks = [torch.isfinite(parameter.detach()).all() for parameter in self._parameters.values()]
        checks += [~buffer.isnan().any() for buffer in self._buffers]
        return bool(torch.stack([check.to(checks[0].device) for check in checks]).all())

    def start(self) -> None:
        """Begin the next round at the current weights, alike on all ranks."""
        if self._rule.method != AVERAGE:
            self._base = {name: _outer_copy(p) for name, p in self._parameters.items()}
            self._momentum = {name: torch.zeros_like(base) for name, base in self._base.items()}

    def synchronise(self, share: float, *, plain: bool = False) -> None:
        """Make one round; afterwards all ranks hold the same weights.

        Args:
            share: This rank's weight in the mean; the shares add up to 1. At 0 its weights may be anything.
            plain: Take the mean itself and start again from it, whatever the method.
        """
        stepped = self._rule.method != AVERAGE and not plain and bool(self._base)
        with torch.no_grad():
            for number, names in enumerate(_buckets(self._parameters)):
                tensors = [self._parameters[name] for name in names]
                self._average(tensors, share, partial(self._step, names) if stepped else None)
                if number == 0:
                    reach("mid_synchronisation")
            for bucket in _buckets(dict(enumerate(self._buffers))):
                self._average([self._buffers[index] for index in bucket], share, None)
        if not stepped:
            self.start()

    def _average(self, tensors: Sequence[Tensor], share: float, then: Callable[[Tensor], Tensor] | None) -> None:
        flat = torch.cat([t.detach().reshape(-1).float() for t in tensors])
        flat = (flat.mul_(share) if share else torch.zeros_like(flat)).to(self._wire)  # 0 * NaN is NaN
        self._all_reduce(flat)
        if then is not None:
            flat = then(flat)
        for tensor, values in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(values.view_as(tensor))

    def _step(self, names: Sequence[str], mean: Tensor) -> Tensor:
        """New weights after the outer optimizer's step towards the mean."""
        sizes = [self._parameters[name].numel() for name in names]
        for name, values in zip(names, torch.split(mean.cpu(), sizes), strict=True):
            base, momentum = self._base[name], self._momentum[name]
            delta = base - values
            momentum.mul_(self._rule.outer_momentum).add_(delta)
            base.sub_(delta.add_(momentum, alpha=self._rule.outer_momentum), alpha=self._rule.outer_lr)
        return torch.cat([self._base[name] for name in names])

    # in a checkpoint

    def tensors(self) -> dict[str, Tensor]:
        """θ and b by name; nothing where the mean is taken."""
        return {
            prefix + name: tensor
            for prefix, kept in ((BASE, self._base), (MOMENTUM, self._momentum))
            for name, tensor in kept.items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load what `tensors` gave; nothing where it is not whole, or of other weights."""
        names = [prefix + name for prefix in (BASE, MOMENTUM) for name in self._parameters]
        whole = self._rule.method != AVERAGE and all(name in tensors for name in names)
        self._base, self._momentum = (
            {name: tensors[prefix + name].clone() for name in self._parameters} if whole else {}
            for prefix in (BASE, MOMENTUM)
        )


def _outer_copy(parameter: Tensor) -> Tensor:
    """On the CPU, flat and in fp32: θ and b are needed once a round and would take up a GPU's memory."""
    return parameter.detach().reshape(-1).to("cpu", torch.float32, copy=True)


def _buckets(tensors: Mapping[K, Tensor]) -> Iterator[list[K]]:
    """Keys in order, in groups of at most `BUCKET_ELEMENTS` numbers."""
    bucket: list[K] = []
    held = 0
    for key, tensor in tensors.items():
        if bucket and held + tensor.numel() > BUCKET_ELEMENTS:
            yield bucket
            bucket, held = [], 0
        bucket.append(key)
        held += tensor.numel()
    if bucket:
        yield bucket
