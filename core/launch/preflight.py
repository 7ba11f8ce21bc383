"""Everything that can be known to fail is found here, before a run's folder is made or changed.

What the person typed is a `UsageError` (exit code 2), what the machine lacks a `PreflightError` (exit code 3).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.config.fields import FieldSpec, Needs
from core.config.mode import Mode
from core.config.run_config import FIELDS, RunConfig
from core.data.dataset import DatasetIdentity, check_size, estimate_samples, identify, list_files
from core.data.hub import HubName, check_download
from core.errors import ConfigError, PreflightError, RankdeckError, UsageError, sentences
from core.files.atomic import explain
from core.files.cloud import cloud_folder, count_placeholders
from core.files.long_paths import IN_A_BUILT_IN_RUN, IN_A_RUN, IN_EVERY_RUN, long_paths_enabled, room_in
from core.held_files import open_binary
from core.launch.checkpoint_size import FOR_THE_END, known_checkpoint_bytes
from core.launch.commit_charge import check_commit
from core.launch.deepspeed import check_run, effective_config
from core.launch.mode import DEEPSPEED, TORCH
from core.launch.resolved import ResolvedRun
from core.launch.run_length import run_notes, samples_known
from core.launch.stop_rules import stop_rules
from core.machine.packages import check_packages
from core.machine.platform import Platform
from core.recipes.check import check_text_column
from core.recipes.manifest import BUILT_IN
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.recipes.user_script import read_script
from core.run_folder.store import check_new_run_dir
from core.training_python import why_variable_unused

# Room for the checkpoints of a small model, where their size is not known yet.
MIN_FREE_BYTES: Final = 200 * 1_000_000
GIB: Final = 1 << 30
OLDEST_TORCH: Final = (2, 7)
# By `core.launch.mode.not_as_asked` and `core.launch.preflight.check_engine`.
_NOTED_ELSEWHERE: Final = ("sync_every", "deepspeed_config")


@dataclass(frozen=True, slots=True)
class Checked:
    """A run that can start, as far as is known beforehand.

    Attributes:
        samples: Samples to train on, counted as if each byte were a token.
        notes: For the user; they stop nothing.
        data: A sentence such as "Data: plain text, 1 document, 19,002 tokens."; empty for other data.
    """

    run: ResolvedRun
    dataset: DatasetIdentity
    samples: int
    notes: tuple[str, ...] = ()
    data: str = ""

    @property
    def steps_per_epoch(self) -> int | None:
        """Optimizer steps in one pass over the dataset (of one rank, in independent mode), at least 1.

        None if the data must be read to know it.
        """
        return self.run.steps_per_epoch(self.samples) if samples_known(self.run, self.dataset) else None


def check(run: ResolvedRun, runs_dir: Path, run_dir: Path | None = None) -> Checked:
    """Check a new run as a whole; changes nothing on disk.

    Args:
        run: The run.
        runs_dir: The folder for a new run folder.
        run_dir: The run's own folder, if named.

    Raises:
        UsageError: Config, devices, dataset or folder cannot be used.
        PreflightError: This machine cannot run it: torch, packages, disk, permission.
    """
    config, recipe, choice = run.config, run.recipe, run.choice
    check_packages(recipe.requires, f"The recipe {recipe.title}")
    engine_notes = check_engine(run)
    dataset = identify(config.dataset_file, config.data_files)
    if dataset.kind == "hub":
        check_download(HubName.parse(config.dataset_file), config.options)
    if run_dir is not None:
        check_new_run_dir(run_dir)
    if not recipe.self_contained:
        check_torch(run.platform)
    elif recipe.name == USER_SCRIPT:
        read_script(config.options, config.env)
    stop_rules(run.config, run.recipe)
    check_commit(run.devices, run.platform.commit_free)
    known = known_checkpoint_bytes(run, runs_dir)
    built_in = recipe.folder.parent == BUILT_IN and recipe.name != USER_SCRIPT
    below = IN_A_BUILT_IN_RUN if built_in else IN_A_RUN
    path_notes = check_path_length(run_dir or runs_dir, of_runs=run_dir is None, below=below)
    check_folder(run_dir or runs_dir, needed_bytes=needed_bytes(config, known, dataset.size_bytes))
    if config.log_file is not None:
        _check_log_file(Path(config.log_file))
    run, recipe_notes = run.fitted()
    config = run.config
    # Now that the recipe has fitted it to its model.
    check_size(dataset, config.seq_len)
    samples = estimate_samples(dataset, config.seq_len, config.held_out)
    samples = config.samples_per_block if recipe.own_samples else samples
    data, row_notes = check_text_column(dataset, config)
    asked_notes = (*row_notes, *recipe_notes)
    own_notes = _notes(run, samples)
    if not recipe.own_samples:
        own_notes = (*own_notes, *_dataset_notes(dataset))
    own_notes = (*own_notes, *path_notes, *_cloud_notes(run_dir or runs_dir, config, dataset))
    own_notes = (*run_notes(run, samples if samples_known(run, dataset) else None), *own_notes)
    own_notes = (*choice.notes, *settings_without_effect(run), *own_notes)
    engine_notes = (choice.engine_note, *engine_notes) if choice.engine_note else engine_notes
    notes = (*run.device_notes, *engine_notes, *own_notes, *asked_notes)
    return Checked(run, dataset, samples, notes, data)


def check_engine(run: ResolvedRun) -> tuple[str, ...]:
    """Refuse settings that the sharding engine does not support; returns notes for the user.

    Raises:
        ConfigError: DeepSpeed's configuration cannot be used, or contradicts other settings.
    """
    config, choice, batch = run.config, run.choice, run.batch
    if choice.engine == DEEPSPEED:
        check_run(config, batch, run.platform.deepspeed_version or "")
        return ()
    if config.deepspeed_config is None:
        return ()
    if choice.mode.traits.by_deepspeed:
        if config.zero_engine != TORCH:
            effective_config(config, batch)
        return ("The DeepSpeed settings are not used: PyTorch's own engine shards.",)
    return (f"The DeepSpeed settings are not used: the mode is {choice.mode}.",)


def needed_bytes(config: RunConfig, checkpoint: int | None, dataset: int = 0) -> int:
    """Return the free bytes that a run needs to start: the reserve, and room for the end.

    Args:
        config: The run's.
        checkpoint: Bytes of one of its checkpoints; None if unknown.
        dataset: Bytes of a dataset that is still to be tokenised.
    """
    room = MIN_FREE_BYTES if checkpoint is None else (FOR_THE_END + 1) * checkpoint
    return int(config.disk_reserve * GIB) + room + 2 * dataset


def check_torch(platform: Platform) -> None:
    """Refuse a missing or too old torch, without importing it; raises `PreflightError`."""
    version = platform.torch_version
    if version is None:
        raise PreflightError(
            sentences("PyTorch is not installed.", why_variable_unused()),
            "Set it up.",
            option="rankdeck environment make",
            title="PyTorch is missing",
        )
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise PreflightError(
            f"PyTorch {version} is older than {oldest}.", "Update it: pip install -U torch", title="PyTorch is too old"
        )


def check_path_length(
    folder: Path, *, of_runs: bool, below: int = IN_A_RUN, limited: bool | None = None
) -> tuple[str, ...]:
    """Refuse a folder in which paths of a run's files are too long (Windows, without long paths).

    Args:
        folder: The run's folder, or that of all runs.
        of_runs: It is that of all runs.
        below: Characters of the longest path in the run's folder.
        limited: Whether the old limit holds; None asks Windows.

    Returns:
        A note if only the longest names do not fit, such as a script may give to its metrics.

    Raises:
        PreflightError: Says by how much it is too long.
    """
    room = room_in(folder, of_runs=of_runs, below=below)
    if room >= 0 or not (not long_paths_enabled() if limited is None else limited):
        return ()
    surely = room_in(folder, of_runs=of_runs, below=IN_EVERY_RUN)
    if surely < 0:
        raise PreflightError(
            f"Windows limits paths to 260 characters, and {folder} is {-surely} characters too long for the files of a "
            "run.",
            "Choose a shorter folder, or turn on long paths (the doctor says how).",
            title="The path is too long",
            option="--runs-dir PATH",
        )
    too_long = f"Windows limits paths to 260 characters, and {folder} is {-room} characters too long"
    return (f"{too_long} for the longest names of metrics; their curves may be missing.",)


def check_folder(folder: Path, needed_bytes: int = MIN_FREE_BYTES) -> None:
    """Refuse a folder that cannot be written, or whose disk is nearly full. It need not exist yet.

    Raises:
        UsageError: It is a file.
        PreflightError: No permission, a drive that is missing or read-only, or too little space.
    """
    try:
        existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        if not existing.is_dir():
            raise UsageError(f"{existing} is a file, not a folder.", "Choose another folder.")
        free = shutil.disk_usage(existing).free
        # Leaves no trace; os.access says nothing about Windows' rights.
        with tempfile.TemporaryFile(dir=existing):
            pass
    except StopIteration:
        raise PreflightError(f"The drive of {folder} is missing.", "Connect it or choose another folder.") from None
    except OSError as error:
        raise _as_preflight_error(explain(error, f"{folder} could not be written")) from error
    if free < needed_bytes:
        raise PreflightError(
            f"{folder} has {free / 1e6:,.0f} MB free; this run needs at least {needed_bytes / 1e6:,.0f} MB.",
            "Free some space or choose another drive.",
            title="The disk is too full",
            option="--runs-dir PATH",
        )


def _as_preflight_error(error: RankdeckError) -> PreflightError:
    return PreflightError(error.cause, error.next_step, title=error.title)


def _check_log_file(path: Path) -> None:
    if path.is_dir():
        raise ConfigError(
            "log_file", f"{path} is a folder, not a file.", "Name a file.", option="--log-file metrics.jsonl"
        )
    try:
        if path.exists():
            with open_binary(path, "ab"):
                pass
    except OSError as error:
        raise _as_preflight_error(explain(error, f"{path} could not be written")) from error
    check_folder(path.parent, needed_bytes=0)


def _dataset_notes(dataset: DatasetIdentity) -> tuple[str, ...]:
    notes = list(dataset.notes)
    if not dataset.is_counted and dataset.kind != "none":
        notes.append(
            "How much text the dataset holds is known when it has been read; until then steps are estimated. "
            "To look into it: rankdeck preview."
        )
    if not dataset.utf8:
        notes.append("The dataset is not UTF-8 throughout; its bytes are taken as they are.")
    return tuple(notes)


def _cloud_notes(folder: Path, config: RunConfig, dataset: DatasetIdentity) -> tuple[str, ...]:
    """Return notes on OneDrive: it uploads what a run writes, and may have to download what it reads."""
    notes: list[str] = []
    if cloud_folder(folder) is not None:
        notes.append(
            f"{folder} is in OneDrive, which uploads each checkpoint and may hold files that the run replaces. "
            "A folder outside of it is faster and safer."
        )
    files = list_files(config.dataset_file, config.data_files) if dataset.kind in ("file", "folder") else []
    if missing := count_placeholders(files):
        what = "One file of the dataset is" if missing == 1 else f"{missing:,} files of the dataset are"
        notes.append(
            f"{what} in the cloud only: OneDrive downloads them when they are read, so the start takes longer."
        )
    return tuple(notes)


def _notes(run: ResolvedRun, samples: int) -> tuple[str, ...]:
    """Return notes on settings that work but are probably not meant."""
    config, recipe, alone = run.config, run.recipe, run.mode.is_apart
    notes: list[str] = []
    if config.val_samples is not None and not recipe.self_contained:
        notes.append(f"Each evaluation measures {config.val_samples:,} held-out samples at most.")
    if config.model is not None and not recipe.uses_model:
        note = f"{recipe.title} does not use a model, so {config.model!r} has no effect."
        if recipe.folder.parent != BUILT_IN:
            note += " If its code reads run.config.model, add uses_model = true to its recipe.toml."
        notes.append(note)
    if config.precision == "fp16" and any(device.kind != "cuda" for device in run.devices):
        notes.append("fp16 is right on a CPU but many times slower than fp32; bf16 and fp32 are the choices there.")
    chunks = -(-samples // min(config.dataset_chunk_size, config.samples_per_block))
    if alone and 0 < chunks < run.world_size:
        notes.append(
            f"The dataset makes only {chunks} chunks for {run.world_size} devices, so some have nothing to do in an "
            "epoch; a smaller chunk size spreads it more evenly."
        )
    if alone and config.merge_policy == "average" and config.sync_every is None:
        notes.append(
            "Averaging ranks that trained apart usually gives a worse model than the best of them; "
            "both are measured and the better one is kept."
        )
    return tuple(notes)


def settings_without_effect(run: ResolvedRun) -> tuple[str, ...]:
    """Return a sentence for each changed setting that does nothing here."""
    config, recipe, there = run.config, run.recipe, run.has
    notes = []
    for spec in FIELDS:
        as_before = getattr(config, spec.name) in (spec.default, recipe.defaults.get(spec.name))
        unknown = recipe.self_contained and spec.name not in recipe.uses  # the program decides
        if as_before or unknown or spec.name in _NOTED_ELSEWHERE or _has_effect(spec, run.mode, there):
            continue
        where = spec.needs or f"in {' and '.join(spec.modes)} mode{'s' if len(spec.modes) > 1 else ''} only"
        notes.append(f"{spec.name} has an effect {where}. {spec.instead}".rstrip())
    return tuple(notes)


def _has_effect(spec: FieldSpec, mode: Mode, there: frozenset[Needs]) -> bool:
    return spec.needs in there if spec.needs is not None else not spec.modes or mode in spec.modes
