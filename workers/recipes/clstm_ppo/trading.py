"""A small market to trade in: one thing with a price, held long, not at all, or short, and a fee on every change.

Nothing here says how to make money: it shows how a recurrent policy is trained on a series of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rankdeck.recipe import ConfigError
from workers.recipes.clstm_ppo.options import Options
from workers.recipes.clstm_ppo.prices import PRICES, PriceFile, read_prices

NO_FILE: Final = "none://"
_PRICES: Final = "prices.npy"


def open_files(named: str, files: Callable[[], Sequence[Path]], options: Options) -> tuple[list[PriceFile], Market]:
    """Read the price files that `dataset_file` names and make the market of them; raise `ConfigError`."""
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
    """Save a market for `load_market`; return what belongs to it."""
    np.save(folder / _PRICES, market.prices)
    return {
        name: [[stretch.first, stretch.past, stretch.usual] for stretch in part]
        for name, part in (("training", market.training), ("held_out", market.held_out))
    }


def load_market(folder: Path, info: Mapping[str, Any]) -> Market:
    training, held_out = (tuple(Stretch(*values) for values in info[name]) for name in ("training", "held_out"))
    return Market(np.load(folder / _PRICES), training, held_out)


# An episode of fewer steps teaches nothing.
MIN_STEPS: Final = 16

_PERCENT: Final = 100.0
_RUIN: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Stretch:
    """Prices without a gap, to play episodes in.

    Attributes:
        first, past: Its place in the market's prices.
        usual: The usual move of the price in a step: the logarithm's standard deviation before the held-out part.
    """

    first: int
    past: int
    usual: float


@dataclass(frozen=True, slots=True)
class Market:
    """Prices of all files, one after the other, with stretches for training and evaluation."""

    prices: NDArray[np.float64]
    training: tuple[Stretch, ...]
    held_out: tuple[Stretch, ...]


def make_market(files: Sequence[PriceFile], held_out: float, window: int) -> Market:
    """Cut files of prices into training and held-out parts, by time; raise `ConfigError` where one has no stretch.

    Args:
        files: In any order; an episode never crosses from one to the next.
        held_out: The last share of each file, 0 … 1.
        window: Past moves that are observed: a stretch must be longer.
    """
    needed = window + 1 + MIN_STEPS
    prices: list[float] = []
    parts: tuple[list[Stretch], list[Stretch]] = ([], [])
    for file in files:
        base, cut = len(prices), round(len(file.prices) * (1 - held_out))
        prices += file.prices
        moves = np.diff(np.log(file.prices[:cut])) if cut > 1 else np.zeros(1)
        usual = float(moves.std()) or 1.0
        for first, past in file.stretches:
            for part, low, high in ((parts[0], first, min(past, cut)), (parts[1], max(first, cut), past)):
                if high - low >= needed:
                    part.append(Stretch(base + low, base + high, usual))
    for part, purpose in zip(parts, ("to train on", "held out"), strict=True):
        if not part:
            names = ", ".join(file.name for file in files)
            longest = max(past - first for file in files for first, past in file.stretches)
            raise ConfigError(
                "dataset_file",
                f"{names}: too few prices in a row. The longest stretch has {longest}, and the part {purpose} needs "
                f"{needed} (a window of {window} moves and {MIN_STEPS} steps).",
                "Use a longer file, a smaller window, another share for validation, or no limit for gaps.",
                option="--set window=N, --set val_fraction=X, or --set max_gap=0",
                title="The price file is too short",
            )
    return Market(np.array(prices), tuple(parts[0]), tuple(parts[1]))


class Trading:
    """An environment like Gymnasium's: `reset`, `step`, `observation_space`, `action_space`.

    The observation is the last moves of the price, in usual moves, and the position; the action is the next position.
    The reward is the growth of the wealth in hundredths of its logarithm: a return of 5 is about 5 %.
    """

    def __init__(self, market: Market, options: Options, held_out: bool = False) -> None:
        from gymnasium.spaces import Box, Discrete

        self.observation_space = Box(-np.inf, np.inf, (options.window + 1,), np.float32)
        self.action_space = Discrete(3 if options.allow_short else 2)
        self._market, self._options = market, options
        self._stretches = market.held_out if held_out else market.training
        self._generator = np.random.default_rng()
        self._stretch = self._stretches[0]
        self._at = self._first = self._stretch.first + options.window
        self._position, self._trades, self._wealth = 0, 0, 1.0

    def reset(self, *, seed: int | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode at a random place; a long stretch is chosen more often."""
        if seed is not None:
            self._generator = np.random.default_rng(seed)
        window = self._options.window
        room = [stretch.past - stretch.first - window - MIN_STEPS for stretch in self._stretches]
        chosen = int(self._generator.choice(len(room), p=np.array(room) / sum(room)))
        stretch = self._stretches[chosen]
        # At a stretch's end there is less to see: episodes begin where the whole of one has room, if there is such.
        latest = max(1, min(room[chosen], stretch.past - stretch.first - window - self._options.trading_steps))
        self._begin(stretch, stretch.first + window + int(self._generator.integers(latest)))
        return self._observation(), {}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take a position, pay for the change, and wait for the next price."""
        position = int(action) - (1 if self._options.allow_short else 0)
        change = abs(position - self._position)
        move = self._market.prices[self._at + 1] / self._market.prices[self._at] - 1
        growth = max((1 - self._options.fee * change) * (1 + position * move), _RUIN)
        self._position = position
        self._at += 1
        self._trades += change > 0
        self._wealth *= growth
        ruined = growth <= _RUIN
        over = self._at + 1 >= self._stretch.past or self._at - self._first >= self._options.trading_steps
        info = {"summary": self._summary()} if over or ruined else {}
        return self._observation(), _PERCENT * float(np.log(growth)), ruined, over and not ruined, info

    def close(self) -> None: ...

    def _begin(self, stretch: Stretch, at: int) -> None:
        self._stretch = stretch
        self._at = self._first = at
        self._position, self._trades, self._wealth = 0, 0, 1.0

    def _observation(self) -> NDArray[np.float32]:
        seen = np.log(self._market.prices[self._at - self._options.window : self._at + 1])
        moves = np.clip(np.diff(seen) / self._stretch.usual, -10, 10)
        return np.append(moves, self._position).astype(np.float32)

    def _summary(self) -> str:
        held = self._market.prices[self._at] / self._market.prices[self._first]
        return f"wealth × {self._wealth:.3f} with {self._trades} trades; holding all along × {held:.3f}"
