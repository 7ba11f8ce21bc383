"""One rank of a measurement: answers requests, one after the other, until it is ended.

Run as ``python -m workers.programs.measure_main KIND`` by `core.measure.ranks`, with a rank's environment; it has no
host. In the folder of all ranks `request-1.json` asks first, and `rank0/answer-1.json` answers it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.config import RunConfig
from core.config.batch import Batch
from core.config.config_file import without_version
from core.config.layers import config_from_mapping
from core.config.mode import Mode
from core.errors import PeerLostError
from core.files.atomic import write_atomic
from core.held_files import read_utf8
from core.protocol.rank_context import RankContext
from core.recipes.catalog import get_recipe
from workers.host_link.failures import explain_as_error
from workers.programs.answer import error_values
from workers.programs.rank_setup import rank_place, set_up_gpu, set_up_torch
from workers.recipe_api.loader import load_function

if TYPE_CHECKING:
    from workers.recipe_api import Run

# Beside the answer: what is known so far, and the parameter count.
FIGURES: Final = "figures.json"
COUNT: Final = "count.json"
LINK_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.005
# Between two looks for the next request: other sets of ranks may be measuring meanwhile.
_WAIT_S: Final = 0.02

Asked = dict[str, Any]


class Measuring:
    """This rank's answers.

    Args:
        context: Its place.
        own: Its folder.
    """

    def __init__(self, context: RankContext, own: Path) -> None:
        self._context, self._own, self._number = context, own, 0
        self._mains: dict[str, Callable[[Run], None]] = {}

    def answer(self, asked: Asked, number: int) -> dict[str, Any]:
        """Measure; the answer to a failure is its error."""
        self._number = number
        kinds = {
            "bare": self._bare,
            "figures": self._figures,
            "times": self._times,
            "trial": self._trial,
            "link": self._link,
        }
        try:
            return kinds[asked["kind"]](asked)
        except Exception as error:
            traceback.print_exc()
            sys.stderr.flush()
            return error_values(explain_as_error(error, "this machine"))

    def main_of(self, folder: str) -> Callable[[Run], None]:
        """Load a recipe's function, once."""
        if folder not in self._mains:
            self._mains[folder] = load_function(get_recipe(folder), "main")
        return self._mains[folder]

    def _bare(self, asked: Asked) -> dict[str, Any]:
        from workers.measure.bare import baselines

        return {"peaks": baselines(asked["engines"], self._own)}

    def _figures(self, asked: Asked) -> dict[str, Any]:
        from workers.measure.bare import baselines
        from workers.measure.figures import count_parameters, measure_figures
        from workers.measure.process import rss_bytes

        # What a bare rank loads must not count as the recipe's.
        baselines(["single"], self._own)
        config, place = self._config(asked), rank_place(self._context)
        main = self.main_of(asked["recipe"])

        def say(found: dict[str, Any], name: str = FIGURES) -> None:
            write_atomic(self._own / name, json.dumps(found), durable=False)

        # Before the count: what that imports is the recipe's, too.
        at_first = rss_bytes()
        say(count_parameters(get_recipe(asked["recipe"]), config), COUNT)
        return measure_figures(config, main, _batch(asked, 1), self._own, place.device, say, at_first)

    def _times(self, asked: Asked) -> dict[str, Any]:
        from workers.measure.figures import measure_times

        place = rank_place(self._context, backend="gloo", rendezvous=asked["rendezvous"])
        config, main = self._config(asked), self.main_of(asked["recipe"])
        return measure_times(
            config, main, _batch(asked, 1), self._own, place, asked["threads"][place.rank], asked["alone_threads"]
        )

    def _trial(self, asked: Asked) -> dict[str, Any]:
        from workers.measure.trial import Trial, make_trial

        config = self._config(asked)
        set_up_gpu(self._context)
        config = config.replace(zero_engine=asked["engine"] or config.zero_engine, torch_compile=asked["compiles"])
        place = rank_place(self._context, backend=asked["backend"], rendezvous=asked["rendezvous"])
        group = Mode.read(asked["mode"]).group_size(self._context.world_size)
        own = asked["own"]
        trial = Trial(
            config,
            asked["mode"],
            _batch(asked, group),
            place,
            asked["seconds"],
            None if own is None else _batch(own, group),
            asked["what"],
        )
        barrier = _Barrier(self._context.run_dir, self._number, self._context)
        return make_trial(trial, self.main_of(str(self._context.recipe_dir)), self._own, barrier.wait)

    def _link(self, asked: Asked) -> dict[str, Any]:
        from workers.measure.link import measure_link

        changes = {"backend": asked["backend"], "rendezvous": asked["rendezvous"]}
        return measure_link(rank_place(self._context, timeout_s=LINK_TIMEOUT_S, **changes), asked["seconds"])

    def _config(self, asked: Asked) -> RunConfig:
        return config_from_mapping(without_version(asked["config"], self._own))


def main(kind: str) -> None:
    """Answer requests of a kind; the parent ends this process."""
    # Ctrl+C is for the parent, which ends the ranks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    context = RankContext.from_env(os.environ)
    folder, own = context.run_dir, context.run_dir / f"rank{context.rank}"
    own.mkdir(exist_ok=True)
    set_up_torch()
    measuring = Measuring(context, own)
    # What a recipe imports must not count as a trial's time.
    if kind == "trial":
        from workers.measure import trial  # noqa: F401  # likewise

        measuring.main_of(str(context.recipe_dir))
    (own / "ready").touch()
    number = 1
    while True:
        found = measuring.answer(_wait_for(folder / f"request-{number}.json"), number)
        write_atomic(own / f"answer-{number}.json", json.dumps(found), durable=False)
        number += 1


def _batch(asked: Asked, group: int) -> Batch:
    return Batch.of(asked["micro_batch"], group, asked["accumulation"])


def _wait_for(path: Path) -> Asked:
    """Wait for the next request; it is put there whole."""
    while not path.exists():
        time.sleep(_WAIT_S)
    values: Asked = json.loads(read_utf8(path))
    return values


class _Barrier:
    """Lets ranks that nothing connects begin together, by files; a parent ends those that wait in vain."""

    def __init__(self, folder: Path, number: int, context: RankContext) -> None:
        self._folder, self._number, self._context = folder, number, context
        self._times = 0

    def wait(self) -> None:
        """Wait until every rank is here.

        Raises:
            PeerLostError: Another rank has failed and will not come.
        """
        self._times += 1
        name = f"here-{self._number}-{self._times}"
        (self._folder / f"rank{self._context.rank}" / name).touch()
        folders = [self._folder / f"rank{rank}" for rank in range(self._context.world_size)]
        while missing := [folder for folder in folders if not (folder / name).exists()]:
            if any((folder / f"answer-{self._number}.json").exists() for folder in missing):
                raise PeerLostError("Another device's trial failed.", "Look at that device.")
            time.sleep(_POLL_S)


if __name__ == "__main__":
    main(sys.argv[1])
