"""Training of a small GPT in any way of sharding, for the scenarios of `test_sharding` and `test_deepspeed`."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.training.rank_program import CPU, SEED, BareRank
from workers.decoding import KeyValues, write_tokens
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipes.minigpt.model import MiniGPT, Shape
from workers.strategies import Replica, Strategy
from workers.strategies.replica import optimizer_state
from workers.training.checkpoint import load_part, take_part, write_part
from workers.training.evaluation import Evaluation

STEPS: Final = 40
RESUMED_AT: Final = 30
VOCABULARY: Final = 61
LENGTH: Final = 16
HELD_OUT: Final = 5
_NUMBERS: Final = itertools.count()


class OddGPT(MiniGPT):
    """Tied embeddings, sizes that two and three ranks cannot divide, fewer rows than ranks, a running buffer."""

    def __init__(self) -> None:
        super().__init__(Shape(VOCABULARY, LENGTH, 2, 2, 32))
        self.gain = nn.Parameter(torch.ones(1))
        self.offsets = nn.Parameter(torch.zeros(2))
        self.frozen = nn.Parameter(torch.full((5,), 0.5), requires_grad=False)
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, tokens: Tensor, kept: list[KeyValues] | None = None) -> Tensor:
        logits = super().forward(tokens, kept) * self.gain + self.offsets.sum() * self.frozen.sum()
        if self.training:
            self.mean.lerp_(logits.detach().float().mean(), 0.1)
        return logits


def tokens(count: int, seed: int) -> Tensor:
    """Samples that something can be learned from, shape (count, LENGTH + 1)."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(0, 5, (count, LENGTH + 1), generator=generator)
    return steps.cumsum(1) % VOCABULARY


def loss_of(model: nn.Module, batch: Tensor) -> Tensor:
    return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1).float(), batch[:, 1:].flatten())


def evaluation(samples: int = HELD_OUT) -> Evaluation:
    held_out = tokens(HELD_OUT, 99)
    return Evaluation(
        samples,
        samples,
        2,
        lambda indices: held_out[torch.from_numpy(indices)],
        loss_of,
        Precision("fp32", CPU),
    )


class Training:
    def __init__(
        self,
        strategy: Strategy,
        *,
        precision: str = "fp32",
        clip: float = 0.0,
        seed: int = SEED,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.strategy = strategy
        self.world = strategy.place.world_size
        seeding.seed_everything(seed)
        self.model = OddGPT()
        self.precision = Precision(precision, CPU)
        rule = Optimization(options=options or {}, weight_decay=0.1, clip_norm=clip)
        self.replica: Replica = strategy.replicate(self.model, rule, 0.01, self.precision)
        with self.precision.forward():
            loss = loss_of(self.replica.module, tokens(2, 7))
        self.replica.warm_up(loss)  # as the trainer does before the first step
        self.gradient_bytes = 0
        self.norm = torch.zeros(())

    @classmethod
    @contextmanager
    def on(cls, rank: BareRank, way: str, settings: Mapping[str, Any] | None = None, **options: Any) -> Iterator[Self]:
        """A training of its own, closed afterwards.

        Args:
            rank: This rank.
            way: ``ddp``, ``fsdp`` or a ZeRO stage.
            settings: `RunConfig`'s.
            options: The constructor's.
        """
        mode = f"zero{way}" if way.isdecimal() else way
        with rank.strategy(mode, str(next(_NUMBERS)), **(settings or {})) as strategy:
            yield cls(strategy, **options)

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
            whole = tensor.full_tensor() if is_sharded(tensor) else tensor
            digest.update(name.encode() + whole.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def bytes_held(self) -> dict[str, int]:
        state = [v for s in optimizer_state(self.replica.optimizer).values() for v in s.values() if v.dim()]
        return {
            "weights": stored(self.model.parameters()),
            "gradients": self.gradient_bytes,
            "optimizer": stored(state),
        }

    def look(self) -> dict[str, Any]:
        """What evaluation and sampling find, which must leave no trace."""
        before = self.digest()
        val_losses = [evaluation(n).measure(self.replica.evaluated, self.strategy)[0] for n in (HELD_OUT, 1)]
        return {"val_losses": val_losses, "text": self.text(), "untouched": self.digest() == before}

    def text(self) -> list[int] | None:
        """A sampled text; None on a rank that is not needed for it."""
        return generated(self.model) if self.strategy.forward_is_collective or self.strategy.group_rank == 0 else None


def generated(model: Any) -> list[int]:
    model.eval()
    generator = torch.Generator().manual_seed(4)
    text: list[int] = write_tokens(model.writer(), torch.tensor([1, 2]), 12, 0.8, generator).tolist()
    model.train()
    return text


def curve(kind: type[Training], rank: BareRank, way: str) -> dict[str, Any]:
    """Forty steps with a commit on the way, then an evaluation, a sampled text and a last commit."""
    with kind.on(rank, way) as training:
        losses = training.run(0, RESUMED_AT)
        training.commit(rank.folder / f"{way}-part", RESUMED_AT)
        losses += training.run(RESUMED_AT, STEPS)
        found = {"losses": losses, "digest": training.digest(), "bytes": training.bytes_held(), **training.look()}
        training.commit(rank.folder / f"{way}-end", STEPS)
    return found


def resumed(kind: type[Training], rank: BareRank, way: str, by: str) -> dict[str, Any]:
    """The last steps, by a model that began differently and took up what `by` left."""
    with kind.on(rank, way, seed=rank.rank + 50) as training:
        counters = load_part(rank.folder / f"{by}-part", training.strategy, training.replica)
        return {"losses": training.run(counters["step"], STEPS), "digest": training.digest()}


def is_sharded(tensor: Tensor) -> bool:
    """Whether FSDP holds a part of it on each rank."""
    from torch.distributed.tensor import DTensor  # half a second, for every process that collects these tests

    return isinstance(tensor, DTensor)


def stored(tensors: Iterable[Tensor]) -> int:
    """Bytes of memory behind tensors on this rank, shared memory counted once."""
    blocks = {}
    for tensor in tensors:
        local = tensor.detach()
        storage = (local.to_local() if is_sharded(local) else local).untyped_storage()
        blocks[storage.data_ptr()] = storage.nbytes()
    return sum(blocks.values())
