"""What can be known to be wrong before a rank is started; needs no torch. See "check.py" in docs/recipes.md."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def check(
    options: Mapping[str, Any], model: str = "", *, strict: bool = False, resumes: bool = False
) -> dict[str, Any]:
    """What is wrong with the recipe's own fields, or with the model.

    Args:
        options: The recipe's own fields.
        model: Whose tokenizer is to be used; empty: none.
        strict: It is refused to train without that.
        resumes: The run has its tokens already.

    Returns:
        `field`, `cause` and `next_step` where something is; else `notes`, what a person should know.
    """
    if (refusal := width_refusal(options["n_embd"], options["n_head"])) is not None:
        return refusal
    if options["tokenizer"] == "bpe" and importlib.util.find_spec("tokenizers") is None:
        return {"missing": ["tokenizers"], "cause": "Tokens of the kind bpe"}
    answer = check_model(options, model, strict) if model and not resumes else {"notes": []}
    if "notes" not in answer:
        return answer
    notes = answer["notes"]
    cycles = options["h_cycles"] * options["l_cycles"]
    if options["halt_max_steps"] == 1 and cycles > 1:
        notes.append(
            f"halt_max_steps is 1, and h_cycles × l_cycles = {cycles}: a plain model's cost needs both cycles at 1."
        )
    return {"notes": notes}


def check_model(options: Mapping[str, Any], model: str, strict: bool) -> dict[str, Any]:
    """Whether the tokens can be those of the model; as `check`."""
    # Imported where it is needed: NumPy comes along, a tenth of a second that most runs can do without.
    from workers.recipe_text import TOKENIZER, TokenizerError, tokens_in
    from workers.recipes.actv1.tokens import find_source, is_refused

    instead = "a BPE learned from the text" if options["tokenizer"] == "bpe" else "bytes"
    try:
        folder = find_source(model)
        facts = [f"{tokens_in(folder).spec.open().vocab_size:,} tokens"] if (folder / TOKENIZER).is_file() else []
    except TokenizerError as error:
        if options["allow_download"] and error.downloadable:
            return {"notes": [f"The tokenizer of {model} is not on this machine and will be downloaded."]}
        if not is_refused(error, strict=strict, allow_download=False):
            return {"notes": [f"{error.cause} The run trains on {instead} instead. {error.next_step}"]}
        if error.package:
            return {"missing": [error.package], "cause": f"The tokenizer of {model}"}
        step = error.next_step if error.misnamed else f"{error.next_step} Without strict the run trains on {instead}."
        return {"field": "model", "title": error.title, "cause": error.cause, "next_step": step}
    facts += [] if str(folder) == model else [str(folder)]
    about = f" ({', '.join(facts)})" if facts else ""
    note = f"ACT-v1 takes only the tokenizer of {model}{about}; its weights are trained from scratch."
    if options["tokenizer"] == "bpe":
        note += " The BPE that was asked for is not learned."
    return {"notes": [note]}


def width_refusal(n_embd: int, n_head: int) -> dict[str, str] | None:
    """Why so many heads cannot share the width; None when they can."""
    if n_embd % (2 * n_head) == 0:
        return None
    fitting = max(1, round(n_embd / (2 * n_head))) * 2 * n_head
    return {
        "field": "n_embd",
        "cause": f"The width {n_embd} is no multiple of {2 * n_head}: each of the {n_head} heads needs an even share.",
        "next_step": f"Choose the width {fitting}, or other heads.",
    }


if __name__ == "__main__":
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    config, again = settings["config"], settings.get("resumes", False)
    print(json.dumps(check(config["options"], config.get("model") or "", strict=config["strict"], resumes=again)))
