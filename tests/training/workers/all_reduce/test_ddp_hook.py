"""DDP with gradients through shared memory, beside plain DDP: real processes, real training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.config.run_config import EXCHANGES
from core.errors import ConfigError
from core.host.failures import RankFailure
from core.protocol.messages import RankFailed
from tests.training.workers.all_reduce.rank_runs import outcomes

torch = pytest.importorskip("torch", reason="trains for real")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two ranks found."""
    return outcomes("train,ways,owed,surprises", 2, tmp_path_factory.mktemp("two"))


def test_two_ranks_train_bit_for_bit_as_plain_ddp(two: list[dict[str, Any]]) -> None:
    first, second = (rank["train"] for rank in two)
    assert first["name"] == "shared" and first["words"].startswith("Gradients go through shared memory: ")
    assert first["ours"] == second["ours"] == first["plain"] == second["plain"]
    assert set(first["ours"]) == {"views", "copies", "static", "one"}
    assert first["in_place"] == second["in_place"] > 1  # buckets, from their third step on
    assert first["waited"] and second["waited"]
    assert first["rates"] == second["rates"] and min(first["rates"]) > 0


def test_every_way_trains(two: list[dict[str, Any]]) -> None:
    first, second = (rank["ways"] for rank in two)
    for wanted, (name, words, weights) in first.items():
        assert weights == second[wanted][2], wanted
        assert name == second[wanted][0] and words.startswith("Gradients go ")
    assert {wanted: name for wanted, (name, _, _) in first.items() if wanted != "auto"} == {
        "plain": "gloo", "fp16": "fp16", "bf16": "bf16", "powersgd": "powersgd",
    }  # fmt: skip
    assert first["auto"][0] in ("shared", "gloo") and first["auto"][2] == first["plain"][2]
    assert len({weights[0] for _, _, weights in first.values()}) == 4  # what rounds differs from what does not


def test_powersgd_goes_on_with_a_memory_of_the_same_buckets_only(two: list[dict[str, Any]]) -> None:
    for found in (rank["owed"] for rank in two):
        assert found["kept"] == ["error.0", "p.0", "q.0"]
        assert found["same"] == found["never stopped"] != found["without"]
        assert found["other"] == found["without"], "whole gradients"
        assert found["steps"]["same"] == 1
        assert found["steps"]["other"] < 0


@pytest.mark.windows
def test_training_on_windows_and_a_rank_that_dies(tmp_path: Path) -> None:
    """One start of ranks: the same training as above, then a death that the backward pass names."""
    (left,) = outcomes("train,die_in_training", 2, tmp_path, dead=1)
    assert left["train"]["ours"] == left["train"]["plain"]
    died = left["die_in_training"]
    assert died["type"] == "PeerLostError" and "rank 1 (process" in died["cause"]
    assert died["s"] < 5.0
    assert RankFailure(0, 1.0, report=RankFailed(**died["report"])).is_secondary


def test_three_ranks_stay_equal(tmp_path: Path) -> None:
    found = [rank["agree"] for rank in outcomes("agree", 3, tmp_path)]
    assert found == [found[0]] * 3 and found[0]["name"] == "shared"


def test_a_surprise_at_the_self_test_means_gloo_for_all(two: list[dict[str, Any]]) -> None:
    for rank, found in enumerate(two):
        for name, words in (("wrong", "its sums differ from gloo's"), ("raising", "OSError: no torch.float32 today")):
            way, said, fallback = found["surprises"][name]
            assert (
                way == "gloo" and said == f"Gradients go over gloo, because shared memory cannot be used: {fallback}."
            )
            assert rank == 0 or fallback.startswith(words)


def test_ways_have_the_names_of_the_setting() -> None:
    from workers.all_reduce import WANTED

    assert set(WANTED) == set(EXCHANGES)


def test_an_unknown_way_is_refused_and_nccl_left_alone() -> None:
    from workers.all_reduce import choose_all_reduce
    from workers.strategies.base import RankPlace

    place = RankPlace(0, 2, torch.device("cpu"), "nccl")
    no_group = torch.distributed.ProcessGroup  # not reached: nothing is agreed on
    with pytest.raises(ConfigError, match="gradient_exchange is 'pigeons'"):
        choose_all_reduce(no_group, place, 1, "pigeons")
    assert choose_all_reduce(no_group, place, 1, "auto").name == "nccl"
    wanted = choose_all_reduce(no_group, place, 1, "shared")
    assert wanted.name == "nccl" and wanted.fallback == "the process group is NCCL's"
    assert not wanted.through_shared_memory and wanted.sync_wait_s is None
