"""Recurrent PPO under the real host: the same episodes and losses in every mode; and a run that is killed goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")
pytest.importorskip("gymnasium", reason="the environments are made of it")

from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(280)]

TINY = {"hidden": 8, "passes": 2, "eval_episodes": 5, "max_episode_steps": 60, "kl_target": 1e-5}


def make_played(folder: Path, world: int, **settings: Any) -> RunStore:
    values: dict[str, Any] = {
        "recipe": "clstm_ppo",
        "seq_len": 4,
        "batch_size": 4 // world,
        "dataset_chunk_size": 32,
        "samples_per_block": 128,
        "epochs": 2,
        "eval_every": 20,
        "lr": 0.03,
        "checkpoint_every_steps": 16,
        "options": TINY,
    }
    values |= settings
    mode = values.pop("mode", "ddp" if world > 1 else "single")
    return make_run(folder, values.pop("dataset_file", "none://"), mode, world, **values)


def test_modes_that_train_in_step_play_the_same_and_learn_the_same(tmp_path: Path) -> None:
    """One process alone, two that share the batch, two that share the weights: up to rounding one run."""
    settings = {"epochs": 1, "samples_per_block": 64, "options": {**TINY, "kl_target": 0.0}}
    alone, *others = (
        make_played(tmp_path / mode, world, mode=mode, **settings)
        for mode, world in (("single", 1), ("ddp", 2), ("fsdp", 2))
    )
    assert host(alone) == 0
    for run in others:
        assert host(run) == 0
        for name in ("loss", "entropy"):
            assert curve(run, name) == pytest.approx(curve(alone, name), abs=1e-3)
        assert lines(run, "eval")[-1]["val_return"] == pytest.approx(lines(alone, "eval")[-1]["val_return"])


def test_a_run_that_is_killed_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Killed in the middle of a round; environments, memory and the KL stop come back out of weights and numbers."""
    straight, killed = make_played(tmp_path / "straight", 2), make_played(tmp_path / "killed", 2)
    assert host(straight) == 0
    assert host(killed, "mid_chunk@43") != 0
    assert host(killed) == 0
    assert len(curve(straight, "lr")) == 2 * 128 / 4
    for name in ("grad_norm", "lr"):
        assert curve(straight, name) == curve(killed, name)
    assert straight.model.read_bytes() == killed.model.read_bytes()
    left_out = [line["step"] for line in lines(straight, "step") if "loss" not in line]
    assert left_out, "the KL stop has left steps out"
    evaluations = {line["step"]: line for line in lines(straight, "eval")}
    assert all(line["val_return"] == -line["val_loss"] == line["val_length"] > 0 for line in evaluations.values())
    resumed = {line["step"]: line["val_return"] for line in lines(killed, "eval")}
    assert {step: line["val_return"] for step, line in evaluations.items()} == resumed
    samples = lines(straight, "sample")
    assert [line["step"] for line in samples] == list(evaluations)
    assert samples[-1]["text"].count("return") == 5 and samples[-1]["prompt"] == "masked-cartpole, seed 1234\n"
    by_rank = [
        {line["step"]: line.get("episode_return") for line in lines(straight, "step") if line["rank"] == rank}
        for rank in (0, 1)
    ]
    assert by_rank[0] == by_rank[1] and any(by_rank[0].values()), "returns are those of all ranks"


def episodes(store: RunStore) -> dict[int, float]:
    """Episodes a device by step, as the newest attempt counted them; steps that the KL stop leaves out say nothing."""
    return {line["step"]: line["episodes"] for line in lines(store, "step") if "episodes" in line}


@pytest.mark.parametrize("mode", ["ddp", "independent"])
def test_evaluations_change_nothing_of_what_is_learned(mode: str, tmp_path: Path) -> None:
    """Their episodes draw from random numbers of their own, and leave the policy's training mode as it was."""
    often = make_played(tmp_path / "often", 2, mode=mode, eval_every=3)
    once = make_played(tmp_path / "once", 2, mode=mode, eval_every=1000)
    assert host(often) == host(once) == 0
    assert len(lines(often, "eval")) > len(lines(once, "eval"))
    learned = [
        {(line["rank"], line["step"]): (line.get("loss"), line["grad_norm"]) for line in lines(run, "step")}
        for run in (often, once)
    ]
    assert learned[0] and learned[0] == learned[1]


@pytest.mark.parametrize("world", [1, 2])
def test_episodes_end_a_run_and_are_counted_through_a_kill(tmp_path: Path, world: int) -> None:
    """The run ends with the round in which each device has played enough, though its epochs would go on."""
    wanted = {"options": {**TINY, "num_episodes": 30}, "epochs": 100}
    straight = make_played(tmp_path / "straight", world, **wanted)
    killed = make_played(tmp_path / "killed", world, **wanted)
    assert host(straight) == 0
    rounds = list(dict.fromkeys(episodes(straight).values()))
    assert len(rounds) > 2 and rounds[-2] < 30 <= rounds[-1]
    steps = max(curve(straight, "lr"))
    state = straight.state()
    assert (state.state, state.step, state.total_steps) == ("finished", steps, steps), "not what the epochs come to"
    assert state.goal == f"{rounds[-1]:g} of 30 episodes"
    assert steps % (32 // 4) == 0, "whole rounds"
    assert host(killed, f"mid_chunk@{steps - 3}") != 0
    assert host(killed) == 0
    assert episodes(killed) == episodes(straight)
    assert straight.model.read_bytes() == killed.model.read_bytes()
    assert host(killed) == 0 and max(curve(killed, "lr")) == steps, "resumed, it has nothing left to play"


def test_a_price_file_is_traded_on(tmp_path: Path) -> None:
    """Prices that go up and down by turns, with rows that cannot be used among them."""
    rows = [f"2024-{1 + day // 28:02}-{1 + day % 28:02},{100 + (day % 2)}" for day in range(320)]
    rows[7], rows[9] = "2024-01-08,", "2024-01-10,n/a"
    path = tmp_path / "prices.csv"
    path.write_text("\n".join(["Date,Close", *rows]) + "\n", encoding="utf-8")
    options = {**TINY, "environment": "trading", "trading_steps": 24, "window": 2}
    store = make_played(tmp_path / "run", 1, dataset_file=str(path), epochs=1, options=options)
    assert host(store) == 0
    (alert,) = [line for line in lines(store, "alert") if line["kind"] == "bad_rows"]
    assert "2 of 320 rows" in alert["cause"] and "line 9 has the price ''" in alert["cause"]
    assert "holding all along" in lines(store, "sample")[-1]["text"]


def test_a_rank_says_what_only_it_can_know(tmp_path: Path) -> None:
    store = make_played(tmp_path / "run", 1, dataset_chunk_size=33, samples_per_block=66)
    assert host(store) == 2
    error = store.state().error
    assert error is not None and error["title"] == "CPU 0: Invalid setting"
    assert "not a multiple of 8" in error["cause"] and "--dataset-chunk-size 32" in error["next_step"]
