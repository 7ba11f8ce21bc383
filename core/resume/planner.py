"""Resume planner: decides before anything is touched, as a value that window and command line can show.

Three things can be named: a run of ours (its folder, id or state file), AI-OS's `chunk_tracker_state.json`, or a
folder with one. AI-OS's file comes without weights that we could load, so there a *new* run trains what is left;
nothing in its folder is changed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.checkpoints.restore_plan import carry_over, policy_for
from core.checkpoints.store import DamagedGeneration, Generation, Generations
from core.config.device_names import count_notes, with_counts
from core.config.layers import Given, config_from_given, device_texts, normalise, with_absolute_paths
from core.config.mode import Mode
from core.config.run_config import RunConfig
from core.data.dataset import DatasetIdentity, check_size, estimate_samples, identify
from core.errors import ConfigError, DatasetError, RunBusyError, RunNotFoundError, StateFileError, UsageError
from core.files.atomic import path_of
from core.launch.preflight import (
    MIN_FREE_BYTES,
    check_engine,
    check_folder,
    check_torch,
)
from core.launch.resolved import resolve, trained_run
from core.ledger.chunk_grid import ChunkGrid
from core.ledger.ledger import Ledger, LedgerFile, LedgerProgress, read_state_file
from core.ledger.state_file import FILE_NAME
from core.machine.devices import Device, DeviceMonitor
from core.machine.packages import check_packages
from core.machine.platform import Platform, this_platform
from core.recipes.check import check_by_recipe
from core.recipes.manifest import get_recipe, recipe_defaults
from core.recipes.outside_code import outside_code
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.recipes.user_script import read_script
from core.resume.changes import BATCH, CHANGES, change_lines, check_optimizer
from core.resume.checkpoint_choice import choose_checkpoint, list_checkpoints, newer_than
from core.resume.plan import ResumePlan
from core.run_folder.state import RunState
from core.run_folder.store import RunStore, find_run

__all__ = ["CHANGEABLE", "ResumePlan", "plan_resume"]

CHANGEABLE: Final = ("steps", "epochs", "devices", *CHANGES, "dataset_file", "dataset_chunk_size", "recipe")
"""What may be given anew when a run is resumed. The chunk size only says what it was, or is refused."""

HOST_LEAVES_S: Final = 5.0


def plan_resume(
    text: str,
    runs_dir: Path,
    changes: Mapping[str, Any] | None = None,
    *,
    available: Sequence[Device] | None = None,
    platform: Platform | None = None,
    accept_code: bool = False,
) -> ResumePlan:
    """What resuming `text` would do; reads only.

    Args:
        text: A run's folder, id or name, or the path of a `chunk_tracker_state.json` (ours or AI-OS's).
        runs_dir: Where runs are looked up, and where a new one would be made.
        changes: Some of `CHANGEABLE`, as flags give them, and `checkpoint`, the number of the one to go back to.
        available: This machine's devices; None looks.
        platform: This machine; None looks.
        accept_code: The person agrees to run the code that the run names (`ResumePlan.code`). Before that none of it
            is executed, not even its check of the settings.

    Raises:
        RunNotFoundError: Nothing goes by that name.
        RunBusyError: The run is live.
        StateFileError: A state file is damaged, of the wrong kind or newer, or doesn't fit dataset or chunk size.
        DatasetError: The dataset is not there, or not the same.
        ConfigError, UsageError: A change that can't be; nothing left to train.
        PreflightError: This machine isn't ready.
    """
    if available is None:
        with DeviceMonitor() as monitor:
            available = monitor.devices()
    platform = platform or this_platform()
    changes = dict(changes or {})
    checkpoint = changes.pop("checkpoint", None)
    path = _state_file_of(text)
    if path is not None:
        file = read_state_file(path)
        if file.form != "rankdeck":
            if checkpoint is not None:
                raise UsageError(f"{path} is AI-OS's and has no checkpoints.", "Leave --checkpoint out.")
            return _plan_aios(file, runs_dir, changes, available, platform)
        store = _store_around(path)
    else:
        store = find_run(runs_dir, text)
    number = None if checkpoint is None else str(checkpoint)
    return _plan_own(store, runs_dir, changes, number, available, platform, accept_code=accept_code)


def _state_file_of(text: str) -> Path | None:
    """The state file that `text` names by path: itself, or the one in a folder that holds no run of ours."""
    path = path_of(text)
    if path is None:
        return None
    if path.is_file() and path.name not in ("run.toml", "state.json", "metrics.jsonl"):
        return path.absolute()
    if path.is_dir() and path.name == FILE_NAME:
        raise StateFileError(f"{path} is a folder, not a state file.", "Name the file in it.")
    if path.is_dir() and not any((path / name).exists() for name in ("run.toml", "state.json")):
        inside = path / FILE_NAME
        if inside.is_file():
            return inside.absolute()
        if inside.is_dir():
            raise StateFileError(f"{inside} is a folder, not a state file.", "Name the file itself.")
        raise RunNotFoundError(f"{path} contains neither a run nor a {FILE_NAME}.", "List the runs: rankdeck runs.")
    if path.name == FILE_NAME and not path.parent.joinpath("run.toml").exists():
        raise RunNotFoundError(f"There is no file {path}.", "Check the path.", title="The state file is missing")
    return None


def _store_around(path: Path) -> RunStore:
    """The run whose state file, or whose generation's copy of it, this is."""
    for folder in (path.parent, path.parent.parent.parent):
        if (folder / "run.toml").exists():
            return RunStore.open(folder)
    raise StateFileError(
        f"{path} is a state file of Rankdeck, but it is not in its run's folder.",
        "Give the run's folder instead: rankdeck resume RUN_FOLDER",
    )


