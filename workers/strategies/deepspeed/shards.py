"""Shards under DeepSpeed: the elements of each parameter that a rank holds, in fp32 and in the optimizer's state.

Stages 1 and 2 lay a group's parameters end to end in one buffer and give each rank a run of it. Stage 3 cuts every
parameter by itself. Either way a rank has consecutive elements of a parameter, as a checkpoint's files hold them
(`workers.state_files.slices`). DeepSpeed's own checkpoints are not used: they are pickled, and only it reads them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class Shards(ABC):
    """This rank's share of a model under DeepSpeed.

    `optimizer` is torch's own, which the engine wraps; its state is keyed by DeepSpeed's flat buffers.
    """

    def __init__(self, engine: Any, optimizer: Optimizer) -> None:
        self._engine = engine
        self._optimizer = optimizer

    @abstractmethod
    def start(self, parameter: nn.Parameter) -> int:
        """The first element that this rank holds, in the flattened parameter."""

    @abstractmethod
    def master(self, parameter: nn.Parameter) -> Tensor:
        """The fp32 weights that this rank holds, shape (n,), n ≥ 0; live memory."""

    @abstractmethod
    def state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """The optimizer's state of the elements that this rank holds: live (n,) tensors, and those of no dimension."""

    @abstractmethod
    def buffers(self) -> Iterator[Tensor]:
        """DeepSpeed's flat fp32 buffers on this rank."""

    @abstractmethod
    def set_weight(self, parameter: nn.Parameter, whole: Tensor) -> None:
        """Take up a whole weight, in fp32 and in the forward pass's format; all ranks call it."""

    def shape(self, parameter: nn.Parameter) -> tuple[int, ...]:
        return tuple(parameter.shape)

    @abstractmethod
    def set_state(self, parameter: nn.Parameter, key: str, whole: Tensor) -> None:
        """Take this rank's elements of a whole tensor of the optimizer's state; `make_state` made room for them."""

    def holds(self, tensor: Tensor) -> bool:
        """Whether a tensor is spread over the ranks."""
        return isinstance(tensor, nn.Parameter) and tensor.requires_grad

    def let_go(self) -> None:
        """Release whole weights that a forward pass has left behind."""
        return

    def make_state(self, keys: Iterable[str]) -> None:
        """Make a state of zeros under these keys for every element, as the first step would."""
        for buffer in self.buffers():
            self._optimizer.state[buffer] = {key: torch.zeros_like(buffer, requires_grad=False) for key in keys}

    def set_everywhere(self, key: str, value: Any) -> None:
        """Set a value of the state that is one for a whole buffer: the number of steps."""
        fused = any(group.get("fused") or group.get("capturable") for group in self._optimizer.param_groups)
        for buffer in self.buffers():
            own = value.clone().to(buffer.device if fused else "cpu") if isinstance(value, Tensor) else value
            self._optimizer.state[buffer][key] = own


class FlatShards(Shards):
    """Stages 1 and 2; also DeepSpeed's bf16 optimizer, which is used for stage 1 in bf16."""

    def start(self, parameter: nn.Parameter) -> int:
        mapping = _mapping(parameter)
        return 0 if mapping is None else int(mapping.lp_fragment_address.start)

    def master(self, parameter: nn.Parameter) -> Tensor:
        return self._own(parameter, None)

    def state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        mapping = _mapping(parameter)
        if mapping is None:
            return {}
        buffer = self._buffer(mapping)
        held = self._optimizer.state.get(buffer, {})
        return {
            key: self._own(parameter, value) if value.shape == buffer.shape else value
            for key, value in held.items()
            if isinstance(value, Tensor)
        }

    def buffers(self) -> Iterator[Tensor]:
        for group in self._optimizer.param_groups:
            yield from group["params"]

    def set_weight(self, parameter: nn.Parameter, whole: Tensor) -> None:
        """Each rank has room for all of it, and fp32 masters of its share."""
        parameter.data.copy_(whole)
        self._put(self.master(parameter), parameter, whole)

    def set_state(self, parameter: nn.Parameter, key: str, whole: Tensor) -> None:
        if _mapping(parameter) is not None:
            self._put(self.state(parameter)[key], parameter, whole)

    def _put(self, own: Tensor, parameter: nn.Parameter, whole: Tensor) -> None:
        start = self.start(parameter)
        own.copy_(whole.reshape(-1)[start : start + own.numel()])

    def _buffer(self, mapping: Any) -> Tensor:
        buffer: Tensor = self._optimizer.param_groups[mapping.param_group_index]["params"][0]
        return buffer

    def _own(self, parameter: nn.Parameter, flat: Tensor | None) -> Tensor:
        mapping = _mapping(parameter)
        if mapping is None:
            return torch.empty(0)
        address = mapping.hp_fragment_address
        whole = self._buffer(mapping) if flat is None else flat
        return whole.detach().narrow(0, address.start, address.numel)


