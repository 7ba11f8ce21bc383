"""`rankdeck preview`: a dataset as a recipe's model will see it, before anything is trained."""

from __future__ import annotations

import argparse
from typing import Any, Final

from core.cli.device_request import resolve_request
from core.cli.terminal import Terminal
from core.errors import ConfigError
from core.launch.command_line import request_from_arguments
from core.measure.data_preview import DOCUMENTS, preview_data
from core.measure.preview_text import document_title, fact_lines, sample_title, visible

_MOST: Final = 100
_SHOWN_COLUMNS: Final = 12
_SHOWN_TOKENS: Final = 24
_SHOWN_IDS: Final = 12
_SHOWN_LETTERS: Final = 120


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
    _show(found, terminal)
    return 0


def _show(found: dict[str, Any], terminal: Terminal) -> None:
    terminal.say(found["dataset"])
    for name, text in fact_lines(found):
        for number, line in enumerate(text.splitlines()):
            terminal.say(f"{f'{name}:' if name and not number else '':10}{line}")
    if not found["exact"]:
        terminal.say("rankdeck preview --all counts the whole dataset and caches the tokens for training.")
    _show_columns(found, terminal)
    for number, document in enumerate(found["first_documents"], 1):
        terminal.say(document_title(number, document))
        terminal.say(f"  {visible(document['text'])[:_SHOWN_LETTERS]}")
    for sample in found["first_samples"]:
        pieces = "|".join(visible(piece) for piece in sample["pieces"][:_SHOWN_TOKENS])
        terminal.say(f"{sample_title(sample)}: {' '.join(map(str, sample['ids'][:_SHOWN_IDS]))} …")
        terminal.say(f"  {pieces} …")


def _show_columns(found: dict[str, Any], terminal: Terminal) -> None:
    if not found["columns"] or found["text_column"] is None:
        return
    how = "guessed; to choose another: --set text_column=NAME" if found["text_column_guessed"] else "as requested"
    shape = "" if found["shape"] == "texts" else f" of {found['shape']}"
    terminal.say(f"Text column: {found['text_column']}{shape} ({how})")
    for column in found["columns"][:_SHOWN_COLUMNS]:
        mark = "*" if column["name"] == found["text_column"] else " "
        kind = f"text, {column['mean_chars']:,.0f} characters" if column["text_share"] >= 0.5 else "not text"
        terminal.say(f"  {mark} {column['name']}: {kind}" + (f": {column['example']}" if column["example"] else ""))