# --- a run of ours ---------------------------------------------------------------------------------------


def _wait_for_host_to_leave(store: RunStore) -> RunState:
    """The run's state. A host that has said "stopped" needs a moment to end; only then can its run be taken up."""
    deadline = time.monotonic() + HOST_LEAVES_S
    while (state := store.state()) and not state.is_live and store.is_locked() and time.monotonic() < deadline:
        time.sleep(0.05)
    return state


def _plan_own(
    store: RunStore,
    runs_dir: Path,
    changes: dict[str, Any],
    asked: str | None,
    available: Sequence[Device],
    platform: Platform,
    *,
    accept_code: bool,
) -> ResumePlan:
    store.refuse_links()
    state = _wait_for_host_to_leave(store)
    if store.is_locked() or state.is_live:
        raise RunBusyError(
            f"{state.run_id} is {state.state}.", f"Watch it with rankdeck attach {store.dir.name}, or stop it first."
        )
    before = store.config()
    config = _changed(before, changes, store.dir)
    top = read_state_file(store.ledger) if store.ledger.exists() else None  # damaged: refused here
    generation, damaged = _resumed_from(store, top, asked)
    ledger = Ledger.from_file(top) if top is not None and top.form == "rankdeck" else None
    if generation is not None:
        ledger = Ledger.from_file(read_state_file(generation.folder / FILE_NAME))
    elif broken := [item for item in damaged if item.diverged_at is None]:
        raise StateFileError(
            f"Every checkpoint in {store.generations} is damaged: {broken[0].reason}",
            "Put a copy of that folder back, or start a new run.",
        )
    step = generation.step if generation is not None else 0
    _check_something_left(state, config, step, changes)
    _check_data(config, ledger)
    recipe = get_recipe(config.recipe)
    run = resolve(config, recipe, available, platform, keep_global_batch=not any(name in changes for name in BATCH))
    config, devices, mode = run.config, run.devices, run.mode
    check_packages(recipe.requires, f"The recipe {recipe.title}")
    then = state.mode if generation is None else generation.mode
    world_then = state.world_size if generation is None else generation.world_size
    if generation is not None:
        check_optimizer(generation, config, mode)
    check_engine(run)
    if not recipe.self_contained:
        check_torch(run.platform)
    elif asked is not None:
        raise UsageError(
            f"{recipe.title} runs a program that decides itself where it continues.", "Leave --checkpoint out."
        )
    elif recipe.name == USER_SCRIPT:
        read_script(config.options, config.env)
    check_folder(store.dir, needed_bytes=MIN_FREE_BYTES)
    code = outside_code(config.recipe, config.options)
    accepted = code is None or accept_code or code.is_known
    if accepted:
        check_by_recipe(config, recipe, global_batch=run.batch.global_, resumes=True)
    devices_now = tuple(device.uuid for device in devices)
    # How often a self-contained program reads its data is its own business.
    fresh = generation is None and bool(damaged)  # all there is has diverged: what was trained goes with the weights
    progress = None if recipe.self_contained or fresh else _progress(ledger, config)
    if progress is not None and progress.finished:
        epochs = config.epoch_limit or 0
        raise _nothing_left(state, f"{epochs} epoch{'s' if epochs != 1 else ''}", f"--epochs {epochs + 1}")
    checkpoints = list_checkpoints(store.generations)
    return ResumePlan(
        run_dir=store.dir,
        runs_dir=runs_dir,
        config=config,
        generation=None if generation is None else generation.number,
        step=step,
        progress=progress,
        mode_then=then,
        mode_now=mode,
        devices_then=state.devices,
        devices_now=devices_now,
        damaged=tuple(_passed_over(item, generation) for item in damaged),
        copies=_copies_words(generation, mode, len(devices), config, state.fallback is not None),
        changed=change_lines(trained_run(before, recipe, then, world_then), run),
        code=code,
        code_accepted=accepted,
        warnings=(
            *_count_notes(changes),
            *run.device_notes,
            *_own_warnings(state, generation is None, mode, then, devices_now),
        ),
        checkpoints=() if recipe.self_contained else checkpoints,
        set_aside=newer_than(generation.number, checkpoints) if asked is not None and generation else (),
        goes_back=asked is not None,
    )


