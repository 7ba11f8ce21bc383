"""ZeRO stages 1, 2 and 3 with DeepSpeed as the engine.

The optimizer is the recipe's own (torch's AdamW), so nothing is compiled. Losses are those of DDP: bit for bit in
stage 1, and in stage 2 where a step is one micro-batch; stage 3 differs by rounding. In bf16 the weights on each device
are in that format, and the fp32 masters, spread over the ranks, are in the checkpoint. It is not used in fp16.

Method: Rajbhandari et al., ZeRO (arXiv 1910.02054).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from core.config import RunConfig
from core.config.batch import Batch
from core.errors import ConfigError
from core.launch.deepspeed import FIELD, check_run, effective_config, without_open_values
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.state_files.saved_state import SavedState
from workers.state_files.slices import StatePart, TensorSlice
from workers.strategies.base import RankPlace
from workers.strategies.ddp import DdpStrategy
from workers.strategies.deepspeed.engine import forget_gradients, grad_norm, import_deepspeed, make_engine
from workers.strategies.deepspeed.shards import CutShards, FlatShards, Shards
from workers.strategies.replica import MayStep, Replica, Trained, always, described_groups


class DeepSpeedStrategy(DdpStrategy):
    """All ranks in one replica group, in step, with DeepSpeed between model and optimizer."""

    name = "zero"
    # The engine counts samples for itself, alike on all ranks.
    can_balance = False

    def __init__(self, place: RankPlace, config: RunConfig, batch: Batch) -> None:
        super().__init__(place, config)
        # Every layer's weights are gathered from all ranks.
        self.forward_is_collective = config.zero_stage == 3
        self.micro_batches_alike = config.zero_stage > 1  # gradients are reduced in every micro-batch
        self._batch = batch
        self._deepspeed: Any = None
        self._engine: Any = None

    def setup(self) -> None:
        """Import DeepSpeed first: where that fails no other rank has to be waited for."""
        self._deepspeed = import_deepspeed(self.place)
        super().setup()

    def close(self) -> None:
        """Take DeepSpeed's hooks off the model, then leave the process groups, of which DeepSpeed knows too."""
        if self._engine is None:
            super().close()
            return
        self._engine.destroy()
        self._engine = None
        if dist.is_initialized():
            self._deepspeed.comm.destroy_process_group()

    def replicate(self, model: nn.Module, optimization: Optimization, lr: float, precision: Precision) -> Replica:
        """The model under DeepSpeed's engine, which changes it in place.

        Raises `ConfigError` where DeepSpeed's configuration contradicts the recipe, else `DeepSpeedError`.
        """
        settings = self._settings(optimization, precision)
        before = Before.of(model, optimization)
        optimizer = optimization.optimizer(model, lr)
        engine = self._engine = make_engine(
            self.place, model, optimizer, settings, self._deepspeed, self._config.deepspeed_config or ""
        )
        shards: Shards = FlatShards(engine, optimizer)
        if self.forward_is_collective:
            shards = CutShards(engine, optimizer, self.place.rank)
        trained = Trained(model, optimizer, optimization, precision)
        replica = DeepSpeedReplica(self.place, engine, shards, before, trained)
        if self.forward_is_collective:
            replica.evaluated = engine
        return replica

    def _settings(self, optimization: Optimization, precision: Precision) -> dict[str, Any]:
        if optimization.kind_name != "AdamW" and '"optimizer"' in (self._config.deepspeed_config or ""):
            raise ConfigError(
                FIELD,
                f"The DeepSpeed configuration has a section optimizer, but the recipe uses {optimization.kind_name}.",
                "Leave the section optimizer out.",
            )
        check_run(self._config, self._batch, self._deepspeed.__version__)
        clip_norm = float(optimization.clip_norm)
        settings = effective_config(self._config, self._batch, precision=precision.name, clip_norm=clip_norm)
        return without_open_values(settings)


@dataclass(frozen=True)
class Before:
    """A model as it was before DeepSpeed took it over.

    Attributes:
        numbered: Trainable parameters by their number in a checkpoint.
        sizes: The number of them in each group of the optimizer.
        dtypes: Of each entry of the model's `state_dict`.
    """

    numbered: list[nn.Parameter]
    sizes: list[int]
    dtypes: dict[str, torch.dtype]

    @classmethod
    def of(cls, model: nn.Module, optimization: Optimization) -> Before:
        groups = [group["params"] for group in optimization.groups(model)]
        dtypes = {name: tensor.dtype for name, tensor in model.state_dict().items()}
        return cls([parameter for group in groups for parameter in group], [len(group) for group in groups], dtypes)


