"""Whatever is interleaved, killed and resumed on other devices: each sample of each epoch is in the weights once."""

from __future__ import annotations

import pytest

from core.ledger.ledger import Ledger
from tests.unit.core.ledger.ledger_groups import Training

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
strategies = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")

DATASET = {"path": "text.txt", "size_bytes": 1, "sha256": "0", "files": 1}
ACTIONS = strategies.one_of(
    strategies.tuples(strategies.just("step"), strategies.integers(0, 3), strategies.integers(1, 12)),
    strategies.tuples(strategies.just("commit")),
    strategies.tuples(strategies.just("crash")),
    strategies.tuples(strategies.just("rescale"), strategies.integers(1, 4), strategies.booleans()),
)


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    samples=strategies.integers(1, 60),
    samples_per_block=strategies.integers(1, 30),
    chunk_size=strategies.integers(1, 12),
    world=strategies.integers(1, 4),
    independent=strategies.booleans(),
    epochs=strategies.integers(1, 3),
    seed=strategies.integers(0, 5),
    actions=strategies.lists(ACTIONS, max_size=60),
)
def test_each_sample_of_each_epoch_is_trained_exactly_once(
    samples: int,
    samples_per_block: int,
    chunk_size: int,
    world: int,
    independent: bool,
    epochs: int,
    seed: int,
    actions: list[tuple[object, ...]],
) -> None:
    groups = world if independent else 1
    training = Training(Ledger.new(DATASET, samples, samples_per_block, chunk_size, seed, world, groups, epochs))
    for action in actions:
        match action:
            case ("step", int(group), int(count)):
                training.step(group, count)
            case ("commit",):
                training.commit()
            case ("crash",):
                training.crash()
            case ("rescale", int(ranks), bool(apart)):
                training.crash(ranks, ranks if apart else 1)
    training.finish()
    assert training.saved_weights == training.expected()
    progress = training.ledger.progress()
    assert progress.finished
    assert progress.samples_trained == samples * epochs
    assert progress.chunks_in_progress == 0


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    samples=strategies.integers(1, 60),
    chunk_size=strategies.integers(1, 12),
    world=strategies.integers(1, 4),
    independent=strategies.booleans(),
    kills=strategies.lists(strategies.integers(0, 25), max_size=4),
)
def test_a_resumed_run_trains_in_the_order_of_one_never_stopped(
    samples: int, chunk_size: int, world: int, independent: bool, kills: list[int]
) -> None:
    def run(kills: list[int]) -> list[list[tuple[int, int]]]:
        groups = world if independent else 1
        training = Training(Ledger.new(DATASET, samples, 20, chunk_size, 3, world, groups, 2))
        order: list[list[tuple[int, int]]] = [[] for _ in range(groups)]

        def step_all() -> None:
            for group in training.groups:
                before = set(training.weights)
                training.step(group.number, 3)
                order[group.number] += sorted({(epoch, index) for epoch, index, _ in set(training.weights) - before})

        for steps in kills:
            training.commit()
            kept = [list(chunks) for chunks in order]
            for _ in range(steps):
                step_all()
            training.crash()
            order = kept
            for _ in range(steps // 2):
                step_all()
        while not all(group.exhausted for group in training.groups):
            step_all()
        return [list(dict.fromkeys(chunks)) for chunks in order]

    assert run(kills) == run([])
