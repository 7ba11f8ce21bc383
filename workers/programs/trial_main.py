"""One rank of `rankdeck tune` or `rankdeck bench`: makes trials, one after the other, until it is ended.

Run as ``python -m workers.programs.trial_main`` by `core.trials.ranks`, with a rank's environment; it has no host. In
the folder of all ranks, `trial-1.json` asks for the first trial and `rank0/result-1.json` answers it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.config.batch import Batch
from core.config.config_file import without_version
from core.config.distributed import DistributedConfig
from core.config.layers import config_from_mapping
from core.config.mode import Mode
from core.errors import PeerLostError
from core.files.atomic import write_atomic
from core.held_files import read_utf8
from core.protocol.rank_context import RankContext
from core.recipes.catalog import get_recipe

if TYPE_CHECKING:
    from workers.trials.trial import Trial

_POLL_S: Final = 0.005
_WAIT_S: Final = 0.02
"""Between two looks for the next trial: other sets of ranks may be making theirs meanwhile."""


def main() -> None:
    """Makes trials; its parent ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the parent, which ends the ranks
    context = RankContext.from_env(os.environ)
    folder, own = context.run_dir, context.run_dir / f"rank{context.rank}"
    own.mkdir(exist_ok=True)
    import torch

    from workers.recipe_api.loader import load_function
    from workers.trials.trial import make_trial

    torch.optim.SGD([torch.zeros(1)])  # imports torch's compiler, which must not count as a trial's time
    torch.set_num_threads(context.threads)
    device = torch.device(context.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
    recipe_main = load_function(get_recipe(str(context.recipe_dir)), "main")
    (own / "ready").touch()
    number = 1
    while True:
        asked = _wait_for(folder / f"trial-{number}.json")
        barrier = _Barrier(folder, number, context)
        found = make_trial(_trial(asked, context, folder), recipe_main, own, barrier.wait)
        write_atomic(own / f"result-{number}.json", json.dumps(found), durable=False)
        number += 1


def _trial(asked: dict[str, Any], context: RankContext, folder: Path) -> Trial:
    import torch

    from workers.strategies import RankPlace
    from workers.trials.trial import Trial

    config = config_from_mapping(without_version(asked["config"], folder))
    if context.device != "cpu":
        torch.backends.cudnn.benchmark = config.cudnn_benchmark
    config = config.replace(zero_engine=asked["engine"] or config.zero_engine, torch_compile=asked["compiles"])
    distributed = DistributedConfig.from_env(os.environ)
    place = RankPlace(
        context.rank,
        context.world_size,
        torch.device(context.device),
        asked["backend"],
        asked["rendezvous"],
        config.collective_timeout_s,
        distributed.num_nodes,
        distributed.nic,
    )
    group = Mode.read(asked["mode"]).group_size(context.world_size)
    batch = Batch.of(asked["micro_batch"], group, asked["accumulation"])
    trial = Trial(config, asked["mode"], batch, place, asked["seconds"], what=asked["what"])
    if (other := asked["own"]) is None:
        return trial
    own = Batch.of(other["micro_batch"], group, other["accumulation"])
    return dataclasses.replace(trial, own=own, own_compiles=other["compiles"])


def _wait_for(path: Path) -> dict[str, Any]:
    """The next request; it is put there whole."""
    while not path.exists():
        time.sleep(_WAIT_S)
    values: dict[str, Any] = json.loads(read_utf8(path))
    return values


class _Barrier:
    """Lets ranks that nothing connects begin together, by files; a parent ends those that wait in vain."""

    def __init__(self, folder: Path, number: int, context: RankContext) -> None:
        self._folder, self._number, self._context = folder, number, context
        self._times = 0

    def wait(self) -> None:
        """Returns once every rank is here.

        Raises:
            PeerLostError: Another rank has failed and will not come.
        """
        self._times += 1
        name = f"here-{self._number}-{self._times}"
        (self._folder / f"rank{self._context.rank}" / name).touch()
        folders = [self._folder / f"rank{rank}" for rank in range(self._context.world_size)]
        while missing := [folder for folder in folders if not (folder / name).exists()]:
            if any((folder / f"result-{self._number}.json").exists() for folder in missing):
                raise PeerLostError("Another device's trial failed.", "Look at that device.")
            time.sleep(_POLL_S)


if __name__ == "__main__":
    main()
    sys.exit(0)