def _resumed_from(
    store: RunStore, top: LedgerFile | None, asked: str | None
) -> tuple[Generation | None, Sequence[DamagedGeneration]]:
    """The checkpoint that was asked for, else the newest good one; and those that are passed over for it."""
    if asked is not None:
        return choose_checkpoint(store.generations, asked.strip(), store.dir.name), ()
    return Generations(store.generations).newest_valid(None if top is None else top.generation)


def _passed_over(bad: DamagedGeneration, used: Generation | None) -> str:
    """Why a newer checkpoint is not resumed from, and which one is."""
    if bad.diverged_at is None:
        return f"Not used: checkpoint {bad.number}: {bad.reason}"
    instead = f"continuing from checkpoint {used.number}, step {used.step:,}" if used else "starting with fresh weights"
    return f"Checkpoint {bad.number} (step {bad.diverged_at:,}) is diverged (weights are not finite); {instead}."


def _changed(config: RunConfig, changes: dict[str, Any], folder: Path) -> RunConfig:
    """`config` with what was given anew; a new limit replaces the old one, be it steps or epochs."""
    if "recipe" in changes and changes["recipe"] != config.recipe:
        raise ConfigError(
            "recipe",
            f"The run in {folder} trains {config.recipe}, not {changes['recipe']}.",
            "Leave --recipe out, or start a new run.",
        )
    before = Given({"env": config.env} if config.env else {})
    given = with_absolute_paths(normalise(changes), Path.cwd()).over(before)
    if "dataset_chunk_size" in changes:
        wanted = config_from_given(given, config).dataset_chunk_size
        if wanted != config.dataset_chunk_size:
            raise _other_chunk_size(str(folder), config.dataset_chunk_size, wanted)
    if ("steps" in changes) != ("epochs" in changes):
        config = config.replace(steps=None, epochs=None)
    changed = config_from_given(given, config)
    return changed.replace(devices=with_counts(changed.devices)) if "devices" in changes else changed


