"""Environments: Gymnasium's by their ids, and this recipe's two by name, with observations as vectors."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rankdeck.recipe import ConfigError
from workers.recipes.clstm_ppo.options import Options
from workers.recipes.clstm_ppo.trading import Market, Trading

MAX_NUMBERS: Final = 100_000
Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Observations:
    """An environment's observation as a vector of numbers of about one.

    Numbers with limits are scaled to -1 … 1; of others the logarithm is taken beyond about one, sign(x) · log(1 + |x|)
    (arXiv 2301.04104), so that nothing about an environment has to be measured, shared by ranks and saved.

    Attributes:
        low, span: Of those that have limits; 0 and 0 for the others.
        seen: The numbers that the policy sees.
    """

    space: Any
    low: Vector
    span: Vector
    seen: NDArray[np.int64]

    @property
    def size(self) -> int:
        return len(self.seen)

    def flat(self, observation: Any) -> NDArray[np.float32]:
        """An observation as a vector, shape (size,), not scaled yet."""
        from gymnasium.spaces import Box
        from gymnasium.spaces.utils import flatten

        plain = observation if isinstance(self.space, Box) else flatten(self.space, observation)
        return np.asarray(plain, dtype=np.float32).reshape(-1)[self.seen]

    def scaled(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Observations as the policy sees them, shape (n, size)."""
        squeezed = np.copysign(np.log1p(np.abs(rows)), rows)
        scaled = 2 * (rows - self.low) / np.where(self.span > 0, self.span, 1) - 1
        return np.where(self.span > 0, scaled, squeezed).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Actions:
    """An environment's actions.

    Attributes:
        count: Actions to choose from, or numbers that make one.
        continuous: Whether actions are made of numbers.
        first: The number of the first action.
        low, high: Limits of each number; infinite where there are none.
        shape: Of an action made of numbers.
    """

    count: int
    continuous: bool
    first: int = 0
    low: Vector | None = None
    high: Vector | None = None
    shape: tuple[int, ...] = ()

    def noise(self, generator: np.random.Generator, steps: int) -> NDArray[np.float64]:
        """Random numbers that sample the actions of a number of steps: shape (steps,) or (steps, count)."""
        return generator.standard_normal((steps, self.count)) if self.continuous else generator.random(steps)

    def draw(self, likely: NDArray[np.float64], noise: NDArray[np.float64] | None) -> NDArray[Any]:
        """Actions as the policy knows them; without noise the likeliest.

        `likely` is the policy's, shape (environments, n); `noise` has shape (environments,) or (environments, count).
        """
        if self.continuous:
            mean, log_std = likely[:, : self.count], likely[:, self.count :]
            return (mean if noise is None else mean + np.exp(log_std) * noise).astype(np.float32)
        if noise is None:
            likeliest: NDArray[np.int64] = likely.argmax(1)
            return likeliest
        shares = np.exp(likely - likely.max(1, keepdims=True))
        upto = shares.cumsum(1)
        drawn: NDArray[np.int64] = np.minimum((upto < noise[:, None] * upto[:, -1:]).sum(1), self.count - 1)
        return drawn

    def played(self, action: Any) -> Any:
        """An action as the environment takes it: numbers of -1 … 1 are scaled to its limits and cut there."""
        if not self.continuous:
            return self.first + int(action)
        assert self.low is not None and self.high is not None
        limited = np.isfinite(self.low) & np.isfinite(self.high)
        span = np.where(limited, self.high - self.low, 0.0)
        within = np.where(limited, self.low, 0.0) + (np.clip(action, -1, 1) + 1) / 2 * span
        free = np.clip(action, self.low, self.high)
        return np.where(limited, within, free).astype(np.float32).reshape(self.shape)


def observations_of(space: Any, name: str, hidden: str = "") -> Observations:
    """The observations of an environment, without the entries that `hidden` numbers ("0,3").

    Raises `ConfigError` where they cannot be a vector, or `hidden` names entries that are not there, or all.
    """
    from gymnasium.spaces import Box
    from gymnasium.spaces.utils import flatten_space

    try:
        flat = flatten_space(space)
    except NotImplementedError:
        flat = None
    if not isinstance(flat, Box) or not 0 < flat.shape[0] <= MAX_NUMBERS:
        raise ConfigError(
            "environment",
            f"The observations of {name} ({space}) are not 1 to {MAX_NUMBERS:,} numbers.",
            "Choose an environment whose observations are Box, Discrete, MultiDiscrete, or Tuple and Dict of them.",
        )
    low, high = flat.low.astype(np.float64), flat.high.astype(np.float64)
    limited = np.isfinite(low) & np.isfinite(high) & (high > low) & (np.maximum(abs(low), abs(high)) < 1e6)
    unseen = _hidden(hidden, len(low), name)
    seen = np.array([entry for entry in range(len(low)) if entry not in unseen])
    if not len(seen):
        raise ConfigError("hide", f"All {len(low)} numbers of {name} are hidden.", "Hide fewer.")
    span = np.where(limited, high - np.where(limited, low, 0), 0)
    return Observations(
        space, np.where(limited, low, 0)[seen].astype(np.float32), span[seen].astype(np.float32), seen.astype(np.int64)
    )


