"""Cards of a comparison."""

from __future__ import annotations

import pytest

from app.state.compared_cards import compared_cards
from core.recipes.heroes import Hero

pytestmark = pytest.mark.windows


def test_every_metric_has_a_card_of_its_own() -> None:
    steps = ("step", "ts", "reward", "loss", "tokens_per_s", "lr", "step_time_s", "data_wait_s", "epoch")
    cards = compared_cards(steps, ("step", "ts", "val_loss", "perplexity"))
    assert [card.title for card in cards] == [
        *("Loss", "Validation loss", "Throughput", "Learning rate", "Step time", "Perplexity", "Reward"),
        "Waiting for data",
    ]
    assert all(card.column for card in cards)
    assert [card.column for card in cards if card.is_eval] == ["val_loss", "perplexity"]


def test_scripts_count_samples() -> None:
    (card,) = compared_cards(("step", "samples_per_s"), ())
    assert (card.title, card.unit) == ("Throughput", "samples per second, all devices")
    assert compared_cards(("step", "ts"), ()) == []


def test_heroes_come_first_under_their_names() -> None:
    heroes = (Hero("episode_return", "Return"), Hero("kl", "KL"))
    cards = compared_cards(("loss", "kl", "episode_return", "tokens_per_s"), (), heroes)
    assert [(card.title, card.unit) for card in cards[:3]] == [("Return", ""), ("KL", ""), ("Loss", "")]
