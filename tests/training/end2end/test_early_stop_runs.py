"""Real training that ends by a stop rule, killed once on the way: the best weights are exported, bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from core.checkpoints.store import Checkpoint, CheckpointStore
from core.run_folder.store import RunStore
from tests.helpers.hosted_run import host, lines, make_run, write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

EVERY = 8
PATIENCE = 4


def checkpoint_at(store: RunStore, rank: int, step: int) -> Checkpoint:
    """The checkpoint that holds a rank at a step."""
    return next(c for c in CheckpointStore(store.checkpoints).list() if c.positions[rank].step == step)


def evaluations(store: RunStore) -> list[dict[str, Any]]:
    """The evaluations that belong to the run's weights, the lowest validation loss first."""
    found = {(line["rank"], line["step"]): line for line in lines(store, "eval")}
    return sorted(found.values(), key=lambda line: line["val_loss"])


def is_held(store: RunStore, rank: int, step: int) -> bool:
    """Whether a checkpoint holds a rank at a step."""
    return any(c.positions[rank].step == step for c in CheckpointStore(store.checkpoints).list())


@pytest.mark.parametrize("mode", ["ddp", "independent", "zero", "fsdp"])
def test_a_run_that_no_longer_improves_ends_with_its_best_weights(mode: str, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    settings: dict[str, Any] = {"epochs": 20, "eval_every": EVERY, "lr": 0.3, "zero_engine": "torch"}
    rules = {"early_stop_patience": PATIENCE, "early_stop_min_delta": 5.0, "keep_checkpoints": 1}
    store = make_run(tmp_path / "stopped", text, mode, 2, **settings, **rules)
    assert host(store, "mid_chunk@20") != 0
    assert not store.state().stopped_by
    assert host(store) == 0
    state = store.state()
    assert (state.state, state.attempt) == ("stopped", 2)
    assert "The validation loss has not improved by more than 5 in " in state.stopped_by

    # The first evaluation is the only improvement; what the kill threw away was evaluated again and counts once.
    evaluated = {rank: set[int]() for rank in (0, 1)}
    for line in lines(store, "eval"):
        evaluated[line["rank"]].add(line["step"])
    newest = min(max(steps) for steps in evaluated.values() if steps)  # independent ranks wait for the slower one
    assert EVERY * (PATIENCE + 1) <= newest <= EVERY * (PATIENCE + 2)

    # An independent rank may evaluate better weights while the run is being stopped; the sentence cannot name them.
    found = evaluations(store)
    told = next(line for line in found if f"at step {line['step']}." in state.stopped_by)
    assert told is found[0] or mode == "independent"
    best = next(line for line in found if is_held(store, line["rank"], line["step"]))
    assert best["val_loss"] <= told["val_loss"]
    pinned = checkpoint_at(store, best["rank"], best["step"])
    (exported, *shards) = pinned.weights(best["rank"])
    merged = min((min(line["val_losses"].values()) for line in lines(store, "merge")), default=best["val_loss"])
    if not shards and best is found[0] and merged >= best["val_loss"]:
        held, model = load_file(exported), load_file(store.model)
        assert held.keys() == model.keys()
        assert all(held[name].equal(model[name]) for name in held)

    undisturbed = make_run(
        tmp_path / "undisturbed", text, mode, 2, **settings, early_stop_patience=10**6, keep_checkpoints=100
    )
    assert host(undisturbed, stop_at=2 * newest) == 0
    same = checkpoint_at(undisturbed, best["rank"], best["step"])
    for mine, other in zip(pinned.weights(best["rank"]), same.weights(best["rank"]), strict=True):
        assert mine.read_bytes() == other.read_bytes()
