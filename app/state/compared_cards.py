"""Chart cards of a comparison: one for each metric that any of the runs reports."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from app.state.chart_cards import EVAL_PREFIX, LOSS, MORE_TITLES, STEP_TIME, THROUGHPUT, Card, cards_for
from core.recipes.heroes import Hero

SAMPLES: Final = "samples"
VAL_LOSS: Final = "val_loss"
# Columns that a run's own page draws in other cards.
MORE: Final = {
    "device_mem_bytes": ("Memory", "GiB, mean over devices"),
    "data_wait_s": ("Waiting for data", ""),
    "sync_wait_s": ("Waiting for other devices", ""),
}


def compared_cards(steps: Collection[str], evals: Collection[str], heroes: Sequence[Hero] = ()) -> list[Card]:
    """The cards of runs that reported these columns, the ones that matter most first. Each draws one column.

    Args:
        steps: Columns of their ranks.
        evals: Columns of their evaluations.
        heroes: Of the recipe that they all train: their cards come first, under their names.
    """
    is_likelihood = not heroes or any(hero.metric == "loss" for hero in heroes)
    nats = "nats per token" if "tokens_per_s" in steps and is_likelihood else ""
    cards: list[Card] = []
    if "loss" in steps:
        cards.append(Card(LOSS, "Loss", nats, "loss"))
    if VAL_LOSS in evals:
        cards.append(Card(VAL_LOSS, "Validation loss", nats, VAL_LOSS, is_eval=True))
    if "tokens_per_s" in steps:
        cards.append(Card(THROUGHPUT, "Throughput", "tokens per second, all devices", "tokens_per_s"))
    if "samples_per_s" in steps:
        title = "Samples" if "tokens_per_s" in steps else "Throughput"
        cards.append(Card(SAMPLES, title, "samples per second, all devices", "samples_per_s"))
    others = [card for card in cards_for(steps, evals, heroes) if card.column]
    cards += [card for card in others if card.column in MORE_TITLES]
    if "step_time_s" in steps:
        cards.append(Card(STEP_TIME, "Step time", "mean over devices", "step_time_s"))
    cards += [card for card in others if card.column not in MORE_TITLES and card.key != EVAL_PREFIX + VAL_LOSS]
    cards += [Card(name, title, unit, name) for name, (title, unit) in MORE.items() if name in steps]
    places = {hero.metric: place for place, hero in enumerate(heroes)}
    return sorted(cards, key=lambda card: places.get(card.column, len(places)))