def _count_notes(changes: Mapping[str, Any]) -> tuple[str, ...]:
    return count_notes(device_texts(changes["devices"])) if "devices" in changes else ()


def _other_chunk_size(where: str, before: int, now: int) -> StateFileError:
    return StateFileError(
        f"The chunk size is not the same: {where} was made with {before} samples, and {now} is requested now.",
        f"Resume with --dataset-chunk-size {before}, or start a new run.",
    )


def _check_something_left(state: RunState, config: RunConfig, step: int, changes: Mapping[str, Any]) -> None:
    extended = "steps" in changes or "epochs" in changes
    if config.steps is not None and extended and config.steps <= step:
        raise ConfigError(
            "steps",
            f"The run has done {step:,} steps already, so --steps {config.steps} leaves nothing to train.",
            f"Give more than {step}.",
        )
    if state.state == "finished" and not extended and step >= state.step:
        more = f"--steps {max(2 * step, 1)}" if config.epochs is None else f"--epochs {config.epochs + 1}"
        raise _nothing_left(state, f"{step:,} steps", more)


def _nothing_left(state: RunState, done: str, more: str) -> UsageError:
    return UsageError(
        f"{state.run_id} has finished ({done}).",
        f"Train longer: rankdeck resume {state.run_id} {more}",
        title="Nothing is left to train",
    )


def _progress(ledger: Ledger | None, config: RunConfig) -> LedgerProgress | None:
    if ledger is None:
        return None
    if ledger.epochs != config.epoch_limit:
        ledger.limit_epochs(config.epoch_limit)
    return ledger.progress()


def _check_data(config: RunConfig, ledger: Ledger | None) -> DatasetIdentity:
    """Refuses a dataset or a cut that is not the one the weights were trained on."""
    identity = identify(config.dataset_file)
    check_size(identity, config.seq_len)
    if ledger is not None and identity.kind != "none":
        ledger.check_same(identity.as_dict(), config.dataset_chunk_size, config.samples_per_block)
    return identity


def _copies_words(generation: Generation | None, mode: str, world: int, config: RunConfig, fell_back: bool) -> str:
    """Whose weights go on, where not every rank goes on with its own."""
    synchronise = mode == Mode.INDEPENDENT and config.sync_every is not None
    policy = policy_for(config.merge_policy, fell_back)
    return carry_over(generation, mode, world, policy, synchronise=synchronise).words


def _own_warnings(state: RunState, fresh: bool, mode: str, then: str, devices_now: tuple[str, ...]) -> tuple[str, ...]:
    warnings = []
    if state.state == "interrupted" and not fresh:
        warnings.append("It was interrupted; steps after that checkpoint are trained again.")
    if not fresh and (mode, len(devices_now)) != (then, len(state.devices)):
        warnings.append(
            "Other devices or another mode: training continues from the same weights, but "
            "results are not bit-identical."
        )
    if state.fallback and mode != Mode.SINGLE:
        warnings.append(f"It had fallen back: {state.fallback}")
    return tuple(warnings)


# --- AI-OS's state file ----------------------------------------------------------------------------------


def _plan_aios(
    file: LedgerFile, runs_dir: Path, changes: dict[str, Any], available: Sequence[Device], platform: Platform
) -> ResumePlan:
    config = _aios_config(file, changes)
    recipe = get_recipe(config.recipe)
    run = resolve(config, recipe, available, platform)
    config, devices, mode = run.config, run.devices, run.mode
    check_engine(run)
    identity = identify(config.dataset_file)
    check_size(identity, config.seq_len)
    progress = _aios_progress(file, config, identity, len(devices), mode)
    check_torch(platform)
    check_folder(runs_dir, needed_bytes=MIN_FREE_BYTES + 2 * identity.size_bytes)
    return ResumePlan(
        run_dir=None,
        runs_dir=runs_dir,
        config=config,
        generation=None,
        step=0,
        progress=progress,
        mode_then="",
        mode_now=mode,
        devices_then=(),
        devices_now=tuple(device.uuid for device in devices),
        warnings=(*_count_notes(changes), *run.device_notes, *_aios_warnings(file)),
        state_file=file,
    )


