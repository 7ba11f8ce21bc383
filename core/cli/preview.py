"""`rankdeck preview`: a dataset as a recipe's model will see it, before anything is trained."""

from __future__ import annotations

import argparse
from typing import Any, Final

from core.cli.device_request import resolve_request
from core.cli.terminal import Terminal
from core.errors import ConfigError
from core.formatting import byte_size
from core.launch.command_line import request_from_arguments
from core.measure.data_preview import DOCUMENTS, preview_data

_MOST: Final = 100
_SHOWN_COLUMNS: Final = 12
_SHOWN_TOKENS: Final = 24


def preview(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Show the first documents and samples, the text column, bad rows, and the length of an epoch."""
    request = request_from_arguments(arguments)
    documents = DOCUMENTS if arguments.documents is None else arguments.documents
    if not 0 <= documents <= _MOST:
        raise ConfigError("documents", f"Cannot show {documents} documents.", f"Give a number from 0 to {_MOST}.")
    if request.recipe.self_contained:
        raise ConfigError(
            "recipe", f"{request.recipe.title} reads its own data.", "Choose a recipe that trains on text."
        )
    run, _ = resolve_request(request)[0].fitted()
    found = preview_data(
        run,
        documents=documents,
        read_all=arguments.all,
        limit_s=None if arguments.all else 600.0,
        progress=terminal.progress,
    )
    terminal.end_progress()
    if arguments.json:
        terminal.json(found)
        return 0
    for line in _lines(found):
        terminal.say(line)
    return 0


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['dataset']}: {found['files']:,} files, {byte_size(found['size_bytes'])}"]
    lines.append(f"Read as: {found['form']}")
    lines += [f"  {remark}" for remark in found["remarks"]]
    lines += _column_lines(found)
    counts, epoch = found["counts"], found["epoch"]
    about = "" if found["exact"] else "about "
    part = "" if found["exact"] else f" in the first {byte_size(found['looked_at_bytes'])}"
    bad = counts["words"] or "No bad rows"
    lines.append(f"Rows{part}: {counts['rows']:,}, {counts['documents']:,} documents. {bad}.")
    lines += [f"  {example}" for example in counts["examples"]]
    tokenizer = found["tokenizer"]
    kind = f"{tokenizer['kind']}, vocabulary {tokenizer['vocab_size']:,}"
    lines.append(f"Tokens: {about}{found['tokens']:,} ({kind})")
    if not tokenizer["from_recipe"]:
        lines.append("  The recipe doesn't report its tokens, so bytes are shown.")
    if found["tokenised"]:
        lines.append("  They are cached, so runs start immediately.")
    lines.append(
        f"Samples: {about}{found['samples']:,} of {found['seq_len']} tokens for training, "
        f"{found['val_samples']:,} for validation"
    )
    lines.append(
        f"An epoch: {about}{epoch['blocks']:,} blocks, {epoch['chunks']:,} chunks, {epoch['steps']:,} steps "
        f"({epoch['mode']} on {len(epoch['devices'])}, global batch {epoch['global_batch']})"
    )
    if not found["exact"]:
        lines.append("  rankdeck preview --all counts the whole dataset and caches the tokens for training.")
    lines += _start_lines(found)
    return lines


def _column_lines(found: dict[str, Any]) -> list[str]:
    if not found["columns"] or found["text_column"] is None:
        return []
    how = "guessed; to choose another: --set text_column=NAME" if found["text_column_guessed"] else "as requested"
    shape = "" if found["shape"] == "texts" else f" of {found['shape']}"
    lines = [f"Text column: {found['text_column']}{shape} ({how})"]
    for column in found["columns"][:_SHOWN_COLUMNS]:
        mark = "*" if column["name"] == found["text_column"] else " "
        kind = f"text, {column['mean_chars']:,.0f} characters" if column["text_share"] >= 0.5 else "not text"
        lines.append(f"  {mark} {column['name']}: {kind}" + (f": {column['example']}" if column["example"] else ""))
    return lines


def _start_lines(found: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for number, document in enumerate(found["first_documents"], 1):
        split = f", split over {document['samples']:,} samples" if document["split"] else ""
        lines.append(f"Document {number}: {document['bytes']:,} bytes, {document['tokens']:,} tokens{split}")
        lines.append(f"  {_one_line(document['text'])}")
    for sample in found["first_samples"]:
        lines.append(
            f"Sample {sample['number']}: {sample['length']} tokens: {' '.join(map(str, sample['ids'][:12]))} …"
        )
        lines.append(f"  {'|'.join(_one_line(piece) for piece in sample['pieces'][:_SHOWN_TOKENS])} …")
    return lines


def _one_line(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")[:120]
