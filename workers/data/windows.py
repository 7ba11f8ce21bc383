"""Windows: samples that are neighbouring runs of tokens, and how many of them a number of tokens makes."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import DatasetError


@dataclass(frozen=True, slots=True)
class Windows:
    """Tokens cut into windows of `seq_len`, each predicted from those before; the last ones are held out.

    Attributes:
        train_tokens: Tokens from the start that are trained on.
        samples: Windows in them.
        val_samples: Windows in the rest.
    """

    train_tokens: int
    samples: int
    val_samples: int


def cut_windows(tokens: int, seq_len: int, val_fraction: float) -> Windows:
    """Cuts tokens into windows.

    Args:
        tokens: All there are.
        seq_len: Tokens that a sample predicts; a window has one more.
        val_fraction: Share of the tokens, from their end, that is held out; at least one window.

    Raises:
        DatasetError: There are not enough for one window to train on and one to measure with.
    """
    train_tokens = tokens - max(int(tokens * val_fraction), seq_len + 1)
    if train_tokens < seq_len + 1:
        raise DatasetError(
            f"The text has {tokens} tokens; with a sequence length of {seq_len} at least {2 * seq_len + 2} are needed.",
            "Choose more text or a shorter sequence length.",
            title="The dataset is too small",
        )
    return Windows(train_tokens, (train_tokens - 1) // seq_len, (tokens - train_tokens - 1) // seq_len)
