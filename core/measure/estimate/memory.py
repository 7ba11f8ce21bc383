"""Memory of one rank, mode by mode. Pure arithmetic; docs/estimate.md has the reasons for each engine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from core.config.mode import Mode
from core.measure.estimate.figures import USUAL_CONTEXT, Baselines, ModelFigures

# `reduce_bucket_size` and the prefetch bucket in resources/deepspeed_zero*.json, in fp32.
DEEPSPEED_BUCKET_BYTES: Final = 25_000_000 * 4
# `stage3_max_live_parameters` there.
DEEPSPEED_LIVE_BYTES: Final = 100_000_000 * 4
# What a rank takes beyond the steps that the probe makes: threads that send and write, and gaps that grow over hundreds
# of steps. Not derived but seen: in docs/estimate.md's table, the four runs of minigpt in single and DDP and the three
# of clstm_ppo had 6, 6, 13, 15, 18, 18 and 23 MiB more than follows from their probes, 14 in the mean; minigpt's run of
# independent ranks had 20 MiB less. How much of it the threads are was not told apart.
RUN_BYTES: Final = 12 << 20
# The same where weights are gathered and dropped (stage 3), most of it in the first ten steps. Seen: MiniGPT had 40, 45
# and 52 MiB more in FSDP, 6 × 384 about 50, and 28 and 47 in DeepSpeed.
GATHER_BYTES: Final = 40 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """Settings of a run on which a rank's memory depends.

    Attributes:
        mode: Never `Mode.AUTO`.
        stage: ZeRO's, 3 for FSDP, 0 in other modes.
        by_deepspeed: DeepSpeed shards.
        narrow: Weights are gathered, or kept beside fp32 masters, in a format of two bytes.
        on_cpu: Ranks are CPU devices, whose memory the C library hands out.
        shared_memory: Gradients are summed in shared memory.
        saves_beside: Checkpoints are written while the next steps run.
        merges: Rank 0 compares all ranks' weights at the end.
        outer_copies: Copies of the weights that synchronising keeps.
    """

    mode: Mode
    stage: int
    by_deepspeed: bool
    ranks: int
    micro_batch: int
    accumulation: int
    narrow: bool = False
    on_cpu: bool = True
    shared_memory: bool = False
    saves_beside: bool = False
    merges: bool = False
    outer_copies: int = 0

    @property
    def engine(self) -> str:
        """The name of its baseline."""
        if not self.mode.is_connected:
            return "ddp" if self.outer_copies else "single"
        if self.by_deepspeed:
            return "deepspeed"
        return ("ddp", "zero1", "fsdp", "fsdp")[self.stage]


@dataclass(frozen=True, slots=True)
class RankMemory:
    """The memory of one rank at its peak, in bytes.

    Attributes:
        parameters: Weights and buffers, fp32 masters among them.
        gradients, optimizer: As this rank keeps them.
        activations: Of a micro-batch's passes, beyond gradients.
        communication: Buckets, gathered weights, other ranks' buckets in shared memory.
        copy: The share of a checkpoint's copy that adds to the peak, and the files that a merge maps into memory.
        framework: Python, PyTorch, the engine and the recipe's imports and data; of a GPU, the CUDA context.
        allocator: Gaps between tensors, and memory that was used before and is not given back.
    """

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    communication: int
    copy: int
    framework: int
    allocator: int

    @property
    def total(self) -> int:
        return sum(dataclasses.astuple(self))

    @property
    def least(self) -> RankMemory:
        """The memory of the parameters alone, whatever a step makes."""
        return RankMemory(self.parameters, self.gradients, self.optimizer, 0, 0, 0, 0, 0)

    def as_dict(self) -> dict[str, int]:
        return {**dataclasses.asdict(self), "total": self.total}


@dataclass(frozen=True, slots=True)
class _Kept:
    """Memory of an engine besides activations.

    Attributes:
        left: Memory that was used before training and is not given back: room for later copies.
        copied: Bytes of a checkpoint that this rank copies.
        dropped, dropped_frozen: Weights that are gathered and dropped between a pass's activations, trained ones and
            others. The holes that they leave in the heap are not filled by what is gathered next.
    """

    parameters: int
    gradients: int
    optimizer: int
    communication: int
    left: int
    copied: int
    dropped: int = 0
    dropped_frozen: int = 0


def rank_memory(figures: ModelFigures, baselines: Baselines, layout: Layout, rank: int = 0) -> RankMemory:
    """Compute the memory of a rank: on a CPU device all of its process, on a GPU its share of the card."""
    kept = _kept(figures, layout, rank)
    keeps_gradients = layout.mode.is_connected
    adds = keeps_gradients or layout.accumulation > 1
    passes = figures.pass_bytes(layout.micro_batch, adds=adds)
    activations = passes if adds else max(0, passes - kept.gradients)
    left = kept.left if layout.on_cpu else 0
    tensors = kept.parameters + kept.gradients + kept.optimizer + activations + kept.communication + left
    gaps = figures.gap_bytes(passes, tensors)
    # Gradients that stay from step to step are no room for the copy; all else that a step used is, once it is over.
    room = left + (0 if layout.saves_beside else activations + gaps + (0 if keeps_gradients else kept.gradients))
    merged, mapped = _merged(figures, layout, rank)
    copy = max(0, max(kept.copied, merged) - room) if layout.on_cpu else 0
    # Gradients lie in what trained weights leave, and so do gaps between them; weights without gradients leave holes.
    holes = max(gaps, kept.dropped) + kept.dropped_frozen if layout.on_cpu else gaps
    copy_gap = _copy_gap(figures, kept.copied) if layout.on_cpu else 0
    process = baselines.of(layout.engine) + figures.recipe_bytes + figures.data_bytes
    context = figures.context_bytes if figures.is_context_known else USUAL_CONTEXT
    grown = RUN_BYTES + (GATHER_BYTES if layout.stage == 3 else 0)
    framework = process + grown if layout.on_cpu else context
    made = RankMemory(
        kept.parameters,
        kept.gradients,
        kept.optimizer,
        activations,
        kept.communication,
        copy + (mapped if layout.on_cpu else 0),
        framework,
        left + holes + copy_gap,
    )
    if not layout.on_cpu or rank != 0:
        return made
    # The data is made before the model, by rank 0.
    first = baselines.of(layout.engine) + figures.prepared_bytes
    return dataclasses.replace(made, framework=framework + max(0, first - made.total))


def _copy_gap(figures: ModelFigures, copied: int) -> int:
    """Bytes that a copy of this size leaves unused between its tensors; measured with a copy of everything."""
    whole = figures.parameter_bytes + figures.buffer_bytes + figures.optimizer_ratio * figures.trainable_bytes
    return round(figures.copy_gap_bytes * min(1.0, copied / max(1.0, whole)))


def host_memory(figures: ModelFigures, baselines: Baselines, layout: Layout, rank: int = 0) -> int:
    """Compute a rank's share of the machine's RAM: all of it on a CPU device, the process and its copy on a GPU."""
    if layout.on_cpu:
        return rank_memory(figures, baselines, layout, rank).total
    kept = _kept(figures, layout, rank)
    copied = max(kept.copied, sum(_merged(figures, layout, rank)))
    return baselines.of(layout.engine) + figures.recipe_bytes + figures.data_bytes + copied


def checkpoint_bytes(figures: ModelFigures, layout: Layout) -> int:
    """Weights and optimizer state on disk: once, or once a rank that trains by itself."""
    state = round(figures.optimizer_ratio * figures.trainable_bytes)
    groups = layout.mode.replica_groups(layout.ranks)
    return groups * (figures.parameter_bytes + figures.buffer_bytes + state)


def _kept(figures: ModelFigures, layout: Layout, rank: int) -> _Kept:
    if layout.by_deepspeed:
        return _deepspeed(figures, layout)
    if layout.stage > 1:
        return _fsdp(figures, layout)
    if layout.mode.is_connected:
        return _ddp(figures, layout, rank)
    return _alone(figures, layout)


def _alone(figures: ModelFigures, layout: Layout) -> _Kept:
    """Gradients are made in each step and given back after it."""
    weights, trained = figures.parameter_bytes + figures.buffer_bytes, figures.trainable_bytes
    state = round(figures.optimizer_ratio * trained)
    return _Kept(weights, trained, state, layout.outer_copies * trained, 0, weights + state)


def _ddp(figures: ModelFigures, layout: Layout, rank: int) -> _Kept:
    """Gradients live in DDP's buckets from the first step to the last.

    Moved into shared memory, they leave a hole of their size in the heap; and a rank writes its share of each sum into
    the buckets of all others, pages which then count for it too.
    """
    weights, trained = figures.parameter_bytes + figures.buffer_bytes, figures.trainable_bytes
    whole = round(figures.optimizer_ratio * trained)
    state = figures.optimizer_share(layout.ranks) if layout.stage == 1 else whole
    shared = layout.shared_memory
    others = trained * (layout.ranks - 1) // layout.ranks if shared else 0
    copied = (weights if rank == 0 else 0) + (state if layout.stage == 1 or rank == 0 else 0)
    return _Kept(weights, trained, state, others, trained if shared else 0, copied)


def _fsdp(figures: ModelFigures, layout: Layout) -> _Kept:
    """A share of everything; of the weights also those in use.

    Stage 3 holds the weights in no block and two blocks (one in use, one on its way), stage 2 the whole model from a
    step's first micro-batch to its last. The largest part that travels at once comes three times more: gathered before
    it is sorted into tensors, as a whole gradient, and as the copy that is summed. The whole model was there before it
    was cut; only weights in a mapped file leave nothing behind.
    """
    ranks, scale = layout.ranks, 0.5 if layout.narrow else 1.0
    weights, trained, block = figures.parameter_bytes, figures.trainable_bytes, figures.block_bytes
    own, state = weights // ranks, round(figures.optimizer_ratio * trained / ranks)
    in_use = weights if layout.stage == 2 else weights - figures.blocks_bytes + 2 * block
    largest = max(block, weights - figures.blocks_bytes)
    moving = round(scale * (in_use + 3 * largest))
    dropped, frozen = round(scale * trained), round(scale * (weights - trained))
    left = max(0, weights - figures.mapped_bytes)
    return _Kept(own + figures.buffer_bytes, trained // ranks, state, moving, left, own + state, dropped, frozen)


def _deepspeed(figures: ModelFigures, layout: Layout) -> _Kept:
    """DeepSpeed copies weights into flat buffers, and each rank's share of them as fp32 masters.

    Stage 1 keeps whole gradients, 2 and 3 a share. Gradients are gathered in a bucket. Stage 3 holds the weights in
    use, up to its limit of live parameters. As soon as it knows their order it asks for all of them, and until they are
    needed each lies in the buffer in which it arrives; gloo makes another of that size. Later, to sum a bucket, it
    makes one for the sum and one for this rank's share. Such large buffers go back to the system at once. The
    recipe's own weights were there before and leave their place, unless they lay in a mapped file; stages 1 and 2 let
    those that are not trained stay where they are.
    """
    ranks, scale = layout.ranks, 0.5 if layout.narrow else 1.0
    weights, trained = figures.parameter_bytes, figures.trainable_bytes
    masters, state = trained // ranks, round(figures.optimizer_ratio * trained / ranks)
    bucket = min(DEEPSPEED_BUCKET_BYTES, round(scale * trained))
    flat = round(scale * weights) if layout.stage < 3 else round(scale * weights / ranks)
    gradients = round(scale * trained) if layout.stage == 1 else trained // ranks
    moving, dropped, frozen = bucket, 0, 0
    if layout.stage == 3:
        gathered = round(scale * min(weights, DEEPSPEED_LIVE_BYTES))
        moving = gathered + max(2 * gathered, 2 * bucket + bucket // ranks)
        frozen = round(gathered * (weights - trained) / weights)
        dropped = gathered - frozen
    left = max(0, weights - figures.mapped_bytes)
    if layout.stage < 3:
        left = min(left, trained)
    parameters = flat + masters + figures.buffer_bytes
    return _Kept(parameters, gradients, state, moving, left, masters + state, dropped, frozen)


def _merged(figures: ModelFigures, layout: Layout, rank: int) -> tuple[int, int]:
    """Bytes of rank 0's average of independent ranks' weights with a copy of its own; and of the weights of all.

    Those are read by mapping the checkpoint's files into memory: no room of the heap serves for them.
    """
    if not layout.merges or rank != 0:
        return 0, 0
    weights = figures.parameter_bytes + figures.buffer_bytes
    return 2 * weights, layout.ranks * weights
