"""One of several real processes that train a small GPT in every way of sharding; prints one JSON line.

Run by `test_sharding`: `python -m tests.training.workers.sharded_rank RANK WORLD FOLDER`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional as F

from core.config import RunConfig
from core.config.batch import resolve_batch
from workers.host_link.failures import explain
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipes.minigpt.model import MiniGPT, Shape, Written
from workers.strategies import RankPlace, Replica, Strategy, make_strategy
from workers.strategies.replica import optimizer_state
from workers.training.checkpoint import load_part, take_part, write_part
from workers.training.evaluation import Evaluation

STEPS: Final = 40
RESUMED_AT: Final = 30
VOCABULARY: Final = 61
LENGTH: Final = 16
HELD_OUT: Final = 5


class OddGPT(MiniGPT):
    """Tied embeddings, sizes that two and three ranks cannot divide, fewer rows than ranks, a running buffer."""

    def __init__(self) -> None:
        super().__init__(Shape(VOCABULARY, LENGTH, 2, 2, 32))
        self.gain = nn.Parameter(torch.ones(1))
        self.offsets = nn.Parameter(torch.zeros(2))
        self.frozen = nn.Parameter(torch.full((5,), 0.5), requires_grad=False)
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, tokens: Tensor, written: Written | None = None) -> Tensor:
        logits = super().forward(tokens, written) * self.gain + self.offsets.sum() * self.frozen.sum()
        if self.training:
            self.mean.lerp_(logits.detach().float().mean(), 0.1)
        return logits


def make_model() -> OddGPT:
    """Alike in every process that has the same seed."""
    return OddGPT()


def tokens(count: int, seed: int) -> Tensor:
    """Samples that something can be learned from, shape (count, LENGTH + 1)."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(0, 5, (count, LENGTH + 1), generator=generator)
    return steps.cumsum(1) % VOCABULARY


def loss_of(model: nn.Module, batch: Tensor) -> Tensor:
    """Mean cross-entropy of the next token."""
    return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1).float(), batch[:, 1:].flatten())


def evaluation(samples: int = HELD_OUT) -> Evaluation:
    """Held-out samples that ranks cannot share out evenly."""
    held_out = tokens(HELD_OUT, 99)
    return Evaluation(
        samples,
        samples,
        2,
        lambda indices: held_out[torch.from_numpy(indices)],
        loss_of,
        Precision("fp32", torch.device("cpu")),
    )


