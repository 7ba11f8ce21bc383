"""Everything a recipe needs: this module's names are public and stay.

A recipe is a folder with `recipe.toml` (its form) and `train.py` with one function, `main(run)`. Forty lines do::

    import numpy as np, torch
    from workers.recipe_api import Optimization, PreparedData, Run, Task

    def build(run: Run, folder):                       # once, on rank 0
        values = np.loadtxt(run.dataset_files()[0])
        np.save(folder / "values.npy", values)
        return PreparedData(samples=len(values) - 100, val_samples=100)

    def main(run: Run) -> None:                        # on every rank
        run.prepare(lambda folder: build(run, folder))
        values = torch.from_numpy(np.load(run.data_dir / "values.npy"))
        n = run.samples
        run.fit(Task(
            model=torch.nn.Linear(1, 1),
            batch=lambda i: values[i],                 # i: dataset indices
            val_batch=lambda i: values[n + i],
            loss=lambda model, v: (model(v[:, :1]) - v[:, 1:]).square().mean(),
            optimization=Optimization(clip_norm=1.0),
        ))

Devices, modes, accumulation, precision, evaluation, commits, resume and stopping are the trainer's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import torch

from core.config import RunConfig
from core.config.fields import FieldValue
from core.dataset import list_files
from core.errors import ConfigError, DatasetError
from workers.batches import Indices
from workers.data_folder import PreparedData, prepare
from workers.optimization import Optimization
from workers.session import Session
from workers.trainer import Task, Trainer

__all__ = ["ConfigError", "DatasetError", "Indices", "Optimization", "PreparedData", "Run", "Task"]

_DATA_TIMEOUT_S: Final = 86_400.0


class Run:
    """What `main(run)` gets: the run as its recipe sees it.

    Attributes:
        config: What was asked, complete with the recipe's defaults.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.config: RunConfig = session.config

    @property
    def options(self) -> Mapping[str, Any]:
        """The recipe's own fields, as `recipe.toml` names them."""
        options: Mapping[str, FieldValue] = self.config.options
        return options

    @property
    def rank(self) -> int:
        """This rank."""
        return self._session.strategy.place.rank

    @property
    def device(self) -> torch.device:
        """What this rank trains on."""
        return self._session.strategy.place.device

    @property
    def data_dir(self) -> Path:
        """The folder that `prepare` fills."""
        return self._session.data_dir

    @property
    def samples(self) -> int:
        """Training samples, once prepared."""
        return self._session.data.samples

    @property
    def info(self) -> Mapping[str, Any]:
        """What `PreparedData.info` said, on every rank."""
        return self._session.data.info

    def dataset_files(self) -> list[Path]:
        """The dataset's files in their order.

        Raises:
            DatasetError: There are none, or they cannot be read.
        """
        return list_files(self.config.dataset_file)

    def prepare(
        self, build: Callable[[Path], PreparedData], depends_on: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Has rank 0 fill `data_dir` once, and every rank wait for it; a resumed run finds it filled.

        Args:
            build: Fills the folder it is given.
            depends_on: The settings that the outcome depends on; left out, all of the recipe's options.

        Returns:
            `info`.
        """
        self._session.phase("preparing data")
        if self.rank == 0:
            settings = dict(self.options if depends_on is None else depends_on)
            key = {
                "recipe": self.config.recipe,
                "dataset_file": self.config.dataset_file,
                "seq_len": self.config.seq_len,
                "settings": settings,
            }
            self._session.reporter.send(prepare(self.data_dir, build, key))
        self._session.data = self._session.inbox.wait_for_data(_DATA_TIMEOUT_S)
        return self.info

    def fit(self, task: Task) -> None:
        """Trains until the work is done or the run is stopped; resumes where the newest generation stands."""
        self._session.phase("rendezvous")
        self._session.strategy.setup()
        Trainer(self._session, task).fit()