def _aios_config(file: LedgerFile, changes: dict[str, Any]) -> RunConfig:
    if changes.get("dataset_file") is None:
        named = f" (it was called {file.dataset_name!r})" if file.dataset_name else ""
        raise DatasetError(
            f"{file.path} does not contain its dataset's path{named}.",
            "Name it: in the window under Dataset, on the command line with --dataset-file FILE.",
            title="The dataset's path is unknown",
        )
    chunk_size = file.chunk_size
    given = with_absolute_paths(normalise(changes), Path.cwd())
    recipe = get_recipe(str(given.values.get("recipe") or RunConfig().recipe))
    base = RunConfig(**recipe_defaults(recipe, {*given.values, "steps", "epochs"}))
    base = base.replace(samples_per_block=RunConfig().samples_per_block)
    config = config_from_given(given, base, recipe.fields)
    if chunk_size is not None and "dataset_chunk_size" in changes and config.dataset_chunk_size != chunk_size:
        raise _other_chunk_size(str(file.path), chunk_size, config.dataset_chunk_size)
    if "dataset_chunk_size" not in changes:
        config = config.replace(dataset_chunk_size=chunk_size or RunConfig().dataset_chunk_size)
    if config.steps is None and config.epochs is None:
        config = config.replace(epochs=file.current_epoch + 1)
    return config


def _aios_progress(
    file: LedgerFile, config: RunConfig, identity: DatasetIdentity, world: int, mode: Mode
) -> LedgerProgress:
    """What the new run's ledger will start from, its samples counted as if each byte were a token.

    Raises:
        StateFileError: The file names chunks that this dataset can't have, however it is cut into tokens.
    """
    samples = max(1, estimate_samples(identity, config.seq_len, config.held_out))
    grid = ChunkGrid(samples, config.samples_per_block, config.dataset_chunk_size)
    if file.total_blocks is not None and file.total_blocks > grid.blocks:
        raise StateFileError(
            f"{file.path} was made with a dataset of {file.total_blocks} blocks; {identity.path} has at most "
            f"{grid.blocks} of {config.samples_per_block} samples.",
            "Name the dataset that the file was made with: --dataset-file.",
        )
    cut = (samples, config.samples_per_block, config.dataset_chunk_size, config.seed)
    ledger = Ledger.new(identity.as_dict(), *cut, world, mode.replica_groups(world), config.epochs)
    ledger.import_aios(file if file.total_blocks is None else _without_total(file))
    progress = ledger.progress()
    if progress.finished:
        raise UsageError(
            f"Every chunk of {file.path} is done for the {config.epochs} epochs asked for.",
            f"Train longer: --epochs {(config.epochs or 0) + 1}",
            title="Nothing is left to train",
        )
    return progress


def _without_total(file: LedgerFile) -> LedgerFile:
    """Before the tokens are counted the number of blocks is only an upper limit, so it isn't compared yet."""
    return replace(file, total_blocks=None)


def _aios_warnings(file: LedgerFile) -> tuple[str, ...]:
    warnings = [
        "AI-OS's weights are not read: the new run starts with fresh ones and trains the remaining chunks.",
        "AI-OS cuts text into samples differently, so the same chunk number means different text here.",
        f"Nothing in {file.path.parent} is changed.",
        *file.notes,
    ]
    if file.chunk_size is None:
        warnings.append(
            f"The folder's name does not say the chunk size; {RunConfig().dataset_chunk_size} is taken unless "
            "another one is given (Chunk size, or --dataset-chunk-size)."
        )
    return tuple(warnings)
