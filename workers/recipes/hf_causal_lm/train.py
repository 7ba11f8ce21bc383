"""Hugging Face causal language models: from scratch, fine-tuned whole, or with LoRA, in every mode.

    rankdeck train --recipe hf_causal_lm --model path/to/model --dataset-file my_texts/ --lr 2e-5

This recipe's own are the sources of model and tokenizer, samples in which documents stay apart, and the folder that
`from_pretrained` opens afterwards. The rest is the trainer's.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import torch
from torch import nn

from rankdeck.recipe import (
    TOKENIZER,
    ConfigError,
    Export,
    Optimization,
    PreparedData,
    Request,
    Run,
    Task,
    TextSource,
    TokenData,
    TokenizerSpec,
    Tokens,
    opening_text,
    read_options,
    spread,
    tokens_in,
)
from workers.recipes.hf_causal_lm.check import check_model, tokenizer_path
from workers.recipes.hf_causal_lm.exporting import export_folder
from workers.recipes.hf_causal_lm.folder import CONFIG, check_tokenizer_fits, largest_token, open_folder
from workers.recipes.hf_causal_lm.model import (
    be_quiet,
    checkpointed,
    empty_model,
    made_from,
    scratch_config,
    trained_model,
    with_lora,
    write_config,
    writer,
)
from workers.recipes.hf_causal_lm.options import Options
from workers.recipes.hf_causal_lm.samples import TRIED_TOKENS, Packing, keeps_documents_apart, loss
from workers.recipes.hf_causal_lm.source import ask_size, find_source, local_folder
from workers.recipes.hf_causal_lm.tokens import make_tokens

# In the run's data folder: the model's `config.json` and tokenizer, for the ranks and for export.
KEPT: Final = "model"
_DATA_DEPENDS_ON: Final = (
    "tokenizer_file", "vocab_size", "val_fraction", "n_layer", "n_head", "n_kv_head", "n_embd", "dropout",
)  # fmt: skip


def main(run: Run) -> None:
    """Data, model, loss, training: on every rank."""
    o, config = read_options(run, Options), run.config
    if not run.has_weights:
        with _resumable(run.data_dir / KEPT):
            check_model(config.model or "", config.seq_len, o, shards_weights=run.forward_is_collective)
    be_quiet(o.allow_download)
    depends_on = {name: getattr(o, name) for name in _DATA_DEPENDS_ON} | {"model": config.model}
    info = run.prepare(lambda folder: prepare(run, o, folder), depends_on=depends_on)
    tokens = tokens_in(run.data_dir / KEPT)
    model = make_model(run, o)

    apart = o.documents == "apart"
    ends = run.open_ends() if apart else None
    packing = Packing(run.open_tokens(), config.seq_len, ends, len(tokens.opening))
    encoder = tokens.spec.open()
    marks = {tokens.end, *tokens.opening}
    held_out = [token for token in packing.tokens[info["train_tokens"] :][:64].tolist() if token not in marks]
    begin = o.sample_prompt or opening_text(held_out, encoder.decode)
    prompt = tokens.prompt(encoder, begin)

    def sample(model: nn.Module) -> str:
        next_logits = writer(model, config.seq_len, encoder.vocab_size, keeps_past=not run.forward_is_collective)
        written = run.sample_tokens(next_logits, prompt, o.sample_tokens, o.sample_temperature)
        return encoder.decode(written[: written.index(tokens.end)] if tokens.end in written else written)

    run.fit(
        Task(
            model=model,
            batch=lambda indices: packing.batch(spread(indices, run.samples)),
            val_batch=lambda indices: packing.batch(indices, info["train_tokens"]),
            loss=loss,
            sample=sample if o.sample_tokens else None,
            sample_prompt=begin,
            optimization=Optimization(
                options={"betas": (o.beta1, o.beta2)},
                weight_decay=o.weight_decay,
                warmup_steps=o.warmup_steps,
                min_lr_ratio=o.min_lr_ratio,
                clip_norm=o.clip_norm,
            ),
            tokens_per_sample=config.seq_len,
        )
    )


def prepare(run: Run, options: Options, folder: Path) -> PreparedData:
    """Model folder, tokenizer and tokens; a validation split or the last `val_fraction` is held out. Rank 0, once."""
    kept, seq_len = folder / KEPT, run.config.seq_len
    if run.has_weights and (kept / CONFIG).is_file() and (kept / TOKENIZER).is_file():
        return _cut(run, options, run.tokenize(tokens_in(kept).spec, validation_split=True), "")
    shutil.rmtree(kept, ignore_errors=True)
    with _resumable(folder if run.has_weights else None):
        model, tokens = find_model_and_tokens(run, folder, run.say)
    if model is not None:
        check_model(str(model), seq_len, options)  # it may have come just now
        check_tokenizer_fits(kept / TOKENIZER, open_folder(model))
        (kept / CONFIG).write_bytes((model / CONFIG).read_bytes())
    data = run.tokenize(tokens.spec, validation_split=True)
    if model is None:
        architecture = find_source(run.config.model or "").name
        write_config(scratch_config(architecture, options, seq_len, data.vocab_size, tokens.end), kept)
    return _cut(run, options, data, "" if model is None else str(model))


@contextmanager
def _resumable(of_earlier_attempt: Path | None) -> Iterator[None]:
    """Reword the loss of a model for a run that was started before: another one cannot be chosen for it."""
    try:
        yield
    except ConfigError as error:
        if error.field != "model" or of_earlier_attempt is None or not of_earlier_attempt.exists():
            raise
        raise ConfigError(
            "model",
            f"{error.cause} The run needs it to continue.",
            "Put the model back in its place and resume again, or start a new run.",
            title="The model of this run is missing",
        ) from error


def _cut(run: Run, options: Options, data: TokenData, model: str) -> PreparedData:
    cut = data.cut(run.config.seq_len, options.val_fraction)
    names = {"model_folder": model, "model_name": run.config.model}
    return PreparedData(cut.samples, cut.val_samples, {**data.info, **names, "train_tokens": cut.train_tokens})


def find_model_and_tokens(data: TextSource, folder: Path, say: Callable[[str], None]) -> tuple[Path | None, Tokens]:
    """The model's folder, None for one from scratch; its tokenizer, whose files are put below `folder`."""
    source = find_source(data.config.model or "")
    allowed = read_options(data, Options).allow_download
    model = None if source.kind == "scratch" else local_folder(source, allowed, say)
    return model, make_tokens(data, folder / KEPT, model)