class Training:
    """One strategy with one model, from set-up to close."""

    made = 0

    def __init__(
        self,
        place: tuple[int, int, Path],
        way: str,
        *,
        precision: str = "fp32",
        clip: float = 0.0,
        seed: int = 3,
        options: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        rank, self.world, folder = place
        Training.made += 1
        url = (folder / f"rendezvous-{Training.made}").as_uri()
        mode, stage = ("ddp", 1) if way == "ddp" else ("fsdp", 3) if way == "fsdp" else ("zero", int(way))
        config = RunConfig(**{"mode": mode, "zero_stage": stage, "zero_engine": "torch", **settings})
        self.strategy: Strategy = make_strategy(
            mode,
            RankPlace(rank, self.world, torch.device("cpu"), "gloo", url, timeout_s=60.0),
            config,
            resolve_batch(config, self.world),
        )
        self.strategy.setup()
        seeding.seed_everything(seed)
        self.model = make_model()
        self.precision = Precision(precision, torch.device("cpu"))
        rule = Optimization(options=options or {}, weight_decay=0.1, clip_norm=clip)
        self.replica: Replica = self.strategy.replicate(self.model, rule, 0.01, self.precision)
        with self.precision.forward():
            loss = loss_of(self.replica.module, tokens(2, 7))
        self.replica.warm_up(loss)  # as the trainer does before the first step
        self.gradient_bytes = 0
        self.norm = torch.zeros(())

    def run(self, first: int, last: int, *, micro: int = 1, spoilt: int | None = None) -> list[float]:
        """The mean loss over all ranks at each step; at step `spoilt` the last rank's gradient overflows."""
        losses = []
        for step in range(first, last):
            share = tokens(4 * self.world, step).chunk(self.world)[self.strategy.group_rank]
            total = 0.0
            for number, part in enumerate(share.chunk(micro)):
                with self.replica.micro_batch(last=number == micro - 1):
                    with self.precision.forward():
                        loss = loss_of(self.replica.module, part)
                    total += loss.item() / micro
                    bad = step == spoilt and self.strategy.group_rank == self.world - 1
                    self.replica.backward(loss * (1e30 if bad else 1.0) / micro, last=number == micro - 1)
            self.gradient_bytes = stored(p.grad for p in self.model.parameters() if p.grad is not None)
            self.norm = self.replica.update()
            losses.append(self.strategy.total([total])[0] / self.world)
        return losses

    def commit(self, folder: Path, step: int) -> None:
        """Every rank's part lies on disk when this returns."""
        folder.mkdir(exist_ok=True)
        write_part(folder, take_part(self.strategy, self.replica, step, {"step": step}))
        self.strategy.total([0.0])

    def digest(self, *, buffers: bool = True) -> str:
        """Of all weights and buffers, whole, by name; the same on every rank if they hold the same."""
        digest = hashlib.sha256()
        for name, value in sorted(self.model.state_dict(keep_vars=True).items()):
            tensor = value.detach()
            if not (buffers or isinstance(value, nn.Parameter)):
                continue  # a running mean moves in a step that is skipped too
            whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            digest.update(name.encode() + whole.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def bytes_held(self) -> dict[str, int]:
        """What this rank keeps between steps."""
        state = [v for s in optimizer_state(self.replica.optimizer).values() for v in s.values() if v.dim()]
        return {
            "weights": stored(self.model.parameters()),
            "gradients": self.gradient_bytes,
            "optimizer": stored(state),
        }

    def close(self) -> None:
        self.strategy.close()


def stored(tensors: Iterable[Tensor]) -> int:
    """Bytes of memory behind tensors on this rank, shared memory counted once."""
    blocks = {}
    for tensor in tensors:
        local = tensor.detach()
        storage = (local.to_local() if isinstance(local, DTensor) else local).untyped_storage()
        blocks[storage.data_ptr()] = storage.nbytes()
    return sum(blocks.values())


def whole_curve(place: tuple[int, int, Path], way: str) -> dict[str, Any]:
    """Forty steps with a commit on the way, then an evaluation, a sampled text and a last commit."""
    training = Training(place, way)
    losses = training.run(0, RESUMED_AT)
    training.commit(place[2] / f"{way}-part", RESUMED_AT)
    losses += training.run(RESUMED_AT, STEPS)
    found = {"losses": losses, "digest": training.digest(), "bytes": training.bytes_held(), **look(training)}
    training.commit(place[2] / f"{way}-end", STEPS)
    training.close()
    return found


def look(training: Training) -> dict[str, Any]:
    """What evaluation and sampling say, which must leave no trace."""
    before = training.digest()
    val_losses = [evaluation(n).measure(training.replica.evaluated, training.strategy) for n in (HELD_OUT, 1)]
    training.model.eval()
    everyone = training.strategy.forward_is_collective or training.strategy.group_rank == 0
    text = (
        training.model.generate(torch.tensor([1, 2]), 12, 0.8, torch.Generator().manual_seed(4)) if everyone else None
    )
    training.model.train()
    return {
        "val_losses": val_losses,
        "text": None if text is None else text.tolist(),
        "untouched": training.digest() == before,
    }


def resumed(place: tuple[int, int, Path], way: str, written_by: str) -> dict[str, Any]:
    """The last steps, by a model that began differently and took up what `written_by` left."""
    training = Training(place, way, seed=place[0] + 50)
    counters = load_part(place[2] / f"{written_by}-part", training.strategy, training.replica)
    losses = training.run(counters["step"], STEPS)
    found = {"losses": losses, "digest": training.digest()}
    training.close()
    return found


def accumulated(place: tuple[int, int, Path], way: str) -> list[float]:
    """Two micro-batches a step, gradients clipped."""
    training = Training(place, way, clip=0.5)
    losses = training.run(0, 12, micro=2)
    training.close()
    return losses


def half_precision(place: tuple[int, int, Path], way: str, precision: str) -> dict[str, Any]:
    """A short run; in fp16 one rank's gradient overflows at one step."""
    training = Training(place, way, precision=precision, clip=1.0)
    losses = training.run(0, 10)
    before, scale = training.digest(buffers=False), training.precision.scaler.get_scale()
    if precision == "fp16":
        training.run(10, 11, spoilt=10)
    found = {
        "losses": losses,
        "skipped": training.digest(buffers=False) == before,
        "norm_finite": bool(torch.isfinite(training.norm)),
        "scales": [scale, training.precision.scaler.get_scale()],
        "masters": sorted({str(p.dtype) for p in training.model.parameters()}),
        "goes_on": training.run(11, 14),
    }
    training.close()
    return found


def part_alone(place: tuple[int, int, Path]) -> str:
    """What a person is told whose recipe uses a layer without calling the model around it."""
    training = Training(place, "3")
    try:
        training.model.blocks[0].up(torch.ones(1, 32))
    except RuntimeError as error:
        return explain(error, "cpu").title
    finally:
        training.close()
    return "nothing"


def main(rank: int, world: int, folder: Path) -> dict[str, Any]:
    """All that `test_sharding` looks at."""
    place = (rank, world, folder)
    ways = ["ddp", "1", "2", "3"] if world == 2 else ["ddp", "3"]
    found: dict[str, Any] = {"whole": {way: whole_curve(place, way) for way in ways}}
    pairs = [(way, way) for way in ways if way != "ddp"]
    if world == 2:
        pairs += [("fsdp", "ddp"), ("2", "1"), ("ddp", "3")]
        found["accumulated"] = {way: accumulated(place, way) for way in ("ddp", "2", "3")}
        found["part_alone"] = part_alone(place)
        found["half"] = {name: half_precision(place, "3", name) for name in ("bf16", "fp16")}
    found["resumed"] = {f"{way} from {by}": resumed(place, way, by) for way, by in pairs}
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))) + "\n")
