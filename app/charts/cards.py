"""Chart cards: the cards of a run's metrics, and how a person arranged them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from core.metrics.metric import LOSS, METRICS, STEP_TIME, THROUGHPUT, has_own_card, metric, sort_key
from core.recipes.heroes import Hero

# Keys of the cards of devices, which stand last, begin so.
DEVICE_PREFIX: Final = "device/"
# Those that a person has to choose first: more charts would leave each less room.
HIDDEN_AT_FIRST: Final = frozenset((f"{DEVICE_PREFIX}temperature", f"{DEVICE_PREFIX}power"))
VAL_LOSS: Final = "val_loss"
EVAL_PREFIX: Final = "eval/"
EVALUATED: Final = " (evaluation)"


@dataclass(frozen=True, slots=True)
class Card:
    """A card of charts.

    Attributes:
        key: Names it in the settings.
        unit: Of its value axis as text; empty where it has none or none is known.
        steps: The metrics of ranks that it draws: of several the first that the run has.
        evals: The metric of evaluations that it draws; empty for none.
        draws_several: It has a title of its own, whatever a recipe calls one of its metrics.
    """

    key: str
    title: str
    unit: str = ""
    steps: tuple[str, ...] = ()
    evals: str = ""
    draws_several: bool = False

    @property
    def column(self) -> str:
        return self.steps[0] if self.steps else self.evals

    @property
    def is_eval(self) -> bool:
        return not self.steps


# Cards that draw several metrics; nearly every run has them.
LOSS_CARD: Final = Card(LOSS, "Loss", "nats per token", ("loss",), VAL_LOSS, draws_several=True)
THROUGHPUT_CARD: Final = Card(
    THROUGHPUT, "Throughput", "tokens per second", ("tokens_per_s", "samples_per_s"), draws_several=True
)
STEP_TIME_CARD: Final = Card(
    STEP_TIME, "Step time", "mean of devices", ("step_time_s", "data_wait_s", "sync_wait_s"), draws_several=True
)


def cards_for(steps: Collection[str], evals: Collection[str], heroes: Sequence[Hero] = ()) -> list[Card]:
    """Return the cards of a run that reported these columns, those of its recipe's heroes first, under their names."""
    cards = {card.key: card for card in _usual_cards(steps, evals)}
    named: dict[str, Card] = {}
    for hero in heroes:
        for key in (metric(hero.metric).card or hero.metric, EVAL_PREFIX + hero.metric):
            if key in cards:
                named.setdefault(key, _named_by(hero, cards[key], EVALUATED if hero.metric in cards else ""))
    if heroes and LOSS in cards and LOSS not in named:
        # Of a policy it is not a likelihood of tokens.
        cards[LOSS] = replace(cards[LOSS], unit="")
    return [*named.values(), *(card for key, card in cards.items() if key not in named)]


def _named_by(hero: Hero, card: Card, suffix: str) -> Card:
    if card.draws_several:
        return card
    return replace(card, title=hero.label + (suffix if card.is_eval else ""), unit=hero.unit or card.unit)


def _usual_cards(steps: Collection[str], evals: Collection[str]) -> list[Card]:
    cards: list[Card] = []
    if "loss" in steps or VAL_LOSS in evals:
        cards.append(LOSS_CARD if "tokens_per_s" in steps else replace(LOSS_CARD, unit=""))
    if "tokens_per_s" in steps:
        cards.append(THROUGHPUT_CARD)
    elif "samples_per_s" in steps:
        cards.append(replace(THROUGHPUT_CARD, unit=metric("samples_per_s").unit))
    if "step_time_s" in steps:
        cards.append(STEP_TIME_CARD)
    others, measured = ({name for name in names if has_own_card(name)} for names in (steps, evals))
    for name in sorted(others | measured, key=sort_key):
        title, unit = metric(name).title, metric(name).unit
        if name in others:
            cards.append(Card(name, title, unit, (name,)))
        if name in measured:
            cards.append(Card(EVAL_PREFIX + name, title + EVALUATED * (name in others), unit, evals=name))
    return cards


def compared_cards(steps: Collection[str], evals: Collection[str], heroes: Sequence[Hero] = ()) -> list[Card]:
    """Return the cards of several runs that reported these columns; each draws one metric."""
    is_likelihood = not heroes or any(hero.metric == LOSS for hero in heroes)
    nats = LOSS_CARD.unit if "tokens_per_s" in steps and is_likelihood else ""
    cards = [card for card in cards_for(steps, evals, heroes) if not card.draws_several]
    for one in METRICS:
        if not has_own_card(one.name) and one.name in (evals if one.is_evaluated else steps):
            shared = "all devices" if one.is_rate else "mean over devices" if one.floor is not None else nats
            unit = ", ".join(part for part in (one.unit, shared) if part)
            title = "Samples" if one.name == "samples_per_s" and "tokens_per_s" in steps else one.title
            step_names = () if one.is_evaluated else (one.name,)
            cards.append(Card(one.name, title, unit, step_names, one.name if one.is_evaluated else ""))
    first = {hero.metric: place for place, hero in enumerate(heroes)}
    return sorted(cards, key=lambda card: (first.get(card.column, len(first)), *sort_key(card.column)))


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Cards that a person hid, and the order of those that were moved; others follow them."""

    hidden: frozenset[str] = HIDDEN_AT_FIRST
    order: tuple[str, ...] = ()

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Arrangement:
        """Read what `values` gave; anything else in it is ignored."""
        hidden, order = values.get("hidden"), values.get("order")
        return cls(
            frozenset(key for key in hidden if isinstance(key, str)) if isinstance(hidden, list) else HIDDEN_AT_FIRST,
            tuple(key for key in order if isinstance(key, str)) if isinstance(order, list) else (),
        )

    def values(self) -> dict[str, Any]:
        return {"hidden": sorted(self.hidden), "order": list(self.order)}

    def sort(self, keys: Sequence[str]) -> list[str]:
        places = {key: place for place, key in enumerate(self.order)}
        return sorted(keys, key=lambda key: places.get(key, len(places)))

    def move(self, keys: Sequence[str], key: str, target: str) -> Arrangement:
        """Move a card of `keys` to the place of another, which makes room."""
        order = self.sort(keys)
        place = order.index(target)
        order.remove(key)
        order.insert(place, key)
        return replace(self, order=(*order, *(known for known in self.order if known not in order)))
