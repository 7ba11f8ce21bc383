"""Recipes that make their samples themselves: told what a step is made of, in order, stopped between chunks only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="trains for real")

from core.protocol.messages import Grant
from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run
from workers.training.batches import ChunkPlan, GroupBatches

MANIFEST = """
format = "rankdeck-recipe"
version = 1
name = "played"
title = "Played"
description = "Makes the samples of a chunk with the weights as they are then."
[[fields]]
name = "left_out"
label = "Left out"
type = "int"
default = -1
help = "Which batch of each chunk is left out."
"""

TRAIN = '''
"""Each chunk's samples are the model's own weight at that moment, plus their place in the chunk."""

import numpy as np
import torch

from workers.recipe_api import Optimization, PreparedData, Run, Task

CHUNK = 12


def main(run: Run) -> None:
    run.prepare(lambda folder: PreparedData(samples=48, val_samples=4))
    made = {}
    model = torch.nn.Linear(1, 1)

    def before_step(step):
        (chunk,) = set(step.batch // CHUNK)
        if (step.epoch, chunk) not in made:
            made.clear()
            made[step.epoch, chunk] = float(model.weight) + step.epoch
        ranks = run.total([1.0, len(step.own)])
        assert ranks[1] == len(step.batch) == run.global_batch
        print("step", step.batch.tolist(), step.own.tolist(), ranks[0], flush=True)
        return (step.batch[0] % CHUNK) // run.global_batch != run.options["left_out"]

    def batch(i):
        base = next(iter(made.values()), 0.0)
        return torch.tensor(base + i % CHUNK, dtype=torch.float32)[:, None]

    run.fit(
        Task(
            model=model,
            batch=batch,
            val_batch=batch,
            loss=lambda model, x: (model(x) - 1.0).square().mean(),
            optimization=Optimization(clip_norm=1.0),
            before_step=before_step,
            shuffled=False,
            whole_chunks=True,
        )
    )
'''


def test_samples_come_as_they_are_numbered_and_each_rank_knows_its_own() -> None:
    plan = ChunkPlan(samples=24, samples_per_block=24, chunk_size=12, seed=1, shuffled=False)
    for rank, own in ((0, [0, 1]), (1, [2, 3, 4])):
        grants = iter([Grant(0, 0, 0, 0, 0, 12), Grant(1, 0, 0, 1, 12, 12)])
        batches = GroupBatches(plan, lambda _, grants=grants: next(grants), 5, 8, rank, 2)
        batch = batches.next(1)
        assert batch is not None
        assert batch.indices.tolist() == [0, 1, 2, 3, 4] and batch.own.tolist() == own
        assert np.concatenate([micro.indices for micro in batch.micro_batches]).tolist() == own
        assert not batches.between_chunks


def make_played(folder: Path, world: int, name: str, **settings: Any) -> RunStore:
    recipe = folder / "played"
    if not recipe.exists():
        recipe.mkdir()
        (recipe / "recipe.toml").write_text(MANIFEST, encoding="utf-8")
        (recipe / "train.py").write_text(TRAIN, encoding="utf-8")
    values: dict[str, Any] = {
        "dataset_chunk_size": 12,
        "samples_per_block": 48,
        "batch_size": 4 // world,
        "eval_every": 5,
        "lr": 0.05,
    }
    options = {"left_out": 1}
    given = {"recipe": str(recipe), "epochs": 2, "options": options, **values, **settings}
    return make_run(folder / name, "none://", "ddp" if world > 1 else "single", world, **given)


@pytest.mark.slow
def test_a_chunk_is_whole_before_anything_else_happens(tmp_path: Path) -> None:
    """24 steps, three a chunk: evaluations due at 5, 10, 15, 20 come after 6, 12, 15, 21."""
    store = make_played(tmp_path, 2, "straight", checkpoint_every_steps=7)
    assert host(store) == 0
    assert [line["step"] for line in lines(store, "eval")] == [6, 12, 15, 21, 24]
    steps = {line["step"] for line in lines(store, "step") if "loss" not in line}
    assert steps == set(range(2, 25, 3)), "what is left out has no loss"
    assert {line["step"] for line in lines(store, "commit")} <= set(range(3, 25, 3))
    log = (store.dir / "logs" / "rank1.log").read_text(encoding="utf-8")
    told = [tuple(json.loads(f"[{part}]")) for part in re.findall(r"step (.*)", log.replace("] ", "], "))]
    assert len(told) == 24 and {ranks for _, _, ranks in told} == {2.0}
    assert all(batch == list(range(batch[0], batch[0] + 4)) and own == batch[2:] for batch, own, _ in told)
    assert [batch[0] % 12 for batch, _, _ in told] == [0, 4, 8] * 8

    stopped = make_played(tmp_path, 2, "stopped", checkpoint_every_steps=7)
    assert host(stopped, "mid_chunk@19") != 0
    assert host(stopped) == 0
    assert curve(store, "grad_norm") == curve(stopped, "grad_norm")
