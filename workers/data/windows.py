"""Windows: samples that are neighbouring runs of tokens."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from core.errors import DatasetError

OPENING_TOKENS: Final = 64
OPENING_LETTERS: Final = 40


@dataclass(frozen=True, slots=True)
class Windows:
    """Tokens cut into windows; the last ones are held out.

    Attributes:
        train_tokens: Tokens from the start that are trained on.
        samples: Windows in them.
        val_samples: Windows in the rest.
    """

    train_tokens: int
    samples: int
    val_samples: int


def cut_windows(tokens: int, seq_len: int, val_fraction: float, train_tokens: int | None = None) -> Windows:
    """Cut tokens into windows; raise `DatasetError` where they do not make one to train on and one to measure with.

    Args:
        tokens: All tokens.
        seq_len: Tokens that a sample predicts; a window has one more.
        val_fraction: Share of the tokens, from their end, that is held out; at least one window.
        train_tokens: The start of a validation split, if there is one; then no share is taken.
    """
    if train_tokens is not None:
        _check_splits(train_tokens, tokens - train_tokens, seq_len)
    elif (train_tokens := tokens - max(int(tokens * val_fraction), seq_len + 1)) < seq_len + 1:
        raise DatasetError(
            f"The text has {tokens} tokens; with a sequence length of {seq_len} at least {2 * seq_len + 2} are needed.",
            "Choose more text or a shorter sequence length.",
            title="The dataset is too small",
        )
    return Windows(train_tokens, (train_tokens - 1) // seq_len, (tokens - train_tokens - 1) // seq_len)


def opening_text(held_out: Iterable[int], decode: Callable[[Sequence[int]], str]) -> str:
    """The first whole words of the held-out text, as a prompt like what the model learns.

    One line of at most `OPENING_LETTERS` where it has spaces; a line break where there are no words.
    """
    first = [int(token) for token in itertools.islice(held_out, OPENING_TOKENS)]
    text = decode(first).replace("\N{REPLACEMENT CHARACTER}", "")
    _, space, rest = text.lstrip().partition(" ")  # the cut may go through the first word
    lines = (rest if space and rest.strip() else text).strip().splitlines()
    line = lines[0].strip() if lines else ""
    if len(line) > OPENING_LETTERS:
        line = line[:OPENING_LETTERS].rpartition(" ")[0] or line[:OPENING_LETTERS]
    return line or "\n"


def _check_splits(training: int, validation: int, seq_len: int) -> None:
    for name, tokens in (("training", training), ("validation", validation)):
        if tokens < seq_len + 1:
            raise DatasetError(
                f"The {name} split has {tokens} tokens; with a sequence length of {seq_len} at least {seq_len + 1} are "
                "needed.",
                "Choose a shorter sequence length, or train on every file.",
                title="The dataset is too small",
                option="--seq-len TOKENS, or --data-files all",
            )
