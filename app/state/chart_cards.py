"""Chart cards: those that a run's metrics make, and the order a person gave them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from core.recipes.heroes import Hero

# The key of the card of devices, which stands last.
DEVICES: Final = "devices"
LOSS: Final = "loss"
THROUGHPUT: Final = "throughput"
STEP_TIME: Final = "step_time"
MORE_TITLES: Final = {
    "lr": "Learning rate", "grad_norm": "Gradient norm", "loss_scale": "Loss scale", "micro_batch": "Micro-batch",
}  # fmt: skip
# Columns that are drawn elsewhere, or count where the run is; any other has a card of its own.
IN_OTHER_CARDS: Final = frozenset((
    "step", "ts", "attempt", "loss", "val_loss", "tokens_per_s", "samples_per_s", "step_time_s", "data_wait_s",
    "sync_wait_s", "sync_bytes", "sync_rounds", "device_mem_bytes", "tokens_seen", "epoch", "block_id", "chunk_id",
))  # fmt: skip
EVAL_PREFIX: Final = "eval/"
# The cards of metrics that are drawn in a card with others.
_HERO_CARDS: Final[Mapping[str, tuple[str, ...]]] = {
    "loss": (LOSS,), "val_loss": (LOSS,), "tokens_per_s": (THROUGHPUT,), "samples_per_s": (THROUGHPUT,),
}  # fmt: skip
SHORT_FORMS: Final = frozenset((
    "auc", "bleu", "cpu", "f1", "fps", "gpu", "iou", "kl", "lr", "mae", "mse", "rmse", "vram",
))  # fmt: skip
# Columns that a schedule sets: smoothing would hide their jumps.
AS_REPORTED: Final = frozenset(("lr", "loss_scale", "micro_batch"))


@dataclass(frozen=True, slots=True)
class Card:
    """A card of charts.

    Attributes:
        key: Names it in the settings.
        title: As a heading.
        unit: Of its value axis as text; empty where it has none or none is known.
        column: The metric; empty for the cards that draw several.
        is_eval: It was measured by evaluations.
    """

    key: str
    title: str
    unit: str = ""
    column: str = ""
    is_eval: bool = False


def cards_for(steps: Collection[str], evals: Collection[str], heroes: Sequence[Hero] = ()) -> list[Card]:
    """The cards of a run that reported these columns, the ones that matter most first.

    Args:
        steps: Columns of its ranks.
        evals: Columns of its evaluations.
        heroes: Of its recipe: their cards come first, under their names. Empty: the usual order.
    """
    cards = {card.key: card for card in _usual_cards(steps, evals)}
    named: dict[str, Card] = {}
    for hero in heroes:
        for key in _HERO_CARDS.get(hero.metric, (hero.metric, EVAL_PREFIX + hero.metric)):
            if key in cards:
                is_second = cards[key].is_eval and hero.metric in cards
                named.setdefault(key, _named_by(hero, cards[key], is_second=is_second))
    if heroes and LOSS in cards and LOSS not in named:
        cards[LOSS] = replace(cards[LOSS], unit="")  # of a policy it is not a likelihood of tokens
    return [*named.values(), *(card for key, card in cards.items() if key not in named)]


def _named_by(hero: Hero, card: Card, *, is_second: bool) -> Card:
    if not card.column:
        return card
    return replace(card, title=hero.label + (" (evaluation)" if is_second else ""), unit=hero.unit or card.unit)


def _usual_cards(steps: Collection[str], evals: Collection[str]) -> list[Card]:
    counts_tokens = "tokens_per_s" in steps
    cards: list[Card] = []
    if "loss" in steps or "val_loss" in evals:
        cards.append(Card(LOSS, "Loss", "nats per token" if counts_tokens else ""))
    if counts_tokens or "samples_per_s" in steps:
        cards.append(Card(THROUGHPUT, "Throughput", f"{'tokens' if counts_tokens else 'samples'} per second"))
    if "step_time_s" in steps:
        cards.append(Card(STEP_TIME, "Step time", "mean of devices"))
    known = [name for name in MORE_TITLES if name in steps]
    others = set(steps) - IN_OTHER_CARDS - set(MORE_TITLES)
    measured = set(evals) - IN_OTHER_CARDS
    cards += [Card(name, MORE_TITLES[name], column=name) for name in known]
    for name in sorted(others | measured):
        if name in others:
            cards.append(Card(name, metric_title(name), column=name))
        if name in measured:
            title = metric_title(name) + (" (evaluation)" if name in others else "")
            cards.append(Card(EVAL_PREFIX + name, title, column=name, is_eval=True))
    return cards


def metric_title(name: str) -> str:
    """A column's name as a title: "val_accuracy" is "Val accuracy"."""
    parts = name.replace("_", " ").split()
    title = " ".join(part.upper() if part.lower() in SHORT_FORMS else part for part in parts)
    return title[:1].upper() + title[1:]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Order and hidden cards, as a person left them for one recipe.

    Attributes:
        order: Keys of cards that were arranged; others follow them.
        hidden: Keys of cards that are not shown.
    """

    order: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Arrangement:
        """What `values` gave; anything else in it is passed over."""
        order, hidden = (values.get(name) for name in ("order", "hidden"))
        return cls(
            tuple(key for key in order if isinstance(key, str)) if isinstance(order, list) else (),
            frozenset(key for key in hidden if isinstance(key, str)) if isinstance(hidden, list) else frozenset(),
        )

    def values(self) -> dict[str, Any]:
        return {"order": list(self.order), "hidden": sorted(self.hidden)}

    def sort(self, keys: Sequence[str]) -> list[str]:
        """All of these cards in their order, the hidden ones too."""
        places = {key: place for place, key in enumerate(self.order)}
        return sorted(keys, key=lambda key: places.get(key, len(places)))

    def shown(self, keys: Sequence[str]) -> list[str]:
        """Those of these cards that are shown, in their order."""
        return [key for key in self.sort(keys) if key not in self.hidden]

    def move(self, keys: Sequence[str], key: str, target: str) -> Arrangement:
        """A card takes the place of another, which makes room on the side that it came from.

        Args:
            keys: The run's cards.
            key: The one that is moved.
            target: The one whose place it takes.
        """
        order = self.sort(keys)
        if key == target or key not in order or target not in order:
            return self
        place = order.index(target)
        order.remove(key)
        order.insert(place, key)
        return replace(self, order=(*order, *(known for known in self.order if known not in order)))

    def hide(self, key: str, hidden: bool = True) -> Arrangement:
        """Hides a card, or shows it again."""
        return replace(self, hidden=self.hidden | {key} if hidden else self.hidden - {key})