class CutShards(Shards):
    """Stage 3: every parameter is cut into equal runs, the last of them padded (its `ds_…` are DeepSpeed's)."""

    def __init__(self, engine: Any, optimizer: Optimizer, rank: int) -> None:
        super().__init__(engine, optimizer)
        self._rank = rank

    def shape(self, parameter: Any) -> tuple[int, ...]:
        return tuple(parameter.ds_shape)

    def start(self, parameter: Any) -> int:
        return min(self._rank * self._run(parameter), int(parameter.ds_numel))

    def master(self, parameter: Any) -> Tensor:
        """Of a frozen parameter, which has no master, the weights themselves."""
        from deepspeed.utils import safe_get_local_fp32_param

        if not parameter.requires_grad:
            return self._without_padding(parameter, parameter.ds_tensor.detach())
        return self._without_padding(parameter, safe_get_local_fp32_param(parameter))

    def state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        from deepspeed.utils import safe_get_local_optimizer_state

        buffer = next(self.buffers())
        held = {key: value for key, value in self._optimizer.state.get(buffer, {}).items() if isinstance(value, Tensor)}
        return {
            key: value
            if value.shape != buffer.shape
            else self._without_padding(parameter, safe_get_local_optimizer_state(parameter, key))
            for key, value in held.items()
        }

    def buffers(self) -> Iterator[Tensor]:
        yield from self._engine.optimizer.fp32_partitioned_groups_flat

    def set_weight(self, parameter: nn.Parameter, whole: Tensor) -> None:
        """Gather it, so that also a copy that DeepSpeed keeps whole is set, and let go of it."""
        from deepspeed.runtime.zero.partition_parameters import GatheredParameters
        from deepspeed.utils import safe_set_local_fp32_param

        with GatheredParameters([parameter], modifier_rank=0):
            parameter.data.copy_(whole)
        if parameter.requires_grad:
            safe_set_local_fp32_param(parameter, self._padded(parameter, whole))

    def set_state(self, parameter: nn.Parameter, key: str, whole: Tensor) -> None:
        from deepspeed.utils import safe_set_local_optimizer_state

        safe_set_local_optimizer_state(parameter, self._padded(parameter, whole), key)

    def let_go(self) -> None:
        """DeepSpeed 0.16 refuses to gather a weight again that it takes to be in use."""
        self._engine.empty_partition_cache()

    def holds(self, tensor: Tensor) -> bool:
        return isinstance(tensor, nn.Parameter)

    def _padded(self, parameter: nn.Parameter, whole: Tensor) -> Tensor:
        padded = torch.zeros(self._run(parameter))
        own = whole.reshape(-1)[self.start(parameter) :][: len(padded)]
        padded[: len(own)] = own
        return padded

    def _run(self, parameter: Any) -> int:
        return int(parameter.ds_tensor.numel())

    def _without_padding(self, parameter: Any, run: Tensor) -> Tensor:
        left = int(parameter.ds_numel) - self.start(parameter)
        if self._engine.optimizer.offload_optimizer:
            # DeepSpeed hands out a copy on the device, where there may be no room for all of them.
            run = run.cpu()
        return run.detach().reshape(-1)[: max(0, left)]


def _mapping(parameter: nn.Parameter) -> Any:
    return getattr(parameter, "_hp_mapping", None)
