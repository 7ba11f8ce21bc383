"""The program of a rank without a host: runs one scenario, a function that lies beside the tests that look at it.

``python -m tests.training.rank_program MODULE:FUNCTION RANK WORLD FOLDER ARGUMENTS FILE`` (`run_ranks` starts it).
ARGUMENTS is a JSON list. What the function returns is written as JSON to FILE.json.
"""

from __future__ import annotations

if __name__ == "__main__":
    import tests.helpers.torch_imported  # noqa: F401, before anything else imports torch

import atexit
import importlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import torch

from core.config import RunConfig
from core.config.batch import resolve_batch
from workers.optim import seeding
from workers.strategies import RankPlace, Strategy, make_strategy

CPU: Final = torch.device("cpu")
SEED: Final = 3
TIMEOUT_S: Final = 60.0


@dataclass(frozen=True)
class BareRank:
    """One rank of a scenario.

    Attributes:
        rank, world: Its place among all ranks.
        folder: A folder of the test's, the same for all ranks.
    """

    rank: int
    world: int
    folder: Path

    def place(self, name: str, *, world: int | None = None, backend: str = "gloo", **limits: float) -> RankPlace:
        """The place at which `world` ranks (None: all) meet; `name` tells a scenario's meetings apart."""
        world = world or self.world
        url = (self.folder / f"rendezvous-{name}").as_uri()
        return RankPlace(self.rank % world, world, CPU, backend, url, **{"timeout_s": TIMEOUT_S, **limits})

    def set_up(self, way: str, name: str = "", *, world: int | None = None, **settings: Any) -> Strategy:
        """A strategy that is set up.

        Args:
            way: A mode; ``zero2`` is mode zero in stage 2.
            name: Tells several of the same way apart.
            world: How many ranks train; None: all.
            settings: `RunConfig`'s.
        """
        mode, stage = way.rstrip("123"), way[-1]
        given = {"zero_stage": int(stage)} if stage.isdecimal() else {}
        base = {"mode": mode, "zero_engine": "torch", "collective_timeout_s": TIMEOUT_S}
        config = RunConfig(**{**base, **given, **settings})
        place = self.place(
            f"{way}-{name}",
            world=1 if mode == "single" else world,
            backend="" if mode in ("single", "independent") else "gloo",
            timeout_s=config.collective_timeout_s,
        )
        strategy = make_strategy(mode, place, config, resolve_batch(config, place.world_size))
        strategy.setup()
        return strategy

    @contextmanager
    def strategy(self, way: str, name: str = "", *, world: int | None = None, **settings: Any) -> Iterator[Strategy]:
        """As `set_up`; closed afterwards, so that the next one can be set up."""
        strategy = self.set_up(way, name, world=world, **settings)
        yield strategy
        strategy.close()
        groups: Any = sys.modules.get("deepspeed.utils.groups")
        if groups is not None:
            groups._WORLD_GROUP = None  # DeepSpeed 0.16 keeps the group that it was used with first


def main(scenario: str, rank: str, world: str, folder: str, arguments: str, file: str) -> NoReturn:
    """Runs a scenario as the program; this process ends with it, as `workers.programs.rank_main` does."""
    module, _, name = scenario.partition(":")
    function = getattr(importlib.import_module(module), name)
    seeding.seed_everything(SEED)
    result = function(BareRank(int(rank), int(world), Path(folder)), *json.loads(arguments))
    Path(file).with_suffix(".json").write_text(json.dumps(result), encoding="utf-8")
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    from tests.training import rank_program  # by the name under which scenarios import it

    rank_program.main(*sys.argv[1:])
