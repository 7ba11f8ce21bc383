"""What can be known to be wrong before a rank is started; needs no torch. See "check.py" in docs/recipes.md."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def check(options: Mapping[str, Any]) -> dict[str, Any]:
    """What is wrong with the recipe's own fields.

    Returns:
        `field`, `cause` and `next_step` where something is, or `missing`, packages; else `notes`, of which it has none.
    """
    if (refusal := width_refusal(options["n_embd"], options["n_head"])) is not None:
        return refusal
    if options["tokenizer"] == "bpe" and importlib.util.find_spec("tokenizers") is None:
        return {"missing": ["tokenizers"], "cause": "Tokens of the kind bpe"}
    return {"notes": []}


def width_refusal(n_embd: int, n_head: int) -> dict[str, str] | None:
    """Why so many heads cannot share the width; None when they can."""
    if n_embd % n_head == 0:
        return None
    return {
        "field": "n_embd",
        "cause": f"The width {n_embd} is no multiple of the {n_head} heads: each needs an even share of it.",
        "next_step": f"Choose the width {max(1, round(n_embd / n_head)) * n_head}, or other heads.",
    }


if __name__ == "__main__":
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps(check(settings["config"]["options"])))
