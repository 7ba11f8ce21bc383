"""Memory of a rank, mode by mode."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.config.mode import Mode
from core.measure.estimate.figures import USUAL_CONTEXT
from core.measure.estimate.memory import (
    GATHER_BYTES,
    RUN_BYTES,
    Layout,
    RankMemory,
    checkpoint_bytes,
    host_memory,
    rank_memory,
)
from tests.unit.core.measure.estimate.made import BASELINES, FIGURES, MB, figures

SINGLE = Layout(Mode.SINGLE, 0, False, 1, 4, 1)
DDP = Layout(Mode.DDP, 0, False, 2, 4, 1, shared_memory=True)
ZERO1 = replace(DDP, mode=Mode.ZERO, stage=1)
ZERO2 = Layout(Mode.ZERO, 2, False, 2, 4, 1)
FSDP = Layout(Mode.FSDP, 3, False, 2, 4, 1)
DEEPSPEED = Layout(Mode.ZERO, 1, True, 2, 4, 1)
INDEPENDENT = Layout(Mode.INDEPENDENT, 0, False, 2, 4, 1, merges=True)


def memory(layout: Layout, rank: int = 0) -> RankMemory:
    return rank_memory(FIGURES, BASELINES, layout, rank)


def test_one_device_holds_everything() -> None:
    alone = memory(SINGLE)
    assert (alone.parameters, alone.gradients, alone.optimizer) == (100 * MB, 100 * MB, 200 * MB)
    assert alone.activations == 60 * MB  # at the peak of 160 MB no gradient is there yet; later all are
    assert alone.copy == 140 * MB  # 300 MB, of which 160 MB find the room of the step
    assert alone.framework == 10 * MB + RUN_BYTES
    assert alone.total == 610 * MB + RUN_BYTES


def test_accumulated_gradients_stay_while_the_next_pass_runs() -> None:
    assert memory(replace(SINGLE, accumulation=2)).activations == 160 * MB


def test_a_smaller_micro_batch_needs_less() -> None:
    sizes = [memory(replace(DDP, micro_batch=size), rank=1).total for size in (1, 2, 4, 8)]
    assert sizes == sorted(set(sizes))


def test_ddp_keeps_gradients_and_only_rank_0_copies_a_checkpoint() -> None:
    first, second = memory(DDP), memory(DDP, rank=1)
    assert first.activations == 160 * MB
    assert first.communication == 50 * MB  # its half of the other's buckets
    assert first.allocator == 100 * MB  # where the buckets were before they were shared
    assert (first.copy, second.copy) == (40 * MB, 0)
    assert memory(replace(DDP, shared_memory=False)).communication == 0


def test_stage_1_shares_the_optimizer_only() -> None:
    shared = memory(ZERO1)
    assert (shared.parameters, shared.gradients, shared.optimizer) == (100 * MB, 100 * MB, 120 * MB)


def test_fsdp_holds_a_share_and_the_blocks_in_use() -> None:
    sharded = memory(FSDP)
    assert (sharded.parameters, sharded.gradients, sharded.optimizer) == (50 * MB, 50 * MB, 100 * MB)
    assert sharded.communication == (20 + 2 * 10 + 3 * 20) * MB  # what is in no block is the largest part
    assert memory(ZERO2).communication == (100 + 3 * 20) * MB
    assert sharded.framework - memory(ZERO2).framework == GATHER_BYTES  # what gathered weights leave in the heap
    in_one_piece = rank_memory(figures(block_bytes=0, blocks_bytes=0), BASELINES, FSDP)
    assert in_one_piece.communication == 400 * MB
    assert memory(replace(FSDP, ranks=4)).total < sharded.total


def test_deepspeed_keeps_flat_weights_and_masters() -> None:
    one, two = memory(DEEPSPEED), memory(replace(DEEPSPEED, stage=2))
    assert (one.parameters, one.gradients, one.optimizer) == (150 * MB, 100 * MB, 100 * MB)
    assert two.gradients == 50 * MB
    narrow = memory(replace(DEEPSPEED, narrow=True))
    assert narrow.parameters == 100 * MB  # weights of two bytes, masters of four


def test_rank_0_of_independent_ranks_reads_the_weights_of_all() -> None:
    assert memory(INDEPENDENT, rank=1).copy == 140 * MB
    assert memory(INDEPENDENT).copy == 340 * MB  # and 100 MB of each rank, mapped beside the heap
    assert memory(replace(INDEPENDENT, merges=False)).copy == 140 * MB


def test_a_checkpoint_that_is_written_beside_steps_finds_less_room() -> None:
    assert memory(replace(SINGLE, saves_beside=True)).copy == 300 * MB


def test_gaps_grow_with_a_pass() -> None:
    made = rank_memory(figures(pass_gap_bytes=10 * MB), BASELINES, SINGLE)
    assert made.allocator == 16 * MB  # a tenth of its 160 MB
    assert made.copy == 124 * MB  # 300 MB, of which 176 MB find the room of the step
    assert made.total == 610 * MB + RUN_BYTES
    narrow = rank_memory(figures(pass_gap_bytes=10 * MB, copy_gap_bytes=7 * MB), BASELINES, SINGLE)
    assert narrow.allocator == 23 * MB


def test_a_copy_leaves_gaps_as_far_as_a_rank_makes_one() -> None:
    crumbs = figures(copy_gap_bytes=6 * MB)
    assert rank_memory(crumbs, BASELINES, DDP).allocator == 106 * MB
    assert rank_memory(crumbs, BASELINES, DDP, rank=1).allocator == 100 * MB  # it copies nothing
    assert rank_memory(crumbs, BASELINES, FSDP).allocator == 203 * MB  # it copies half


def test_weights_that_are_dropped_leave_holes() -> None:
    few = memory(FSDP)
    assert few.allocator == (100 + 100) * MB  # the model before it was cut, and the holes
    many = rank_memory(figures(pass_gap_bytes=200 * MB), BASELINES, FSDP)
    assert many.allocator == (100 + 320) * MB  # the gaps are more than the holes
    stage_3 = replace(DEEPSPEED, stage=3)
    assert memory(stage_3).allocator == (100 + 100) * MB
    assert memory(stage_3).communication == (100 + 250) * MB  # the buckets of a sum are more than those of a gather
    lora = figures(trainable_bytes=MB, tensor_bytes=(MB,))
    assert rank_memory(lora, BASELINES, stage_3).communication == (100 + 200) * MB
    assert memory(replace(FSDP, on_cpu=False)).allocator == 0


def test_a_gpu_holds_neither_process_nor_copy() -> None:
    on_gpu, known = replace(SINGLE, on_cpu=False), replace(FIGURES, context_bytes=300 << 20)
    made = rank_memory(known, BASELINES, on_gpu)
    assert (made.framework, made.copy, made.allocator) == (300 << 20, 0, 0)
    assert made.total == 460 * MB + (300 << 20)
    assert host_memory(FIGURES, BASELINES, on_gpu) == 310 * MB
    assert host_memory(FIGURES, BASELINES, SINGLE) == memory(SINGLE).total


@pytest.mark.parametrize("context", [0, 99 << 20])
def test_a_context_that_cannot_be_is_the_usual_one(context: int) -> None:
    """Other programs gave memory of the card back while it was measured."""
    made = rank_memory(replace(FIGURES, context_bytes=context), BASELINES, replace(SINGLE, on_cpu=False))
    assert made.framework == USUAL_CONTEXT


def test_weights_without_gradients_leave_holes_beside_gaps() -> None:
    lora = figures(trainable_bytes=10 * MB, tensor_bytes=(10 * MB,), pass_gap_bytes=50 * MB)
    assert rank_memory(lora, BASELINES, FSDP).allocator == (100 + 80 + 90) * MB  # left, gaps, holes
    stage_3 = rank_memory(lora, BASELINES, replace(DEEPSPEED, stage=3))
    assert stage_3.allocator == (100 + 80 + 90) * MB


def test_weights_in_a_mapped_file_leave_nothing_behind() -> None:
    opened = figures(trainable_bytes=10 * MB, tensor_bytes=(10 * MB,), mapped_bytes=90 * MB)
    assert rank_memory(opened, BASELINES, ZERO2).allocator == (10 + 10 + 90) * MB
    for stage in (1, 2):  # what is not trained stays where it is, opened or not
        for made in (opened, replace(opened, mapped_bytes=0)):
            assert rank_memory(made, BASELINES, replace(DEEPSPEED, stage=stage)).allocator == 10 * MB
    whole = figures(mapped_bytes=100 * MB)
    assert rank_memory(whole, BASELINES, DEEPSPEED).allocator == 0


def test_only_adapters_count_as_trained() -> None:
    lora = figures(trainable_bytes=MB, tensor_bytes=(MB,))
    made = rank_memory(lora, BASELINES, SINGLE)
    assert (made.parameters, made.gradients, made.optimizer) == (100 * MB, MB, 2 * MB)


def test_a_checkpoint_on_disk() -> None:
    assert checkpoint_bytes(FIGURES, FSDP) == 300 * MB
    assert checkpoint_bytes(FIGURES, INDEPENDENT) == 600 * MB


def test_a_first_run_needs_at_least_what_making_its_data_took() -> None:
    little, much = figures(prepared_bytes=5 * MB), figures(prepared_bytes=900 * MB)
    assert rank_memory(little, BASELINES, SINGLE) == rank_memory(figures(), BASELINES, SINGLE)
    assert rank_memory(much, BASELINES, SINGLE).total == BASELINES.of("single") + 900 * MB
    assert rank_memory(much, BASELINES, SINGLE, rank=1).total < 900 * MB, "rank 0 makes it for all"
