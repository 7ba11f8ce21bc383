"""A model as one rank trains it: the module to call, its update, and the part of its state that this rank writes.

`Strategy.replicate` makes one. For each optimizer step the trainer calls `set_lr`, then for every micro-batch
`micro_batch` around forward and `backward`, then `update`. At a commit it takes `parts`, at a resume it calls `load`.
This class is the plain case, a whole model with an optimizer of its own; modes that shard override what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.state_files.saved_state import SavedState
from workers.state_files.slices import StatePart, TensorSlice

# Whether a gradient of this norm may move the weights.
MayStep = Callable[[Tensor], bool]


def always(norm: Tensor) -> bool:
    del norm
    return True


class Trained(NamedTuple):
    """A model and what trains it.

    Attributes:
        model: The recipe's, on its device.
        optimizer: Over `model`'s trainable parameters, in the order of `Optimization.groups`.
        optimization: The update rule.
        precision: The forward pass's format, and the loss scale.
    """

    model: nn.Module
    optimizer: Optimizer
    optimization: Optimization
    precision: Precision


class Replica:
    """A whole model and its optimizer.

    Args:
        trained: The model and its optimizer.
        suffix: Of this rank's files: "" for `weights.safetensors`, "_rank1" for a copy of its own; None when another
            rank writes the same numbers.
        optimizer_suffix: The same for the optimizer's file, where that differs.

    Attributes:
        model: Holds the weights by their canonical names.
        module: Called in training; may wrap `model`.
        evaluated: Called in evaluation and sampling.
        in_collective: Other ranks wait for this one's rest of the step, so it can leave nothing out.
    """

    in_collective = False

    def __init__(self, trained: Trained, suffix: str | None = "", optimizer_suffix: str | None = None) -> None:
        self.model, self.optimizer, self._optimization, self._precision = trained
        self.module = self.evaluated = self.model
        self._suffix = suffix
        self._optimizer_suffix = suffix if optimizer_suffix is None else optimizer_suffix
        self._parameters = [p for p in self.model.parameters() if p.requires_grad]

    # one step

    def set_lr(self, lr: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = lr

    def micro_batch(self, *, last: bool) -> AbstractContextManager[object]:
        """The context of one micro-batch's forward and backward; gradients are all-reduced in a step's `last`."""
        del last
        return nullcontext()

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradient of `loss`, a tensor without dimensions."""
        del last
        torch.autograd.backward(self._precision.scaler.scale(loss))

    def update(self, may_step: MayStep = always) -> Tensor:
        """Clip, update the weights where `may_step` allows it, and drop the gradients.

        Args:
            may_step: Asked with the norm before the optimizer moves; the same answer on every rank of the group.

        Returns:
            The norm of the whole gradient before clipping, a tensor without dimensions on the model's device; not
            finite when fp16 overflowed, and then nothing was updated.
        """
        scaler = self._precision.scaler
        scaler.unscale_(self.optimizer)
        norm = self.clip_grad_norm(self._optimization.clip_norm)
        if may_step(norm):
            scaler.step(self.optimizer)
            scaler.update()
        else:
            self.leave_out()
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    @property
    def skips_on_device(self) -> bool:
        """Whether the optimizer's own kernel can leave a step out: PyTorch's fused ones, without fp16's loss scale.

        A class derived from one of them may do more in its `step`, which would not be left out.
        """
        is_torchs = type(self.optimizer).__module__.startswith("torch.optim.")
        takes_found_inf = getattr(self.optimizer, "_step_supports_amp_scaling", False)
        fused = all(group.get("fused") for group in self.optimizer.param_groups)
        return is_torchs and takes_found_inf and fused and not self._precision.scaler.is_enabled()

    def update_if_finite(self) -> Tensor:
        """As `update`, but the kernel itself moves nothing if the gradient's norm is not finite, without a wait.

        Only where `skips_on_device`. The kernel is told as `torch.amp.GradScaler` tells it.
        """
        norm = self.clip_grad_norm(self._optimization.clip_norm)
        optimizer: Any = self.optimizer
        optimizer.grad_scale, optimizer.found_inf = None, (norm * 0 != 0).float()
        try:
            self.optimizer.step()
        finally:
            del optimizer.grad_scale, optimizer.found_inf
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def leave_out(self) -> None:
        """Skip this step's gradient. The loss scale stays: it is not what went wrong."""
        scaler = self._precision.scaler
        if scaler.is_enabled():
            # Makes it forget that this step's gradient is unscaled already.
            scaler.update(scaler.get_scale())

    def clip_grad_norm(self, limit: float) -> Tensor:
        """Shorten the gradient to `limit` (0 only measures); its norm before."""
        return nn.utils.clip_grad_norm_(self._parameters, limit if limit > 0 else float("inf"), foreach=True)

    def warm_up(self, loss: Tensor) -> None:
        """A backward pass before the first step, without traces in weights, optimizer or gradients."""
        torch.autograd.backward(loss * 0.0)
        self.optimizer.zero_grad(set_to_none=True)

    def sync_wait_s(self) -> float | None:
        """Seconds the last step waited for other ranks; None where that cannot be measured."""
        return None

    # its state

    def trained(self) -> Iterable[Tensor]:
        """The trained weights that this rank holds; live tensors."""
        return (parameter.detach() for parameter in self._parameters)

    def parts(self) -> list[StatePart]:
        """The files that this rank writes into a checkpoint; live tensors, to be copied before the next step."""
        parts = []
        if self._suffix is not None:
            weights = self._own(self.model.state_dict(keep_vars=True))
            parts.append(StatePart(f"weights{self._suffix}.safetensors", weights, {}))
        if self._optimizer_suffix is not None:
            state, values = optimizer_part(self.optimizer, self._optimization)
            parts.append(StatePart(f"optimizer{self._optimizer_suffix}.safetensors", self._own(state), values))
        return parts

    def _own(self, tensors: Mapping[str, Any]) -> Mapping[str, Tensor | TensorSlice]:
        return tensors

    def load(self, saved: SavedState) -> None:
        """Load a checkpoint's weights and optimizer state, whichever mode and number of ranks wrote it."""
        saved.load_model(self.model)
        groups = saved.optimizer_groups(self.optimizer, self._optimization)
        state = {number: saved.optimizer_state(number) for number in saved.optimizer_numbers()}
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})


def optimizer_part(optimizer: Optimizer, optimization: Optimization) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """State of the parameters that this rank's optimizer holds, and the plain values that go with it.

    Tensors are named "<number>.<key>"; for `scalars`, `groups`, `kind` see `workers.state_files.saved_state`.
    """
    held = optimizer_state(optimizer)
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Any] = {}
    number = 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            for key, value in held.get(parameter, {}).items():
                kept = tensors if isinstance(value, Tensor) else scalars
                kept[f"{number}.{key}"] = value
            number += 1
    return tensors, {"scalars": scalars, "groups": described_groups(optimizer, sizes), "kind": optimization.kind_name}


def described_groups(optimizer: Optimizer, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """The optimizer's groups with numbers in place of parameters, of which each group has `sizes`."""
    groups = []
    for group, (first, end) in zip(optimizer.param_groups, pairwise(accumulate(sizes, initial=0)), strict=True):
        options = {key: value for key, value in group.items() if key != "params"}
        groups.append({**options, "params": list(range(first, end))})
    return groups


def optimizer_state(optimizer: Optimizer) -> Mapping[Any, Any]:
    # ZeroRedundancyOptimizer keeps its shard in `.optim`.
    local = getattr(optimizer, "optim", optimizer)
    return dict(local.state)