def actions_of(space: Any, name: str) -> Actions:
    """The actions of an environment; raises `ConfigError` where they are neither Discrete nor a Box of real numbers."""
    from gymnasium.spaces import Box, Discrete

    if isinstance(space, Discrete) and space.n > 1:
        return Actions(int(space.n), False, int(space.start))
    if isinstance(space, Box) and np.issubdtype(space.dtype, np.floating) and 0 < space.low.size <= MAX_NUMBERS:
        low, high = space.low.astype(np.float32).reshape(-1), space.high.astype(np.float32).reshape(-1)
        return Actions(space.low.size, True, 0, low, high, space.shape)
    raise ConfigError(
        "environment",
        f"The actions of {name} are {space}; this recipe supports Discrete and Box actions.",
        "Choose another environment, or wrap this one so that its actions are Discrete or Box.",
    )


def _hidden(text: str, entries: int, name: str) -> set[int]:
    found = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        if not word.isdigit() or int(word) >= entries:
            raise ConfigError(
                "hide",
                f"hide names the entry {word}, but an observation of {name} has the entries 0 to {entries - 1}.",
                "Give numbers separated by commas, or leave it empty.",
            )
        found.add(int(word))
    return found


# CartPole-v1 without its velocities: what is observed once does not say which way the pole falls.
MASKED: Final = "masked-cartpole"
TRADING: Final = "trading"
OWN: Final = (MASKED, TRADING)
_CARTPOLE: Final = "CartPole-v1"
_VELOCITIES: Final = "1,3"


@dataclass(frozen=True, slots=True)
class World:
    """An environment that any number of can be made of; `make(True)` makes one for evaluation."""

    name: str
    make: Callable[[bool], Any]
    observations: Observations
    actions: Actions


def is_trading(options: Options) -> bool:
    return options.environment.strip() == TRADING


def open_world(options: Options, market: Market | None = None) -> World:
    """The environment of the options; raises `ConfigError`. Trading needs a market."""
    name = options.environment.strip()
    if is_trading(options):
        assert market is not None, "the price file is read first"
        return _looked_at(name, lambda held_out: Trading(market, options, held_out), options.hide)
    arguments, limit = environment_arguments(options.environment_arguments), options.max_episode_steps
    id_ = _CARTPOLE if name == MASKED else name
    hide = options.hide or (_VELOCITIES if name == MASKED else "")
    return _looked_at(name, lambda _: _make(id_, arguments, limit or None), hide)


def environment_arguments(text: str) -> dict[str, Any]:
    """Arguments for an environment from a JSON object; raises `ConfigError` for anything else."""
    try:
        value = json.loads(text) if text.strip() else {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ConfigError(
            "environment_arguments",
            f"{text!r} is not a JSON object.",
            'For example: {"is_slippery": false}. It may be empty.',
        )
    return value


def _looked_at(name: str, make: Callable[[bool], Any], hide: str) -> World:
    one = make(False)
    try:
        return World(name, make, observations_of(one.observation_space, name, hide), actions_of(one.action_space, name))
    finally:
        one.close()


def _make(name: str, arguments: Mapping[str, Any], limit: int | None) -> Any:
    import gymnasium

    try:
        return gymnasium.make(name, max_episode_steps=limit, disable_env_checker=True, **arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ConfigError(
            "environment",
            f"{name} needs a package that is not installed here: {error}",
            "Install it, or choose another environment.",
        ) from error
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        known = [*OWN, *gymnasium.registry]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        raise ConfigError(
            "environment",
            f"There is no environment {name!r} ({str(error).split('. ')[0].strip().rstrip('.')}).",
            f"Did you mean {near[0]!r}?" if near else f"Choose {MASKED}, {TRADING}, or an id such as CartPole-v1.",
        ) from error
    except TypeError as error:
        raise ConfigError(
            "environment_arguments",
            f"{name} does not take these arguments: {error}.",
            "Remove the arguments that it does not take.",
        ) from error
