"""Weights, gradients and optimizer state in shards, with PyTorch's own FSDP2 (`fully_shard`).

Every rank keeps a run of rows of each tensor. Before a block of the model runs, its weights are gathered from all
ranks; after its backward pass each rank keeps its share of the summed gradient. Stage 3 (and mode fsdp) frees a
block's weights after its forward pass and gathers them again; stage 2 keeps them, which saves a third of the bytes.

Method: Rajbhandari et al., ZeRO (arXiv 1910.02054); Zhao et al., PyTorch FSDP (arXiv 2304.11277).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor

from core.config import RunConfig
from core.errors import RankdeckError
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.state_files.saved_state import SavedState
from workers.state_files.slices import StatePart, TensorSlice
from workers.strategies.base import RankPlace
from workers.strategies.ddp import DdpStrategy
from workers.strategies.process_group import make_process_group
from workers.strategies.replica import MayStep, Replica, Trained, always

# A block with less than this part (1 in N) of the model's weights travels with the rest: it is not worth a message of
# its own.
_SMALLEST_BLOCK: Final = 1000


class NotShardableError(RankdeckError):
    title = "This model cannot be sharded"


class FsdpStrategy(DdpStrategy):
    """All ranks in one replica group, in step, each with a share of everything (`zero_stage` 2 or 3)."""

    name = "fsdp"
    forward_is_collective = True  # every block is gathered from all ranks
    micro_batches_alike = True
    can_balance = False

    def __init__(self, place: RankPlace, config: RunConfig) -> None:
        super().__init__(place, config)
        self._stage = config.zero_stage
        # FSDP2 keeps optimizer state where the weights' shards are, so either wish takes both there.
        wanted = config.offload_optimizer or config.offload_parameters
        self._offload = wanted and place.device.type != "cpu"

    def setup(self) -> None:
        """Connect the ranks; offloaded tensors are all-reduced on the CPU (overflow flags, norms)."""
        self._flags = make_process_group(self.place, cpu_tensors=self._offload)

    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        """Shard `model` in place, block by block, so that no more than one block is whole on the device at a time.

        Raises `NotShardableError` where a parameter has no dimension to cut along.
        """
        _check_shardable(model)
        self._spread_from_first_rank(model)
        assert dist.group.WORLD is not None, "the strategy is set up before it shards"
        mesh = DeviceMesh.from_group(dist.group.WORLD, self.place.device.type)
        options: dict[str, Any] = {
            "mesh": mesh,
            "mp_policy": _mixed_precision(precision),
            "offload_policy": CPUOffloadPolicy() if self._offload else OffloadPolicy(),
        }
        for block in blocks(model):
            fully_shard(block, reshard_after_forward=self._stage == 3, **options)
        # What is left belongs to the whole model: it is in use from its first layer to its last, so letting go of it
        # between forward and backward would only mean gathering it again at once.
        fully_shard(model, reshard_after_forward=False, **options)
        trained = Trained(model, optimization.optimizer(model, lr), optimization, precision)
        return FsdpReplica(self.place, trained, self._stage)

    def compiled_parts(self, model: nn.Module) -> list[nn.Module]:
        """Blocks one by one: FSDP gathers and drops their weights in between, which no kernel can hold."""
        return list(blocks(model)) or [model]

    def _spread_from_first_rank(self, model: nn.Module) -> None:
        """All ranks' shards must be of one model, also where a recipe's beginning is not the same on all of them."""
        for tensor in (*model.parameters(), *model.buffers()):
            dist.broadcast(tensor.detach(), 0, group=self._flags if tensor.device.type == "cpu" else None)


class FsdpReplica(Replica):
    """A share of a model. Weights and optimizer state are DTensors, cut along the first dimension."""

    in_collective = True  # from the first layer's weights on

    def __init__(self, place: RankPlace, trained: Trained, stage: int) -> None:
        super().__init__(trained, f"_shard{place.rank}")
        self._place = place
        self._stage = stage
        self._sharded = cast(FSDPModule, trained.model)
        self._buffers = list(trained.model.buffers())

    def micro_batch(self, *, last: bool) -> AbstractContextManager[object]:
        """Gradients are shared out in every micro-batch, else each rank would have to keep all of them in between.

        In stage 2 the weights stay whole from a step's first micro-batch to its last: they are gathered once a step.
        """
        self._sharded.set_is_last_backward(last)
        self._sharded.set_reshard_after_backward(last or self._stage == 3)
        return nullcontext()

    def update(self, may_step: MayStep = always) -> Tensor:
        """Buffers (running means) are then rank 0's everywhere, as under DDP."""
        norm = super().update(may_step)
        for buffer in self._buffers:
            dist.broadcast(buffer, 0)
        return norm

    def clip_grad_norm(self, limit: float) -> Tensor:
        """The norm is that of the whole gradient, over all ranks' shards."""
        norm = super().clip_grad_norm(limit)
        whole = norm.full_tensor() if isinstance(norm, DTensor) else norm
        return whole.to(self._place.device)  # offloaded gradients lie on the CPU

    def trained(self) -> Iterable[Tensor]:
        return (p.to_local() if isinstance(p, DTensor) else p for p in super().trained())

    def parts(self) -> list[StatePart]:
        self._let_go()
        return super().parts()

    def load(self, saved: SavedState) -> None:
        self._let_go()
        self._load_weights(saved)
        groups = saved.optimizer_groups(self.optimizer, self._optimization)
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        state = {
            number: {
                key: _like(parameters[number], value) if isinstance(value, Tensor) else value
                for key, value in saved.optimizer_state(number).items()
            }
            for number in saved.optimizer_numbers()
        }
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})

    def _load_weights(self, saved: SavedState) -> None:
        own = self.model.state_dict(keep_vars=True)
        saved.check_names(own)
        with torch.no_grad():
            for name, target in own.items():
                whole = saved.weight(name, target.shape)
                if isinstance(target, DTensor):
                    target.to_local().copy_(_rows(whole, target))
                else:
                    target.copy_(whole)

    def _let_go(self) -> None:
        """Free whole weights that an evaluation left behind."""
        for module in self.model.modules():
            if isinstance(module, FSDPModule):
                module.reshard()

    def _own(self, tensors: Mapping[str, Any]) -> dict[str, Tensor | TensorSlice]:
        own: dict[str, Tensor | TensorSlice] = {}
        for name, tensor in tensors.items():
            local = tensor.to_local().detach() if isinstance(tensor, DTensor) else tensor
            if isinstance(tensor, DTensor) and _is_cut(tensor):
                start = _first_row(tensor) * math.prod(tensor.shape[1:])
                own[name] = TensorSlice(local.reshape(-1), start, tuple(tensor.shape))
            elif self._place.rank == 0:
                own[name] = local
        return own


