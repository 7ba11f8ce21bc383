"""Checks of settings before a rank starts; they need no torch. See "check.py" in docs/recipes.md."""

from __future__ import annotations

from rankdeck.recipe import Request, check_heads, check_packages, read_options
from workers.recipes.actv1.options import Options


def check(request: Request) -> list[str]:
    """Refuse what cannot be trained; give notes for the user."""
    o = read_options(request, Options)
    check_heads(o.n_embd, o.n_head, even=True)
    if o.tokenizer == "bpe":
        check_packages(["tokenizers"], "BPE tokens")
    cycles = o.h_cycles * o.l_cycles
    if o.halt_max_steps == 1 and cycles > 1:
        return [
            f"halt_max_steps is 1, and h_cycles × l_cycles = {cycles}: a plain model's cost needs both cycles at 1."
        ]
    return []
