"""A checkpoint that any mode on any number of ranks wrote goes on in any other, as if nothing had changed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="trains for real")

from core.errors import StateFileError
from tests.helpers.rank_processes import run_rank_processes
from tests.training.workers.change_rank import WAYS, Way, begin, sources, write
from workers.strategies import RankPlace, SingleStrategy
from workers.training.checkpoint import load_part

pytestmark = [pytest.mark.slow, pytest.mark.timeout(280)]
BIT_EQUAL = -1.0


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, float]]:
    """What each of the three processes found: "writer → reader" → how far the next step's weights are apart."""
    return run_rank_processes("tests.training.workers.change_rank", 3, tmp_path_factory.mktemp("changes"))


def test_every_way_goes_on_in_every_other(differences: list[dict[str, float]]) -> None:
    """Adam moves each weight by about 0.01 a step: forgotten moments would show."""
    for rank, found in enumerate(differences):
        readers = [way for way in WAYS if way.world > rank]
        assert len(found) == sum(len(sources(way)) for way in readers)
        worst = max(found, key=lambda pair: found[pair])
        assert found[worst] <= 1e-6, worst


def test_where_the_arithmetic_is_the_same_so_is_every_bit(differences: list[dict[str, float]]) -> None:
    """The same way on the same ranks; ZeRO stage 1 adds and updates as DDP does."""
    same = [(str(way), str(way)) for way in WAYS if way.mode != "independent" and way.engine == "torch"]
    same += [(f"{a} on {n}", f"{b} on {n}") for n in (2, 3) for a, b in (("ddp", "zero1"), ("zero1", "ddp"))]
    same += [(f"independent on {n} ({copy})", "single on 1") for n in (2, 3) for copy in ("0", "1")]
    for pair in (" → ".join(names) for names in same):
        assert {found[pair] for found in differences if pair in found} == {BIT_EQUAL}, pair


def test_an_optimizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    import torch

    from workers.optim.optimizer import Optimization
    from workers.optim.precision import Precision

    strategy = SingleStrategy(RankPlace(0, 1, torch.device("cpu")))
    write(Way("single", 1), strategy, tmp_path)
    replica, _ = begin(strategy)
    load_part(tmp_path / "single on 1", strategy, replica)
    rule = Optimization(kind=torch.optim.SGD, options={"momentum": 0.9})
    other = strategy.replicate(replica.model, rule, 0.01, Precision("fp32", torch.device("cpu")))
    with pytest.raises(StateFileError, match="trained with AdamW so far, and SGD cannot use its state"):
        load_part(tmp_path / "single on 1", strategy, other)