class DeepSpeedReplica(Replica):
    """A share of a model's state; DeepSpeed averages gradients over the ranks, clips and steps.

    A micro-batch's weight is in its loss already, so DeepSpeed is kept from dividing by their number.
    """

    # The engine counts micro-batches, and reduces as it likes.
    in_collective = True

    def __init__(self, place: RankPlace, engine: Any, shards: Shards, before: Before, trained: Trained) -> None:
        super().__init__(trained, f"_shard{place.rank}")
        self.module = engine
        self.shards = shards
        self._place = place
        self._engine = engine
        self._before = before
        self._buffers = [buffer for buffer in trained.model.buffers() if buffer.numel()]

    # one step

    def micro_batch(self, *, last: bool) -> AbstractContextManager[object]:
        """Tell DeepSpeed where a step ends, however many micro-batches it has."""
        self._engine.set_gradient_accumulation_boundary(last)
        return nullcontext()

    def backward(self, loss: Tensor, *, last: bool) -> None:
        del last
        self._engine.backward(loss, scale_wrt_gas=False)

    def update(self, may_step: MayStep = always) -> Tensor:
        """A gradient that is not finite on one rank makes DeepSpeed skip the step on all, before `may_step` is asked.

        Buffers are then rank 0's, as under DDP.
        """
        self._engine.step()
        norm = grad_norm(self._engine, self._place.device)
        may_step(norm)
        for buffer in self._buffers:
            dist.broadcast(buffer, 0)
        return norm

    def warm_up(self, loss: Tensor) -> None:
        self._engine.set_gradient_accumulation_boundary(False)
        self._engine.backward(loss * 0.0, scale_wrt_gas=False)
        forget_gradients(self._engine)

    # its state

    def trained(self) -> Iterable[Tensor]:
        return (self.shards.master(parameter) for parameter in self._before.numbered)

    def parts(self) -> list[StatePart]:
        """Every rank writes its run of each tensor's elements; rank 0 also what is whole on all of them."""
        weights: dict[str, Tensor | TensorSlice] = {}
        for name, tensor in self.model.state_dict(keep_vars=True).items():
            if self.shards.holds(tensor):
                own = self.shards.master(tensor)
                if own.numel():
                    weights[name] = self._slice(tensor, own.to(self._before.dtypes[name]))
            elif self._place.rank == 0:
                weights[name] = tensor.detach().to(self._before.dtypes[name])
        state: dict[str, Tensor | TensorSlice] = {}
        for number, parameter in enumerate(self._before.numbered):
            for key, value in self.shards.state(parameter).items():
                if value.dim() == 0:
                    state[f"{number}.{key}"] = value
                elif value.numel():
                    state[f"{number}.{key}"] = self._slice(parameter, value)
        values = {"scalars": {}, "groups": self._groups(), "kind": self._optimization.kind_name}
        return [
            StatePart(f"weights{self._suffix}.safetensors", weights, {}),
            StatePart(f"optimizer{self._suffix}.safetensors", state, values),
        ]

    def load(self, saved: SavedState) -> None:
        self.shards.let_go()
        self._load_weights(saved)
        # DeepSpeed's groups hold buffers, not parameters.
        numbered = SimpleNamespace(param_groups=self._groups())
        groups = saved.optimizer_groups(cast(Optimizer, numbered), self._optimization)
        for group, options in zip(self.optimizer.param_groups, groups, strict=True):
            group.update({key: value for key, value in options.items() if key != "params"})
        self._load_optimizer_state(saved)

    def _load_weights(self, saved: SavedState) -> None:
        own = self.model.state_dict(keep_vars=True)
        saved.check_names(own)
        taken: set[int] = set()  # tied weights have two names
        with torch.no_grad():
            for name, target in sorted(own.items()):
                if id(target) in taken:
                    continue
                if isinstance(target, nn.Parameter):
                    self.shards.set_weight(target, saved.weight(name, self.shards.shape(target)))
                else:
                    target.copy_(saved.weight(name, target.shape))
                taken.add(id(target))

    def _load_optimizer_state(self, saved: SavedState) -> None:
        """DeepSpeed keeps one state for a whole buffer: parameters of which nothing is saved begin with zeros."""
        numbers = saved.optimizer_numbers()
        if not numbers:
            self.optimizer.state.clear()
            return
        steps: dict[str, Any] = {}
        made = False
        with torch.no_grad():
            for number in numbers:
                parameter = self._before.numbered[number]
                state = saved.optimizer_state(number)
                of_elements = {
                    key: value
                    for key, value in state.items()
                    if isinstance(value, Tensor) and tuple(value.shape) == self.shards.shape(parameter) and value.dim()
                }
                if not made:
                    self.shards.make_state(list(of_elements))
                    made = True
                for key, value in of_elements.items():
                    self.shards.set_state(parameter, key, value)
                for key in state.keys() - of_elements.keys():
                    steps[key] = max(steps.get(key, state[key]), state[key])
            for key, value in steps.items():
                self.shards.set_everywhere(key, value)

    def _slice(self, parameter: nn.Parameter, own: Tensor) -> TensorSlice:
        return TensorSlice(own, self.shards.start(parameter), self.shards.shape(parameter))

    def _groups(self) -> list[dict[str, Any]]:
        """The optimizer's groups with the numbers that parameters had before DeepSpeed put buffers in their place."""
        return described_groups(self.optimizer, self._before.sizes)
