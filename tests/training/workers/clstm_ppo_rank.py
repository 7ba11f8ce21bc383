"""One of two real processes that train the recurrent PPO recipe in every mode; prints one JSON line.

Run by `test_clstm_ppo_modes`: `python -m tests.training.workers.clstm_ppo_rank RANK WORLD FOLDER`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from core.config import RunConfig
from core.config.batch import Batch
from tests.training.workers.clstm_ppo_parts import player_of, world_of
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.recipe_api import StepSamples
from workers.recipes.clstm_ppo.environments import World
from workers.recipes.clstm_ppo.grid import make_grid
from workers.recipes.clstm_ppo.playing import Stage
from workers.recipes.clstm_ppo.ppo import Rule, losses
from workers.recipes.clstm_ppo.rounds import Rounds
from workers.strategies import RankPlace, make_strategy

WAYS: Final = ("ddp", "zero1", "zero2", "zero3", "fsdp", "independent", "single")
BATCH: Final = 4
CHUNKS: Final = 2
LR: Final = 0.02
RULE: Final = Rule(0.2, 0.5, 0.5, 0.01)


def train(rank: int, world: int, folder: Path, way: str, environment: World) -> dict[str, Any]:
    """Two rounds of eight steps, then evaluation episodes of unequal length on the ranks."""
    mode, stage = ("zero", int(way[-1])) if way.startswith("zero") else (way, 3)
    alone = mode in ("single", "independent")
    place = RankPlace(rank, world, torch.device("cpu"), "" if alone else "gloo", (folder / way).as_uri(), 60.0)
    strategy = make_strategy(
        mode, place, RunConfig(mode=mode, zero_stage=stage, zero_engine="torch"), Batch.of(1, world, 1)
    )
    strategy.setup()
    player = player_of(environment)
    optimization = Optimization(options={"eps": 1e-5}, clip_norm=0.5)
    replica = strategy.replicate(player.policy, optimization, LR, Precision("fp32", place.device))
    grid = make_grid(chunk=32, block=64, batch=BATCH, passes=2, length=6)
    collective = strategy.forward_is_collective
    rounds = Rounds(player, Stage(environment, False), grid, 0.95, 0.0, strategy.total, collective)

    def loss(samples: np.ndarray[Any, Any]) -> torch.Tensor:
        batch = rounds.batch(samples)
        likely, values, _ = replica.module(batch["observed"], batch["carried"], batch["fresh"][:, 0], batch["parts"])
        made = losses(likely, values, batch, False, RULE)
        assert all(bool(torch.isfinite(value)) for value in made.values())
        return made["loss"]

    replica.warm_up(loss(np.arange(1)))
    told, returns = [], []
    for step in range(CHUNKS * grid.chunk // BATCH):
        batch = np.arange(step * BATCH, step * BATCH + BATCH)
        share = np.array_split(batch, strategy.group_size)[strategy.group_rank]
        with torch.no_grad():
            assert rounds.before_step(StepSamples(0, batch, share))
        with replica.micro_batch(last=True):
            mean = loss(share)
            replica.backward(mean, last=True)
        replica.set_lr(LR)
        replica.update()
        told.append(strategy.total([mean.item()])[0] / strategy.group_size)
        returns.append(rounds.figures["episode_return"])
    together = (lambda value: strategy.total([value])[0]) if collective else None
    numbers = [0, 1, 2] if strategy.group_rank == 0 else [3]
    with torch.no_grad():
        episodes = player.episodes(Stage(environment, True), numbers, 200, True, together)
    played = strategy.total([sum(episode.reward for episode in episodes), float(len(episodes))])
    strategy.close()
    return {"losses": told, "returns": returns, "evaluated": played}


def main(rank: int, world: int, folder: Path) -> dict[str, Any]:
    """Every mode, on environments that end by themselves."""
    environment = world_of(max_episode_steps=25)
    return {way: train(rank, 1 if way == "single" else world, folder, way, environment) for way in WAYS[: 7 - rank]}


if __name__ == "__main__":
    seeding.seed_everything(3)
    rank_, world_, folder_ = sys.argv[1:]
    sys.stdout.write(json.dumps(main(int(rank_), int(world_), Path(folder_))) + "\n")
