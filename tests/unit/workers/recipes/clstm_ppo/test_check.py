"""What the recipe refuses before a rank is started, and which sizes it fits to the batch."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("gymnasium", reason="the environments are made of it")

from core.config import RunConfig
from rankdeck.recipe import Checked, ConfigError, Request
from tests.unit.workers.recipes.clstm_ppo.made import options
from workers.recipes.clstm_ppo.check import check, fit
from workers.recipes.clstm_ppo.grid import BLOCK, CHUNK


def test_the_fit_is_told_and_what_was_chosen_is_refused_before_the_start() -> None:
    chosen = options(passes=6, num_episodes=10_000)
    config = RunConfig(dataset_chunk_size=3_072, samples_per_block=49_152, seq_len=16, options=chosen)
    fitted = fit(Request(config, at_default=(CHUNK, BLOCK)), 1_024)
    assert fitted.settings == {CHUNK: 6_144}
    assert list(fitted.notes) == [
        "The chunk has 6,144 samples instead of 3,072 (block: 49,152): 6 passes over a global batch of 1,024. Each "
        "environment plays 16 steps in a round."
    ]
    assert fit(Request(config, at_default=(CHUNK, BLOCK)), 256) == Checked([], {})
    with pytest.raises(ConfigError) as caught:
        fit(Request(config, at_default=(BLOCK,)), 1_024)
    assert caught.value.field == CHUNK and "--dataset-chunk-size 6144" in caught.value.next_step
    with pytest.raises(ConfigError) as caught:
        fit(Request(config, resumes=True), 1_024)
    assert "that the run had" in caught.value.next_step


def asked(**changes: Any) -> Request:
    return Request(RunConfig(dataset_file=changes.pop("dataset_file", "none://"), options=options(**changes)))


BAD_SETTINGS = [
    ({"environment": "CartPole-v7"}, "environment", "Did you mean 'CartPole-v1'"),
    ({"environment": "Cartpoel-v1"}, "environment", "Did you mean 'CartPole-v1'"),
    ({"environment": "nothing_there:Thing-v0"}, "environment", "nothing_there"),
    ({"environment": "CartPole-v1", "environment_arguments": "{"}, "environment_arguments", "JSON object"),
    ({"environment": "CartPole-v1", "environment_arguments": '{"colour": 1}'}, "environment_arguments", "colour"),
    ({"environment": "CartPole-v1", "hide": "4"}, "hide", "entries 0 to 3"),
    ({"environment": "CartPole-v1", "hide": "0,1,2,3"}, "hide", "are hidden"),
    ({"environment": "trading"}, "dataset_file", "--dataset-file prices.csv"),
]


@pytest.mark.parametrize(("changes", "field", "said"), BAD_SETTINGS)
def test_what_cannot_work_is_said_before_a_rank_is_started(changes: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(asked(**changes))
    assert caught.value.field == field and said in f"{caught.value.cause} {caught.value.next_step}"
