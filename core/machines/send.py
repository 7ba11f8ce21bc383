"""Sends the code and data of a run to another machine, by their hashes and only what is not there.

A dataset is named by its path there (``there://PATH``), by its name at the Hub, or is uploaded once; an interrupted
upload continues where it ended.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.config.fields import FieldValue
from core.config.run_config import RunConfig
from core.data.dataset import NO_DATASET, STDLIB, is_hub, list_files
from core.errors import ConfigError
from core.formatting import byte_size
from core.machines.machine import THERE, Report
from core.machines.session import Session
from core.machines.tree import code_tree, tree_of
from core.recipes.catalog import get_recipe
from core.recipes.manifest import BUILT_IN, Recipe
from core.recipes.user_script import RECIPE as USER_SCRIPT

Options = dict[str, FieldValue]
_EVERY_S: Final = 0.2


@dataclass(slots=True)
class Sender:
    """Sends the code and data that a run's settings name over a session."""

    session: Session
    report: Report

    def send(self, config: RunConfig) -> RunConfig:
        """Send everything that the settings name, and return them with the paths there.

        Raises:
            UsageError: Something cannot be sent.
            PreflightError: A file cannot be read.
            RankdeckError: The connection broke, or the machine refused.
        """
        check_sendable(config)
        recipe = get_recipe(config.recipe)
        options = dict(config.options)
        options = self._script(options) if recipe.name == USER_SCRIPT else self._own_paths(options, recipe)
        changes: dict[str, Any] = {"dataset_file": self._dataset(config.dataset_file, config.data_files)}
        if BUILT_IN not in recipe.folder.resolve().parents:
            changes["recipe"] = self._code(recipe.folder.resolve())
        if config.model and Path(config.model).exists():
            changes["model"] = self._data(Path(config.model))
        return config.replace(**changes, options=options)

    def _script(self, options: Options) -> Options:
        """Send the folder that the program runs in, and the one that it lies in where that is another."""
        script = Path(str(options.get("script") or ""))
        folder = Path(str(options.get("working_directory") or script.parent))
        there = self._code(folder)
        options["working_directory"] = there
        if options.get("script"):
            if folder in script.parents:
                options["script"] = below(there, script.relative_to(folder))
            else:
                options["script"] = below(self._code(script.parent), Path(script.name))
        return options

    def _own_paths(self, options: Options, recipe: Recipe) -> Options:
        for spec in recipe.fields:
            text = options.get(spec.name)
            if spec.type == "path" and isinstance(text, str) and text.strip() and Path(text).exists():
                options[spec.name] = self._data(Path(text))
        return options

    def _code(self, folder: Path) -> str:
        return self.session.send_tree(code_tree(folder.name or "code", folder))

    def _dataset(self, text: str, rule: str) -> str:
        text = text.strip()
        if text.startswith(THERE):
            return text.removeprefix(THERE)
        if text in (STDLIB, NO_DATASET) or is_hub(text):
            return text
        return self._data(Path(text).absolute(), list_files(text, rule))

    def _data(self, path: Path, files: list[Path] | None = None) -> str:
        """Upload a file, or the `files` of a folder (None: all)."""
        self.report(f"Reading {path.name}")
        if path.is_file():
            return below(self._upload("data", path.parent, [path]), Path(path.name))
        return self._upload(
            path.name or "data", path, [file for file in path.rglob("*") if file.is_file()] if files is None else files
        )

    def _upload(self, name: str, root: Path, files: list[Path]) -> str:
        tree = tree_of(name, root, files)
        sizes = {file.sha256: file.size for file in tree.files}
        total = sum(sizes[digest] - offset for digest, offset in self.session.missing(tree).items())
        sent, shown_at = 0, 0.0

        def count(size: int) -> None:
            nonlocal sent, shown_at
            sent += size
            if time.monotonic() - shown_at >= _EVERY_S:
                shown_at = time.monotonic()
                self.report(f"Sending data: {byte_size(sent)} of {byte_size(total)}")

        return self.session.send_tree(tree, count)


def below(folder: str, path: Path) -> str:
    """A path below a folder of the other machine, as its system writes it."""
    slash = "\\" if "\\" in folder and "/" not in folder else "/"
    return slash.join([folder, *path.parts])


def check_sendable(config: RunConfig) -> None:
    """Refuse settings that only make sense on this computer, before anything is sent, with a `ConfigError`."""
    if config.log_file is not None:
        raise ConfigError(
            "log_file",
            "A copy of the metrics cannot be written by another machine.",
            "Leave it out: metrics.jsonl is copied here anyway.",
            option="leave out --log-file",
        )
    text = config.dataset_file.strip()
    if text.startswith(THERE) and not text.removeprefix(THERE).strip():
        raise ConfigError("dataset_file", f"{text!r} names no path.", "For example: there:///data/corpus.txt")
