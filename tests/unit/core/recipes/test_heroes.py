"""Heroes of a recipe, read and checked."""

from __future__ import annotations

import re

import pytest

from core.recipes.heroes import MOST, Hero, read_heroes


def test_what_is_left_out_has_a_default() -> None:
    (hero,) = read_heroes([{"metric": "episode_return"}])
    assert hero == Hero("episode_return", "Episode return")
    tables = [{"metric": "loss", "label": "Loss", "unit": "nats", "better": "lower"}]
    assert read_heroes(tables) == (Hero("loss", "Loss", "nats", "lower"),)
    assert read_heroes([]) == ()


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"metric": "loss"}, "list of [[heroes]] tables"),
        ([{"metric": ""}], "hero 1 has the metric ''"),
        ([{"metric": "loss", "better": "up"}], "better is 'up'"),
        ([{"metric": "loss", "unit": 3}], "unit is 3; it must be text"),
        ([{"metric": "loss", "colour": "red"}], "hero 1: colour is not known"),
        ([{"metric": "loss"}, {"metric": "loss"}], "Two heroes show the metric 'loss'"),
        ([{"metric": f"m{n}"} for n in range(MOST + 1)], f"{MOST} have room"),
    ],
)
def test_what_cannot_be_used_is_refused(tables: object, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read_heroes(tables)
