"""Checks of settings before a rank starts; they need no torch. See "check.py" in docs/recipes.md."""

from __future__ import annotations

from rankdeck.recipe import ConfigError, MissingPackageError, Request, check_heads, check_packages, read_options
from workers.recipes.actv1.options import Options


def check(request: Request) -> list[str]:
    """Refuses what cannot be trained; gives notes for the user.

    Raises:
        ConfigError: The first invalid setting.
        MissingPackageError: The chosen tokens need a package.
    """
    o, config = read_options(request, Options), request.config
    check_heads(o.n_embd, o.n_head, even=True)
    if o.tokenizer == "bpe":
        check_packages(["tokenizers"], "BPE tokens")
    notes = check_model(o, config.model, config.strict) if config.model and not request.resumes else []
    cycles = o.h_cycles * o.l_cycles
    if o.halt_max_steps == 1 and cycles > 1:
        notes.append(
            f"halt_max_steps is 1, and h_cycles × l_cycles = {cycles}: a plain model's cost needs both cycles at 1."
        )
    return notes


def check_model(options: Options, model: str, strict: bool) -> list[str]:
    """Whether the tokens can be those of the model; as `check`."""
    # Imported where it is needed: NumPy comes along, a tenth of a second that most runs can do without.
    from rankdeck.recipe import TOKENIZER, TokenizerError, tokens_in
    from workers.recipes.actv1.tokens import find_source, is_refused

    instead = "a BPE learned from the text" if options.tokenizer == "bpe" else "bytes"
    try:
        folder = find_source(model)
        facts = [f"{tokens_in(folder).spec.open().vocab_size:,} tokens"] if (folder / TOKENIZER).is_file() else []
    except TokenizerError as error:
        if options.allow_download and error.downloadable:
            return [f"The tokenizer of {model} is not on this machine and will be downloaded."]
        if not is_refused(error, strict=strict, allow_download=False):
            return [f"{error.cause} The run trains on {instead} instead. {error.next_step}"]
        if error.package:
            raise MissingPackageError([error.package], f"The tokenizer of {model}") from None
        step = error.next_step if error.misnamed else f"{error.next_step} Without strict the run trains on {instead}."
        raise ConfigError("model", error.cause, step, title=error.title) from None
    facts += [] if str(folder) == model else [str(folder)]
    about = f" ({', '.join(facts)})" if facts else ""
    note = f"ACT-v1 uses only the tokenizer of {model}{about}; its weights are trained from scratch."
    if options.tokenizer == "bpe":
        note += " The requested BPE is not learned."
    return [note]