def blocks(model: nn.Module) -> Iterator[nn.Module]:
    """The parts of a model that are gathered one at a time: the elements of its lists and sequences.

    A part that shares a parameter with the rest of the model, or is tiny, stays with the rest. Other modules do too:
    their weights may be used without calling them (tied embeddings), and must then be there while the model runs.
    """
    smallest = sum(parameter.numel() for parameter in model.parameters()) / _SMALLEST_BLOCK
    uses = _uses(model)
    for block in _listed(model):
        inside = _uses(block)
        size = sum(parameter.numel() for parameter in inside)
        if size >= max(1, smallest) and all(uses[parameter] == count for parameter, count in inside.items()):
            yield block


def _listed(module: nn.Module, *, within: bool = False) -> Iterator[nn.Module]:
    """Elements of the outermost containers; `within`: the module stands in one itself."""
    if isinstance(module, nn.ModuleList | nn.ModuleDict | nn.Sequential):
        for child in module.children():
            yield from _listed(child, within=True)
    elif within:
        yield module
    else:
        for child in module.children():
            yield from _listed(child)


def _uses(module: nn.Module) -> dict[nn.Parameter, int]:
    """The number of names that each parameter has in a module."""
    counts: dict[nn.Parameter, int] = {}
    for _, parameter in module.named_parameters(remove_duplicate=False):
        counts[parameter] = counts.get(parameter, 0) + 1
    return counts


def _check_shardable(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if parameter.dim() == 0:
            raise NotShardableError(
                f"Its parameter {name} is a single number without dimensions, which PyTorch's FSDP cannot shard.",
                f"Give {name} the shape (1,) in the recipe, or choose ZeRO stage 1 or DDP.",
            )


def _mixed_precision(precision: Precision) -> MixedPrecisionPolicy:
    """Weights are gathered in the forward pass's format; masters, gradients' sums and the update stay fp32."""
    return MixedPrecisionPolicy() if precision.dtype is None else MixedPrecisionPolicy(precision.dtype, torch.float32)


def _is_cut(tensor: DTensor) -> bool:
    """Whether each rank has some rows; False where each has the whole.

    Raises `NotShardableError` for neither, as in some optimizers' state: no slice in a file can describe it.
    """
    (placement,) = tensor.placements
    if not (placement.is_shard(0) or placement.is_replicate()):
        raise NotShardableError(
            f"The optimizer keeps state that is spread over the ranks as {placement}, which cannot be saved.",
            "Choose another optimizer (AdamW, SGD), or ZeRO stage 1 or DDP.",
        )
    return placement.is_shard(0)


def _first_row(tensor: DTensor) -> int:
    """The first of this rank's rows; dealt out as by `torch.chunk`, so that the last ranks may have fewer or none."""
    each = -(-tensor.shape[0] // tensor.device_mesh.size())
    return min(tensor.device_mesh.get_local_rank() * each, tensor.shape[0])


def _rows(whole: Tensor, like: DTensor) -> Tensor:
    first = _first_row(like)
    return whole[first : first + like.to_local().shape[0]]


def _like(parameter: DTensor, value: Tensor) -> Tensor:
    """State of a parameter, cut as the parameter is where it has its shape; whole on all ranks otherwise."""
    if value.shape != parameter.shape:
        return value
    local = parameter.to_local()
    rows = _rows(value, parameter).to(local.device, copy=True).contiguous()
    return DTensor.from_local(
        rows,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )
