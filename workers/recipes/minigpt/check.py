"""Checks of settings before a rank starts; they need no torch. See "check.py" in docs/recipes.md."""

from __future__ import annotations

from rankdeck.recipe import Request, check_heads, check_packages, read_options
from workers.recipes.minigpt.options import Options


def check(request: Request) -> list[str]:
    """Refuse what cannot be trained; has no notes."""
    o = read_options(request, Options)
    check_heads(o.n_embd, o.n_head)
    if o.tokenizer == "bpe":
        check_packages(["tokenizers"], "BPE tokens")
    return []
