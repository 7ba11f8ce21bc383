"""Ways of sharing the work among ranks, behind one small interface (`base.Strategy`)."""

from workers.strategies.base import RankPlace, StateFiles, Strategy, optimizer_state
from workers.strategies.ddp import DdpStrategy
from workers.strategies.independent import IndependentStrategy
from workers.strategies.single import SingleStrategy
from workers.strategies.zero import ZeroStrategy

STRATEGIES: dict[str, type[Strategy]] = {
    kind.name: kind for kind in (SingleStrategy, DdpStrategy, IndependentStrategy, ZeroStrategy)
}

__all__ = ["STRATEGIES", "RankPlace", "SingleStrategy", "StateFiles", "Strategy", "optimizer_state"]
