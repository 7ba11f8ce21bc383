"""A model folder as Hugging Face's libraries write it, looked at without torch: enough to refuse what cannot work.

Weights are read from safetensors only. Pickled weights (`pytorch_model.bin`) can run code when they are opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError, safe_open

from rankdeck.recipe import ConfigError, check_lfs_pointer

CONFIG: Final = "config.json"
INDEX: Final = "model.safetensors.index.json"
_PICKLED: Final = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_EMBEDDING: Final = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|embed_in|tok_embeddings)\.weight$")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model folder's facts.

    Attributes:
        config: `config.json`.
        shapes: Every tensor's shape by its name, from the headers of the weights' files.
    """

    folder: Path
    config: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type") or "")

    @property
    def embedding_rows(self) -> int | None:
        """The tokens that the model has embeddings for; None where that is unknown."""
        for name, shape in self.shapes.items():
            if _EMBEDDING.search(name) and len(shape) == 2:
                return shape[0]
        size = self._setting("vocab_size")
        return size if isinstance(size, int) else None

    @property
    def longest(self) -> int | None:
        """The longest sequence that it was made for; None where that is unknown."""
        for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
            if isinstance(value := self._setting(name), int) and value > 0:
                return value
        return None

    @property
    def modules(self) -> set[str]:
        """Names of the modules that have a weight matrix."""
        return {name.removesuffix(".weight") for name, shape in self.shapes.items() if len(shape) == 2}

    def _setting(self, name: str) -> Any:
        inner = self.config.get("text_config")
        return self.config.get(name, inner.get(name) if isinstance(inner, dict) else None)


def open_folder(folder: Path) -> ModelFolder:
    """Read a model folder; raise `ConfigError` where it holds no model that can be trained here."""
    for path in (path for pattern in ("*.json", "*.safetensors") for path in folder.glob(pattern)):
        check_lfs_pointer(path, field="model")
    config = _read_config(folder)
    _check_architecture(folder, config)
    return ModelFolder(folder, config, dict(_shapes(_weight_files(folder))))


def largest_token(tokenizer: Path) -> int:
    """The highest id of a ``tokenizer.json``; raises `ConfigError` where it cannot be read."""
    try:
        document = json.loads(tokenizer.read_text(encoding="utf-8"))
        vocabulary = document["model"]["vocab"]
        ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else [len(vocabulary) - 1]
        return max(int(number) for number in (*ids, *(t["id"] for t in document.get("added_tokens") or ())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            "tokenizer_file",
            f"{tokenizer} cannot be read as a tokenizer ({type(error).__name__}: {error}).",
            "Name a tokenizer.json, or a folder that holds one.",
        ) from None


def check_tokenizer_fits(tokenizer: Path, model: ModelFolder) -> None:
    """Refuse a tokenizer with more tokens than the model has embeddings for."""
    highest, rows = largest_token(tokenizer), model.embedding_rows
    if rows is not None and highest >= rows:
        raise ConfigError(
            "tokenizer_file",
            f"The tokenizer {tokenizer} has tokens up to number {highest:,}, and the model's embedding has {rows:,} "
            f"rows: it is not this model's tokenizer.",
            "Leave tokenizer_file empty to take the model's own, or put the right tokenizer.json into the model "
            "folder.",
            title="The tokenizer does not fit the model",
        )


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = (
            "is a LoRA adapter without its model"
            if (folder / "adapter_config.json").is_file()
            else f"contains no {CONFIG}, so it is not a model folder"
        )
        raise ConfigError(
            "model",
            f"{folder} {what}.",
            "Name the folder that `save_pretrained` wrote, or that was downloaded from the Hub.",
            title="That is not a model folder",
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            "model", f"{path} cannot be read ({error}).", "Copy the model folder again.", title="The model is damaged"
        ) from None
    if not isinstance(config, dict):
        raise ConfigError("model", f"{path} is not a table of settings.", "Copy the model folder again.")
    return config


def _check_architecture(folder: Path, config: Mapping[str, Any]) -> None:
    if not config.get("model_type"):
        raise ConfigError(
            "model",
            f"{folder / CONFIG} names no architecture (model_type).",
            "Choose another model, or download it again.",
            title="The architecture is unknown",
        )
    if config.get("quantization_config"):
        raise ConfigError(
            "model",
            f"{folder} holds quantised weights, which cannot be trained here.",
            "Name the folder of the model before it was quantised.",
        )


def _weight_files(folder: Path) -> list[Path]:
    index, whole = folder / INDEX, folder / "model.safetensors"
    if index.is_file() and not whole.is_file():
        try:
            names = sorted({str(name) for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(f"{index} cannot be read ({error})") from None
        lost = [name for name in names if not (folder / name).is_file()]
        if lost:
            raise _damaged(f"{len(lost)} of {len(names)} files of weights are missing in {folder}: {lost[0]}")
        return [folder / name for name in names]
    if not whole.is_file():
        raise _without_weights(folder)
    return [whole]


def _without_weights(folder: Path) -> ConfigError:
    pickled = sorted(path.name for pattern in _PICKLED for path in folder.glob(pattern))
    if pickled:
        return ConfigError(
            "model",
            f"{folder} holds its weights as pickle only ({pickled[0]}). Opening such a file can run any code that is "
            "in it, so it is not opened.",
            "Use the model's safetensors files: most models on the Hub have them; convert your own folder "
            "by loading it where you trust it and calling save_pretrained.",
            title="The weights are not safetensors",
        )
    return ConfigError(
        "model",
        f"{folder} has a {CONFIG} and no weights (model.safetensors).",
        "Download the whole model, or train its architecture from scratch.",
        option="--model llama",
        title="The model has no weights",
    )


def _damaged(what: str) -> ConfigError:
    return ConfigError("model", f"{what}.", "Download or copy the model again.", title="The model is damaged")


def _shapes(files: list[Path]) -> Iterator[tuple[str, tuple[int, ...]]]:
    for path in files:
        try:
            with safe_open(path, framework="np") as file:
                shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise _damaged(f"{path} is not a complete safetensors file ({error})") from None
        yield from shapes.items()
