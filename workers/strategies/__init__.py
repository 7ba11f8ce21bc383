"""Ways of sharing the work among ranks, behind one small interface (`base.Strategy`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from core.config import RunConfig
from core.config.batch import Batch
from core.config.mode import Mode
from core.config.sync import resolve_synchronisation
from core.errors import ConfigError
from workers.strategies.base import RankPlace, Strategy
from workers.strategies.ddp import DdpStrategy
from workers.strategies.local_sgd import LocalSgdStrategy
from workers.strategies.replica import Replica
from workers.strategies.single import IndependentStrategy, SingleStrategy

__all__ = ["RankPlace", "Replica", "SingleStrategy", "Strategy", "make_strategy"]


def _independent(place: RankPlace, config: RunConfig, _batch: Batch) -> Strategy:
    rule = resolve_synchronisation(config)
    return IndependentStrategy(place) if rule is None else LocalSgdStrategy(place, rule)


def _sharded(place: RankPlace, config: RunConfig, batch: Batch) -> Strategy:
    """Stage 1 spreads the optimizer's state; 2 and 3 also gradients, and weights where they are not in use."""
    if config.zero_engine == "deepspeed":
        from workers.strategies.deepspeed.zero import DeepSpeedStrategy

        return DeepSpeedStrategy(place, config, batch)
    if config.zero_stage == 1:
        from workers.strategies.zero import ZeroStrategy  # brings FSDP along

        return ZeroStrategy(place, config)
    from workers.strategies.fsdp import FsdpStrategy  # its imports take a second

    return FsdpStrategy(place, config)


_STRATEGIES: Final[Mapping[Mode, Callable[[RankPlace, RunConfig, Batch], Strategy]]] = {
    Mode.SINGLE: lambda place, _config, _batch: SingleStrategy(place),
    Mode.DDP: lambda place, config, _batch: DdpStrategy(place, config),
    Mode.INDEPENDENT: _independent,
    Mode.ZERO: _sharded,
    Mode.FSDP: lambda place, config, batch: _sharded(place, config.replace(zero_stage=3), batch),
}


def make_strategy(mode: str, place: RankPlace, config: RunConfig, batch: Batch) -> Strategy:
    """The strategy for a resolved mode; in mode zero `config.zero_engine` is resolved, too."""
    if (make := _STRATEGIES.get(Mode.read(mode))) is None:
        raise ConfigError("mode", f"Mode {str(mode)!r} is not supported.", "Choose ddp or independent.")
    return make(place, config, batch)
