"""One of several real processes that train a small GPT under DeepSpeed; prints one JSON line.

Run by `test_deepspeed`: `python -m tests.training.workers.deepspeed_rank RANK WORLD FOLDER`.
"""

from __future__ import annotations

import gc
import hashlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import torch
from torch import Tensor, nn

from tests.training.workers.sharded_rank import HELD_OUT, RESUMED_AT, STEPS, Training, evaluation, stored
from workers.optim.precision import Precision
from workers.strategies import RankPlace
from workers.strategies.deepspeed.engine import LossScale, import_deepspeed
from workers.strategies.deepspeed.zero import DeepSpeedReplica
from workers.training.checkpoint import load_part

STAGES: Final = ("1", "2", "3")
# One kernel over all elements takes its last few by other instructions, and which are last differs under DeepSpeed.
PLAIN: Final = {"fused": False}
# The model is tiny: else stage 3 would keep all of it whole on every rank.
CUT_ALL: Final = json.dumps({"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}})


class DeepSpeedTraining(Training):
    """A stage under DeepSpeed, or DDP to compare it with."""

    def __init__(self, place: tuple[int, int, Path], way: str, **settings: Any) -> None:
        engine = {} if way == "ddp" else {"zero_engine": "deepspeed"}
        if way == "3":
            engine["deepspeed_config"] = CUT_ALL
        super().__init__(place, way, **{"options": PLAIN, **engine, **settings})

    def close(self) -> None:
        """DeepSpeed 0.16 keeps the group that it was used with first."""
        super().close()
        groups: Any = sys.modules.get("deepspeed.utils.groups")
        if groups is not None:
            groups._WORLD_GROUP = None

    def digest(self, *, buffers: bool = True) -> str:
        """Of all fp32 weights, whole, and buffers."""
        digest = hashlib.sha256()
        if isinstance(self.replica, DeepSpeedReplica):
            self.replica.shards.let_go()
        for name, parameter in self.model.named_parameters():
            digest.update(name.encode() + whole(parameter).contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        for buffer in self.model.buffers() if buffers else ():
            digest.update(buffer.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def bytes_held(self) -> dict[str, int]:
        """What this rank keeps between steps."""
        replica = self.replica
        held = {
            "weights": stored(self.model.parameters()),
            "optimizer": stored(v for s in replica.optimizer.state.values() for v in s.values() if v.dim()),
        }
        if isinstance(replica, DeepSpeedReplica):
            held["masters"] = stored(replica.shards.buffers())
        return held


def whole(parameter: nn.Parameter) -> Tensor:
    """All of a parameter, in fp32; all ranks call it."""
    value = parameter.detach()
    if hasattr(parameter, "ds_id"):
        import deepspeed

        if parameter.requires_grad:
            return deepspeed.utils.safe_get_full_fp32_param(parameter)
        with deepspeed.zero.GatheredParameters([parameter]):
            value = parameter.detach().clone()
    elif hasattr(parameter, "_hp_mapping"):
        import deepspeed

        return deepspeed.utils.safe_get_full_fp32_param(parameter)
    return value


def curve(place: tuple[int, int, Path], way: str, **settings: Any) -> dict[str, Any]:
    """Forty steps with a commit on the way, an evaluation that leaves no trace, and a last commit."""
    training = DeepSpeedTraining(place, way, **settings)
    losses = training.run(0, RESUMED_AT)
    training.commit(place[2] / f"{way}-part", RESUMED_AT)
    losses += training.run(RESUMED_AT, STEPS)
    found = {"losses": losses, "digest": training.digest(), "bytes": training.bytes_held(), **look(training)}
    training.commit(place[2] / f"{way}-end", STEPS)
    training.close()
    return found


def look(training: DeepSpeedTraining) -> dict[str, Any]:
    """What evaluation and sampling say."""
    before = training.digest()
    model: Any = training.replica.evaluated
    val_losses = [evaluation(n).measure(model, training.strategy) for n in (HELD_OUT, 1)]
    model.eval()
    text = model.generate(torch.tensor([1, 2]), 12, 0.8, torch.Generator().manual_seed(4)).tolist()
    model.train()
    return {"val_losses": val_losses, "text": text, "untouched": training.digest() == before}


def resumed(place: tuple[int, int, Path], way: str, by: str, **settings: Any) -> dict[str, Any]:
    """The last steps, by a model that began differently and took up what `by` left."""
    training = DeepSpeedTraining(place, way, seed=place[0] + 50, **settings)
    counters = load_part(place[2] / f"{by}-part", training.strategy, training.replica)
    losses = training.run(counters["step"], STEPS)
    found = {"losses": losses, "digest": training.digest()}
    training.close()
    return found


def short(place: tuple[int, int, Path], way: str, *, micro: int = 1, **settings: Any) -> dict[str, Any]:
    """Some steps."""
    training = DeepSpeedTraining(place, way, **settings)
    losses = training.run(0, 5, micro=micro) + training.run(5, 6, micro=2 * micro)  # also more than was announced
    masters: list[str] = []
    if isinstance(training.replica, DeepSpeedReplica):
        masters = sorted({str(buffer.dtype) for buffer in training.replica.shards.buffers()})
    found = {"losses": losses, "norm": float(training.norm), "masters": masters}
    training.close()
    return found


def loss_scales(place: tuple[int, int, Path]) -> dict[str, Any]:
    """DeepSpeed's own dynamic loss scale beside the run's scaler: DeepSpeed refuses fp16 itself without a GPU."""
    from deepspeed.runtime.fp16.loss_scaler import DynamicLossScaler

    training = DeepSpeedTraining(place, "1")
    precision = Precision("fp16", torch.device("cpu"))
    own = DynamicLossScaler(2.0**16, 3, 1.0, 1, False, dtype=torch.half)
    both = LossScale(SimpleNamespace(optimizer=SimpleNamespace(loss_scaler=own)), precision.scaler, torch.device("cpu"))

    def step(overflow: bool) -> list[float]:
        both.take()
        own.update_scale(overflow)
        both.give()
        scale = precision.loss_scale()
        return [own.cur_scale, -1.0 if scale is None else float(scale)]

    followed = [step(overflow) for overflow in (False, True, False, False)]
    saved = precision.scaler.state_dict()
    followed += [step(False), step(False)]
    own.cur_scale, own.cur_iter, own.last_overflow_iter = 8.0, 100, 57  # another process, another history
    precision.scaler.load_state_dict(saved)
    found = {"followed": followed, "resumed": [step(False), step(False)]}
    training.close()
    return found


def main(rank: int, world: int, folder: Path) -> dict[str, Any]:
    """All that `test_deepspeed` looks at."""
    import_deepspeed(RankPlace(rank, world, torch.device("cpu")))
    gc.freeze()  # each of its engines has all that is there looked through
    place = (rank, world, folder)
    found: dict[str, Any] = {"whole": {way: curve(place, way) for way in ("ddp", *STAGES)}}
    pairs = [*((way, way) for way in STAGES), ("3", "ddp"), ("1", "3"), ("ddp", "2")]
    found["resumed"] = {f"{way} from {by}": resumed(place, way, by) for way, by in pairs}
    clipped = {way: short(place, way, micro=2, clip=0.5, grad_accum_steps=2) for way in ("ddp", *STAGES)}
    found["clipped"] = clipped
    found["scales"] = loss_scales(place)
    found["bf16"] = {way: short(place, way, precision="bf16", clip=1.0) for way in ("ddp", *STAGES)}
    found["offload"] = {
        way: short(
            place, way, micro=2, clip=0.5, grad_accum_steps=2, offload_optimizer=True, offload_parameters=way == "3"
        )
        for way in STAGES
    }
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))) + "\n")
