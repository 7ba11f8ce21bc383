"""Texts of the data preview: the result of `core.measure.data_preview.preview_data` as lines and lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.config.mode import mode_label
from core.data.dataset import is_hub
from core.formatting import byte_size, percent

Found = Mapping[str, Any]


def fact_lines(found: Found) -> list[tuple[str, str]]:
    counts, epoch, tokenizer = found["counts"], found["epoch"], found["tokenizer"]
    about = "" if found["exact"] else "about "
    part = "" if found["exact"] else f" in the first {byte_size(found['looked_at_bytes'])}"
    kind = f"{tokenizer['kind']}, vocabulary {tokenizer['vocab_size']:,}"
    kept = "; cached, so runs start immediately" if found["tokenised"] else ""
    bad = counts["words"] or "none"
    lines = [
        ("Data", data_text(str(found["dataset"]), found["files"], found["size_bytes"])),
        ("Read as", "\n".join([found["form"], *found["remarks"]])),
        ("Rows", f"{_many(counts['rows'], 'row')}, {_many(counts['documents'], 'document')}{part}"),
        ("Bad rows", "\n".join([bad, *counts["examples"]])),
        ("Tokens", f"{about}{found['tokens']:,} ({kind}){kept}"),
        ("Samples", f"{about}{_samples(found)}"),
        ("An epoch", f"{about}{_many(epoch['steps'], 'step')} ({_how(epoch)})"),
    ]
    if not tokenizer["from_recipe"]:
        lines.append(("", "The recipe doesn't report its tokens, so bytes are shown."))
    return lines


def data_text(dataset: str, files: int, size_bytes: int | None) -> str:
    """How much a dataset is: files and size; of the Hub's its copy here, which has no files of the person's."""
    if is_hub(dataset):
        here = "not downloaded yet" if not size_bytes else f"{byte_size(size_bytes)} on this machine"
        return f"on the Hugging Face Hub, {here}"
    return f"{_many(files, 'file')}, {byte_size(size_bytes or 0)}"


def columns_of(found: Found) -> dict[str, str]:
    """What may be chosen as the text: the option `text_column` (empty: guessed), and what a list says of it."""
    if not found["columns"] or found["text_column"] is None:
        return {}
    guess = f"guessed: {_column_name(found['text_column'])}" if found["text_column_guessed"] else "guessed"
    return {"": guess, **{str(item["name"]): _column_label(item) for item in found["columns"]}}


def chosen_column(found: Found) -> str:
    """The option `text_column` that this was made with; empty: it was guessed."""
    return "" if found["text_column_guessed"] else str(found["text_column"] or "")


def document_title(number: int, document: Mapping[str, Any]) -> str:
    """One document's heading: its lengths, and whether it is cut."""
    split = f", cut into {document['samples']:,} samples" if document["split"] else ", whole in one sample"
    return f"Document {number}: {_many(document['bytes'], 'byte')}, {_many(document['tokens'], 'token')}{split}"


def sample_title(sample: Mapping[str, Any]) -> str:
    return f"Sample {sample['number']} ({_many(sample['length'], 'token')})"


def visible(text: str, *, breaks: bool = False) -> str:
    """A piece of text with its line ends and tabs to be seen; with `breaks` a line still ends where it ends."""
    return text.replace("\r", "␍").replace("\n", "↵\n" if breaks else "↵").replace("\t", "⇥")


def _samples(found: Found) -> str:
    return f"{found['samples']:,} of {found['seq_len']:,} tokens for training, {found['val_samples']:,} for validation"


def _how(epoch: Mapping[str, Any]) -> str:
    mode = mode_label(str(epoch["mode"]), str(epoch["mode"]))
    devices = len(epoch["devices"])
    on = f" on {devices} devices" if devices > 1 else ""
    return f"{mode}{on}, global batch {epoch['global_batch']:,}"


def _column_name(name: object) -> str:
    return "the whole file" if name == "*" else str(name)


def _column_label(item: Mapping[str, Any]) -> str:
    if not item["text_share"]:
        return f"{item['name']} (no text)"
    share = "" if item["text_share"] > 0.995 else f"text in {percent(item['text_share'])} of rows, "
    return f"{item['name']} ({share}{item['mean_chars']:,.0f} characters on average)"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
