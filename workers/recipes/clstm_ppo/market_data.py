"""The price files of a run: read and checked once, kept with the run's data for all its ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from rankdeck.recipe import ConfigError
from workers.recipes.clstm_ppo.options import Options
from workers.recipes.clstm_ppo.prices import PRICES, PriceFile, read_prices
from workers.recipes.clstm_ppo.trading import Market, Stretch, make_market

NO_FILE: Final = "none://"
_PRICES: Final = "prices.npy"


def open_files(named: str, files: Callable[[], Sequence[Path]], options: Options) -> tuple[list[PriceFile], Market]:
    """Reads the price files that `dataset_file` names and makes the market of them.

    Raises:
        ConfigError: None is named, no such column or which one cannot be guessed, too many bad rows, too few prices.
    """
    if named.strip() == NO_FILE:
        raise ConfigError(
            "dataset_file",
            "The trading environment needs a file of prices, but none was given.",
            "Choose one.",
            option="--dataset-file prices.csv",
            title=PRICES,
        )
    read = [read_prices(path, options.price_column, options.max_gap) for path in files()]
    for file in read:
        if file.bad_rows > options.max_bad_rows * file.rows:
            raise ConfigError(
                "max_bad_rows",
                f"{file.name}: {file.bad_rows} of {file.rows} rows of the column {file.column!r} cannot be used, more "
                f"than the share {options.max_bad_rows:g} that is allowed: {'; '.join(file.examples)}.",
                "Correct the file, choose another price column, or allow more bad rows.",
                option="--set price_column=NAME, or --set max_bad_rows=1",
                title=PRICES,
            )
    return read, make_market(read, options.val_fraction, options.window)


def save_market(folder: Path, market: Market) -> dict[str, Any]:
    """Keeps a market for `load_market`; what is returned goes with it."""
    np.save(folder / _PRICES, market.prices)
    return {
        name: [[stretch.first, stretch.past, stretch.usual] for stretch in part]
        for name, part in (("training", market.training), ("held_out", market.held_out))
    }


def load_market(folder: Path, info: Mapping[str, Any]) -> Market:
    """What `save_market` kept."""
    training, held_out = (tuple(Stretch(*values) for values in info[name]) for name in ("training", "held_out"))
    return Market(np.load(folder / _PRICES), training, held_out)
