"""Cards of a run, and which of them a person hid."""

from __future__ import annotations

from app.charts.cards import HIDDEN_AT_FIRST, Arrangement, cards_for, compared_cards
from core.recipes.heroes import DEFAULT_HEROES, Hero


def test_the_loss_comes_first_and_every_other_metric_has_a_card() -> None:
    steps = ["zeta", "ts", "step", "grad_norm", "lr", "step_time_s", "data_wait_s", "tokens_per_s", "loss"]
    cards = cards_for(steps, ["step", "ts", "val_loss", "val_accuracy"])
    assert [card.key for card in cards] == [
        "loss", "throughput", "step_time", "lr", "grad_norm", "eval/val_accuracy", "zeta",
    ]  # fmt: skip
    assert [(card.title, card.unit) for card in cards[:2]] == [
        ("Loss", "nats per token"),
        ("Throughput", "tokens per second"),
    ]
    assert cards[5].is_eval and cards[5].title == "Val accuracy"


def test_what_is_not_reported_has_no_card() -> None:
    assert cards_for(["step", "ts"], []) == []
    assert [card.key for card in cards_for(["reward"], [])] == ["reward"]
    (throughput,) = cards_for(["samples_per_s"], [])
    assert throughput.unit == "samples per second"
    (loss,) = cards_for([], ["val_loss"])
    assert loss.unit == "", "a loss per what?"


def test_a_metric_of_steps_and_of_evaluations_has_two_cards() -> None:
    cards = cards_for(["accuracy"], ["accuracy"])
    assert [(card.key, card.title) for card in cards] == [
        ("accuracy", "Accuracy"),
        ("eval/accuracy", "Accuracy (evaluation)"),
    ]


def test_what_a_recipe_names_comes_first_under_its_name() -> None:
    heroes = (Hero("episode_return", "Return", better="higher"), Hero("kl", "KL", "nats"), Hero("memory", "Memory"))
    steps = ["loss", "tokens_per_s", "step_time_s", "kl", "episode_return", "entropy"]
    cards = cards_for(steps, ["return", "episode_return"], heroes)
    assert [card.key for card in cards] == [
        "episode_return", "eval/episode_return", "kl", "loss", "throughput", "step_time", "entropy", "eval/return",
    ]  # fmt: skip
    assert [(card.title, card.unit) for card in cards[:3]] == [
        ("Return", ""), ("Return (evaluation)", ""), ("KL", "nats"),
    ]  # fmt: skip
    assert cards[3].unit == "", "of a policy it is no likelihood of tokens"
    usual = cards_for(["loss", "tokens_per_s", "lr"], ["val_loss"], DEFAULT_HEROES)
    assert usual == cards_for(["loss", "tokens_per_s", "lr"], ["val_loss"])


def test_arrangements_of_any_version_are_read() -> None:
    found = Arrangement.read({"order": ["b", 2, "a"], "hidden": [1, "a"]})
    assert (found.hidden, found.order) == ({"a"}, ("b", "a")) and Arrangement.read(found.values()) == found
    assert Arrangement.read({"hidden": "nonsense", "order": None}) == Arrangement.read({}) == Arrangement()
    assert Arrangement().hidden == HIDDEN_AT_FIRST


def test_a_moved_card_takes_the_place_of_another() -> None:
    one = Arrangement().move("abcd", "d", "b")
    assert one.sort("abcd") == list("adbc")
    assert one.move("abcd", "a", "c").sort("abcd") == list("dbca")
    assert one.move("ax", "x", "a").sort("abcdx") == list("xadbc"), "cards that this run lacks keep their places"


def test_every_metric_of_compared_runs_has_its_own_card() -> None:
    steps = ("step", "ts", "reward", "loss", "tokens_per_s", "lr", "step_time_s", "data_wait_s", "epoch")
    cards = compared_cards(steps, ("step", "ts", "val_loss", "perplexity"))
    assert [card.title for card in cards] == [
        *("Loss", "Validation loss", "Throughput", "Learning rate", "Step time", "Perplexity", "Reward"),
        "Waiting for data",
    ]
    assert all(card.column for card in cards)
    assert [card.column for card in cards if card.is_eval] == ["val_loss", "perplexity"]


def test_compared_scripts_count_samples() -> None:
    (card,) = compared_cards(("step", "samples_per_s"), ())
    assert (card.title, card.unit) == ("Throughput", "samples per second, all devices")
    assert compared_cards(("step", "ts"), ()) == []


def test_heroes_of_compared_runs_come_first_under_their_names() -> None:
    heroes = (Hero("episode_return", "Return"), Hero("kl", "KL"))
    cards = compared_cards(("loss", "kl", "episode_return", "tokens_per_s"), (), heroes)
    assert [(card.title, card.unit) for card in cards[:3]] == [("Return", ""), ("KL", ""), ("Loss", "")]
