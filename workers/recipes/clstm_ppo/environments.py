"""Environments: Gymnasium's by their ids, and this recipe's two by name."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rankdeck.recipe import ConfigError
from workers.recipes.clstm_ppo.options import Options
from workers.recipes.clstm_ppo.spaces import Actions, Observations, actions_of, observations_of
from workers.recipes.clstm_ppo.trading import Market, Trading

MASKED: Final = "masked-cartpole"
"""CartPole-v1 without its velocities: what is observed once does not say which way the pole falls."""
TRADING: Final = "trading"
OWN: Final = (MASKED, TRADING)
_CARTPOLE: Final = "CartPole-v1"
_VELOCITIES: Final = "1,3"


@dataclass(frozen=True, slots=True)
class World:
    """An environment that any number of can be made of.

    Attributes:
        name: As requested.
        make: Makes one; True: for evaluation.
        observations: How it is seen.
        actions: How one acts in it.
    """

    name: str
    make: Callable[[bool], Any]
    observations: Observations
    actions: Actions


def is_trading(options: Options) -> bool:
    """Whether the trading environment is asked for, which needs prices."""
    return options.environment.strip() == TRADING


def open_world(options: Options, market: Market | None = None) -> World:
    """The environment that the options ask for; one is made to look at, and closed again. Trading needs a market.

    Raises:
        ConfigError: There is no such environment, it cannot be made here, or it cannot be seen or acted in.
    """
    name = options.environment.strip()
    if is_trading(options):
        assert market is not None, "the price file is read first"
        return _looked_at(name, lambda held_out: Trading(market, options, held_out), options.hide)
    arguments, limit = environment_arguments(options.environment_arguments), options.max_episode_steps
    id_ = _CARTPOLE if name == MASKED else name
    hide = options.hide or (_VELOCITIES if name == MASKED else "")
    return _looked_at(name, lambda _: _make(id_, arguments, limit or None), hide)


def environment_arguments(text: str) -> dict[str, Any]:
    """Arguments for an environment, out of a JSON object.

    Raises:
        ConfigError: It is none.
    """
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