def make_tokenizer(data: TextSource, folder: Path) -> TokenizerSpec:
    """The tokenizer for `rankdeck preview`, which tells a model's size and does not fetch it."""
    allowed = read_options(data, Options).allow_download
    be_quiet(allowed)
    source = find_source(data.config.model or "")
    if source.kind == "hub" and source.folder is None and allowed:
        raise ConfigError(
            "model",
            f"The model {source.name} is not on this machine. A run would download {ask_size(source)}.",
            "Start the run; once the model is here, its tokens can be shown.",
            title="The model would have to be downloaded",
        )
    return find_model_and_tokens(data, folder, lambda _: None)[1].spec


def make_model(run: Run, options: Options) -> nn.Module:
    """The model to train, alike on all ranks."""
    # A checkpoint brings the weights: the model itself may have moved since.
    folder = "" if run.has_weights else run.info["model_folder"]
    place = Path(folder) if folder else run.data_dir / KEPT
    has_weights = folder and torch.get_default_device().type != "meta"  # there an estimate asks for sizes only
    model = trained_model(place) if has_weights else empty_model(place)
    can_be_tried = run.rank == 0 and run.config.seq_len >= TRIED_TOKENS
    if options.documents == "apart" and can_be_tried and not keeps_documents_apart(model):
        raise ConfigError(
            "documents",
            f"In {type(model).__name__} a document would see earlier ones in the same sample: the model ignores "
            "positions that start again.",
            "Join the documents.",
            option="--set documents=joined",
        )
    if options.grad_checkpointing:
        checkpointed(model)
    return with_lora(model, options, str(run.config.model)) if options.training == "lora" else model


def build_model(request: Request) -> nn.Module | None:
    """The model of these settings, to count its parameters; None if it has yet to be downloaded."""
    o, config = read_options(request, Options), request.config
    be_quiet(allow_download=False)
    source = find_source(config.model or "")
    if source.kind == "scratch":
        named = o.tokenizer_file
        vocab_size = largest_token(tokenizer_path(named)) + 1 if named else o.vocab_size
        return made_from(scratch_config(source.name, o, config.seq_len, vocab_size, None))
    if source.folder is None:
        return None
    model = empty_model(source.folder)
    return with_lora(model, o, source.name) if o.training == "lora" else model


def export(given: Export) -> None:
    export_folder(given, given.data_dir / KEPT)
