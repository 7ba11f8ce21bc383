"""Recurrent PPO: a cascaded-LSTM actor-critic that learns from episodes of an environment.

A chunk of the ledger is a round: every environment is reset and played with the current policy; the rollout is trained
on several times and discarded. It depends only on the weights, the run's seed and the chunk's number, so a stopped or
killed run resumes bit-identically without saving any environment.

    rankdeck train --recipe clstm_ppo --devices cpux2 --mode ddp

Methods: PPO (arXiv 1707.06347), generalized advantages (arXiv 1506.02438), the cascade of LSTMs (arXiv 2212.02721).
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from rankdeck.recipe import LossAndMetrics, Optimization, PreparedData, Request, Run, Task, read_options
from workers.recipes.clstm_ppo.environments import World, is_trading, open_world
from workers.recipes.clstm_ppo.grid import make_grid
from workers.recipes.clstm_ppo.options import Options
from workers.recipes.clstm_ppo.playing import LONGEST, Episode, Player, Stage
from workers.recipes.clstm_ppo.policy import CascadedLstm
from workers.recipes.clstm_ppo.ppo import losses
from workers.recipes.clstm_ppo.rounds import EpisodeGoal, Rounds
from workers.recipes.clstm_ppo.trading import load_market, open_files, save_market

# Under this name a batch says which evaluation episodes to play.
EPISODES: Final = "episodes"
SHOWN: Final = 8
# LSTMs up to this width compute faster on one processor thread than on several that wait for each other.
SMALL: Final = 256


def main(run: Run) -> None:
    """Environment, policy, loss, training: on every rank."""
    o, config = read_options(run, Options), run.config
    sizes = (config.dataset_chunk_size, config.samples_per_block, run.global_batch)
    grid = make_grid(*sizes, o.passes, config.seq_len)
    run.prepare(lambda folder: prepare(run, o, folder), depends_on=prepared_from(o))
    world = open_world(o, load_market(run.data_dir, run.info) if is_trading(o) else None)

    if run.device.type == "cpu" and o.hidden <= SMALL:
        torch.set_num_threads(1)

    # model
    policy = make_model(world, o)

    # episodes: to learn from, and to see how good the policy is
    player = Player(policy, run.device, config.seed, o.discount, o.reward_scale)
    stage, examination = Stage(world, held_out=False), Stage(world, held_out=True)
    goal = EpisodeGoal(o.num_episodes)
    rounds = Rounds(player, stage, grid, o.trace, o.kl_target, run.total, run.forward_is_collective, goal)
    together = (lambda value: run.total([value])[0]) if run.forward_is_collective else None

    def examine(numbers: list[int]) -> list[Episode]:
        limit = o.max_episode_steps or LONGEST
        return player.episodes(examination, numbers, limit, o.sampled_evaluation, together)

    # loss: PPO's; of evaluation episodes the return, turned round, so that less is better
    def loss(model: nn.Module, batch: dict[str, Any]) -> LossAndMetrics:
        if EPISODES in batch:
            return judged(examine(batch[EPISODES].tolist()))
        likely, values, _ = model(batch["observed"], batch["carried"], batch["fresh"][:, 0], batch["parts"])
        made = losses(likely, values, batch, policy.continuous, o)
        rounds.note_movement(made["kl"], len(values))
        metrics = {name: torch.tensor(value) for name, value in rounds.figures.items()}
        return LossAndMetrics(made.pop("loss"), {**made, **metrics})

    with closing(stage), closing(examination):
        run.fit(
            Task(
                model=policy,
                batch=rounds.batch,
                val_batch=lambda numbers: {EPISODES: torch.from_numpy(numbers)},
                loss=loss,
                sample=lambda _: written(examine(list(range(min(SHOWN, o.eval_episodes))))),
                sample_prompt=f"{world.name}, seed {config.seed}\n",
                optimization=Optimization(
                    options={"eps": 1e-5},
                    warmup_steps=o.warmup_steps,
                    min_lr_ratio=o.min_lr_ratio,
                    clip_norm=o.clip_norm,
                ),
                tokens_per_sample=config.seq_len,
                val_samples=o.eval_episodes,
                before_step=rounds.before_step,
                shuffled=False,
                whole_chunks=True,
                goal=goal,
            )
        )


def make_model(world: World, options: Options) -> CascadedLstm:
    return CascadedLstm(world.observations.size, world.actions.count, world.actions.continuous, options.hidden)


def build_model(request: Request) -> CascadedLstm | None:
    """The policy of these settings, to count its parameters; None if its environment needs a folder read."""
    options, named = read_options(request, Options), Path(request.config.dataset_file)
    if is_trading(options) and named.is_dir():
        return None
    market = open_files(str(named), lambda: [named], options)[1] if is_trading(options) else None
    # An environment may compute with tensors of its own.
    with torch.device("cpu"):
        world = open_world(options, market)
    return make_model(world, options)


def prepared_from(options: Options) -> dict[str, Any]:
    """Settings that the prepared data depends on."""
    names = ["environment", "eval_episodes"]
    if is_trading(options):
        names += ["price_column", "max_gap", "max_bad_rows", "val_fraction", "window"]
    return {name: getattr(options, name) for name in names}


def prepare(run: Run, options: Options, folder: Path) -> PreparedData:
    """An epoch is one block of chunks, played as it is trained; only prices are prepared."""
    info: dict[str, Any] = {}
    if is_trading(options):
        files, market = open_files(run.config.dataset_file, run.dataset_files, options)
        info = save_market(folder, market)
        bad, rows = sum(file.bad_rows for file in files), sum(file.rows for file in files)
        if bad:
            examples = "; ".join(f"{file.name}, {example}" for file in files for example in file.examples)
            run.alert(
                "bad_rows",
                "Some rows of the price file are bad",
                f"{bad} of {rows} rows have no usable price: {examples}.",
                "They are skipped. To make a run fail instead, allow fewer bad rows.",
            )
    return PreparedData(run.config.samples_per_block, options.eval_episodes, info)


def judged(episodes: list[Episode]) -> LossAndMetrics:
    """Evaluation episodes as a loss to minimise, and as metrics."""
    mean = sum(episode.reward for episode in episodes) / len(episodes)
    length = sum(episode.steps for episode in episodes) / len(episodes)
    return LossAndMetrics(torch.tensor(-mean), {"return": torch.tensor(mean), "length": torch.tensor(length)})


def written(episodes: list[Episode]) -> str:
    """Evaluation episodes as text."""
    lines = [
        f"episode {number:2}: return {episode.reward:10.3f} in {episode.steps:5} steps  {episode.summary}".rstrip()
        for number, episode in enumerate(episodes)
    ]
    mean = sum(episode.reward for episode in episodes) / len(episodes)
    return "\n".join([*lines, f"mean of these {len(episodes)}: {mean:.3f}"]) + "\n"
