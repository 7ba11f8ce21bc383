"""Checks of settings before a rank starts; they need no torch. See "check.py" in docs/recipes.md."""

from __future__ import annotations

from rankdeck.recipe import ConfigError, Request, check_packages, read_options
from workers.recipes.minigpt.options import Options


def check(request: Request) -> list[str]:
    """Refuses what cannot be trained; has no notes.

    Raises:
        ConfigError: The heads cannot share the width.
        MissingPackageError: BPE tokens need a package.
    """
    o = read_options(request, Options)
    check_width(o.n_embd, o.n_head)
    if o.tokenizer == "bpe":
        check_packages(["tokenizers"], "BPE tokens")
    return []


def check_width(n_embd: int, n_head: int) -> None:
    """Refuses heads that cannot share the width.

    Raises:
        ConfigError: Names a width that fits.
    """
    if n_embd % n_head:
        raise ConfigError(
            "n_embd",
            f"The width {n_embd} is not divisible by the {n_head} heads.",
            f"Choose the width {max(1, round(n_embd / n_head)) * n_head}, or another number of heads.",
        )
