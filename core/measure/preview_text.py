"""Texts of the data preview: the result of `core.measure.data_preview.preview_data` as lines and lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.config.mode import mode_label
from core.data.dataset import is_hub
from core.formatting import byte_size

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
    """The files and size of a dataset; of one of the Hub, the size of its copy here."""
    if is_hub(dataset):
        here = "not downloaded yet" if not size_bytes else f"{byte_size(size_bytes)} on this machine"
        return f"on the Hugging Face Hub, {here}"
    return f"{_many(files, 'file')}, {byte_size(size_bytes or 0)}"


def document_title(number: int, document: Mapping[str, Any]) -> str:
    split = f", cut into {document['samples']:,} samples" if document["split"] else ", whole in one sample"
    return f"Document {number}: {_many(document['bytes'], 'byte')}, {_many(document['tokens'], 'token')}{split}"


def sample_title(sample: Mapping[str, Any]) -> str:
    return f"Sample {sample['number']} ({_many(sample['length'], 'token')})"


def visible(text: str, *, breaks: bool = False) -> str:
    """A text with visible line ends and tabs; with `breaks` its lines still end."""
    return text.replace("\r", "␍").replace("\n", "↵\n" if breaks else "↵").replace("\t", "⇥")


def _samples(found: Found) -> str:
    return f"{found['samples']:,} of {found['seq_len']:,} tokens for training, {found['val_samples']:,} for validation"


def _how(epoch: Mapping[str, Any]) -> str:
    mode = mode_label(str(epoch["mode"]), str(epoch["mode"]))
    devices = len(epoch["devices"])
    on = f" on {devices} devices" if devices > 1 else ""
    return f"{mode}{on}, global batch {epoch['global_batch']:,}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
