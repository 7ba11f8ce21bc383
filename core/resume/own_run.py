"""Resume plan of a run of ours: what its folder holds, what is asked of it now, and what that comes to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.checkpoints.checkpoint_choice import choose_checkpoint, list_checkpoints, newer_than
from core.checkpoints.restore_plan import plan_restore, policy_for
from core.checkpoints.store import Checkpoint, CheckpointStore, DamagedCheckpoint
from core.config.device_names import with_counts
from core.config.layers import Given, config_from_given, former_settings, normalise, with_absolute_paths
from core.config.lr_schedule import CONTINUE, RESTART
from core.config.mode import Mode
from core.config.run_config import RunConfig
from core.data.dataset import DatasetIdentity, check_size, identify
from core.data.listing import MISSING
from core.errors import ConfigError, DatasetError, RunBusyError, StateFileError, UsageError
from core.formatting import duration
from core.launch.preflight import check_engine, check_folder, check_torch, needed_bytes
from core.launch.resolved import ResolvedRun, resolve, trained_run
from core.launch.stop_rules import stop_rules
from core.launch.work_plan import total_steps
from core.ledger.ledger import Ledger
from core.ledger.progress import LedgerProgress
from core.ledger.state_file import FILE_NAME, LedgerFile, read_state_file
from core.machine.devices import Device
from core.machine.devices.names import RankNames, device_label
from core.machine.packages import check_packages
from core.machine.platform import Platform
from core.recipes.best_checkpoint import best_checkpoint
from core.recipes.catalog import get_recipe
from core.recipes.check import check_by_recipe
from core.recipes.outside_code import outside_code
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.recipes.user_script import read_script
from core.resume.changes import SavedRate, change_lines, device_count_notes, other_chunk_size
from core.resume.plan import ResumePlan
from core.run_folder.naming import label
from core.run_folder.record import notes_of
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

HOST_LEAVES_S: Final = 5.0
# Who gives one of these wants it kept; otherwise it gives way to the global batch.
_SHARES: Final = ("batch_size", "grad_accum_steps")


@dataclass(frozen=True, slots=True)
class _Folder:
    """Contents of a run's folder: the checkpoint to resume from, newer ones that are passed over, and their ledger."""

    store: RunStore
    state: RunState
    config: RunConfig
    checkpoint: Checkpoint | None
    damaged: Sequence[DamagedCheckpoint]
    ledger: Ledger | None

    @property
    def step(self) -> int:
        return 0 if self.checkpoint is None else self.checkpoint.step

    @property
    def mode(self) -> str:
        return self.state.mode if self.checkpoint is None else self.checkpoint.mode

    @property
    def world_size(self) -> int:
        return self.state.world_size if self.checkpoint is None else self.checkpoint.world_size


def plan_own(
    store: RunStore,
    runs_dir: Path,
    changes: dict[str, Any],
    asked: str | None,
    available: Sequence[Device],
    platform: Platform,
    *,
    accept_code: bool,
) -> ResumePlan:
    """Plan to resume a run of ours from checkpoint `asked`; see `core.resume.planner.plan_resume`."""
    state = _idle_state(store)
    before = store.config()
    config = changed_config(before, changes, store.dir)
    folder = _read_folder(store, state, before, asked)
    rate = None if folder.checkpoint is None else SavedRate(folder.checkpoint, before)
    _check_something_left(state, config, folder.step, changes, rate)
    _check_time_limit(state, config)
    dataset = _check_data(config, folder.ledger)
    recipe = get_recipe(config.recipe)
    run = resolve(config, recipe, available, platform, keep_global_batch=not any(name in changes for name in _SHARES))
    _check_run(run, folder, asked)
    code = outside_code(run.config)
    accepted = code is None or accept_code or code.is_known_of(outside_code(before))
    if accepted:
        check_by_recipe(run.config, recipe, global_batch=run.batch.global_, resumes=True)
    checkpoints, checkpoint = list_checkpoints(store.checkpoints), folder.checkpoint
    progress = _progress(run, folder)
    labels = {device.uuid: device_label(device) for device in available}
    return ResumePlan(
        run_dir=store.dir,
        runs_dir=runs_dir,
        config=run.config,
        checkpoint=None if checkpoint is None else checkpoint.number,
        step=folder.step,
        progress=progress,
        learning_rate="" if rate is None else rate.text(run, _end(run, folder)),
        mode_then=folder.mode,
        mode_now=run.mode,
        devices_then=state.devices,
        devices_now=tuple(device.uuid for device in run.devices),
        device_labels=labels,
        damaged=tuple(_passed_over(item, checkpoint) for item in folder.damaged),
        copies=_copies_text(run, folder, RankNames(() if checkpoint is None else checkpoint.devices, labels)),
        changed=change_lines(trained_run(before, recipe, folder.mode, folder.world_size), run),
        code=code,
        code_accepted=accepted,
        warnings=(*device_count_notes(changes), *run.device_notes, *dataset.notes, *_warnings(run, folder)),
        checkpoints=() if recipe.self_contained else checkpoints,
        best=best_checkpoint(store.columns, recipe.heroes, checkpoints),
        set_aside=newer_than(checkpoint.number, checkpoints) if asked is not None and checkpoint else (),
        goes_back=asked is not None,
        name=label(state, notes_of(store.dir)),
    )


def _idle_state(store: RunStore) -> RunState:
    store.refuse_links()
    state = _wait_for_host_to_leave(store)
    if store.is_locked() or state.is_live:
        raise RunBusyError(
            f"{state.run_id} is {state.state}.", f"Watch it with rankdeck attach {store.dir.name}, or stop it first."
        )
    return state


def _wait_for_host_to_leave(store: RunStore) -> RunState:
    """Return the state; a host that has written "stopped" needs a moment to end before its run can be resumed."""
    deadline = time.monotonic() + HOST_LEAVES_S
    while (state := store.state()) and not state.is_live and store.is_locked() and time.monotonic() < deadline:
        time.sleep(0.05)
    return state


def _read_folder(store: RunStore, state: RunState, config: RunConfig, asked: str | None) -> _Folder:
    top = read_state_file(store.ledger) if store.ledger.exists() else None
    checkpoint, damaged = _resumed_from(store, top, asked)
    ledger = Ledger.from_file(top) if top is not None and top.form == "rankdeck" else None
    if checkpoint is not None:
        ledger = Ledger.from_file(read_state_file(checkpoint.folder / FILE_NAME))
    elif broken := [item for item in damaged if item.diverged_at is None]:
        raise StateFileError(
            f"Every checkpoint in {store.checkpoints} is damaged: {broken[0].reason}",
            "Put a copy of that folder back, or start a new run.",
        )
    return _Folder(store, state, config, checkpoint, damaged, ledger)


def _check_run(run: ResolvedRun, folder: _Folder, asked: str | None) -> None:
    config, recipe = run.config, run.recipe
    check_packages(recipe.requires, f"The recipe {recipe.title}")
    check_engine(run)
    if not recipe.self_contained:
        check_torch(run.platform)
    elif asked is not None:
        raise UsageError(
            f"{recipe.title} runs a program that decides itself where it continues.",
            "Don't choose a checkpoint.",
            option="leave out --checkpoint",
        )
    elif recipe.name == USER_SCRIPT:
        read_script(config.options, config.env)
    stop_rules(config, recipe)
    size = None if folder.checkpoint is None else folder.checkpoint.size_bytes
    check_folder(folder.store.dir, needed_bytes=needed_bytes(config, size))


def _resumed_from(
    store: RunStore, top: LedgerFile | None, asked: str | None
) -> tuple[Checkpoint | None, Sequence[DamagedCheckpoint]]:
    """The checkpoint that was asked for, else the newest good one; and the newer ones that are passed over."""
    if asked is not None:
        return choose_checkpoint(store.checkpoints, asked.strip(), store.dir.name), ()
    return CheckpointStore(store.checkpoints).newest_valid(None if top is None else top.checkpoint)


def _passed_over(bad: DamagedCheckpoint, used: Checkpoint | None) -> str:
    if bad.diverged_at is None:
        return f"Not used: checkpoint {bad.number}: {bad.reason}"
    instead = f"continuing from checkpoint {used.number}, step {used.step:,}" if used else "starting with fresh weights"
    return f"Checkpoint {bad.number} (step {bad.diverged_at:,}) is diverged (weights are not finite); {instead}."


def changed_config(config: RunConfig, changes: dict[str, Any], folder: Path) -> RunConfig:
    """A run's settings with changes; a new limit replaces the old one, be it steps or epochs.

    Raises:
        ConfigError, StateFileError: A change that cannot be made.
    """
    if "recipe" in changes and changes["recipe"] != config.recipe:
        raise ConfigError(
            "recipe",
            f"The run in {folder} trains {config.recipe}, not {changes['recipe']}.",
            "Resume it with its own recipe, or start a new run.",
            option="leave out --recipe",
        )
    before = Given({"env": config.env} if config.env else {})
    given = with_absolute_paths(normalise(changes), Path.cwd()).over(before)
    if "dataset_chunk_size" in changes:
        wanted = config_from_given(given, config).dataset_chunk_size
        if wanted != config.dataset_chunk_size:
            raise other_chunk_size(str(folder), config.dataset_chunk_size, wanted)
    limits = (config.steps, config.epochs, config.lr)
    if ("steps" in changes) != ("epochs" in changes):
        config = config.replace(steps=None, epochs=None)
    changed = config_from_given(given, config)
    if "lr_schedule" not in changes and (changed.steps, changed.epochs, changed.lr) != limits:
        # A choice holds for one resume, not for later ones.
        changed = changed.replace(lr_schedule=CONTINUE)
    return changed.replace(devices=with_counts(changed.devices)) if "devices" in changes else changed


def _end(run: ResolvedRun, folder: _Folder) -> int | None:
    if folder.ledger is None or run.recipe.self_contained:
        return run.config.steps if run.config.epoch_limit is None else None
    folder.ledger.change(world=run.world_size, groups=run.replica_groups, epochs=run.config.epoch_limit)
    return total_steps(run, folder.ledger, dict.fromkeys(range(run.replica_groups), folder.step))


def _check_something_left(
    state: RunState, config: RunConfig, step: int, changes: Mapping[str, Any], rate: SavedRate | None
) -> None:
    extended = "steps" in changes or "epochs" in changes
    if config.steps is not None and extended and config.steps <= step:
        raise ConfigError(
            "steps",
            f"The run has done {step:,} steps already, so training up to step {config.steps:,} leaves nothing to do.",
            f"Give more than {step}.",
        )
    if state.state == "finished" and not extended and step >= state.step:
        more = f"--steps {max(2 * step, 1)}" if config.epochs is None else f"--epochs {config.epochs + 1}"
        if rate is not None and rate.has_decayed_to_zero:
            more += f" --lr-schedule {RESTART}"
        raise _nothing_left(state, f"{step:,} steps", more)


def _check_time_limit(state: RunState, config: RunConfig) -> None:
    if config.max_hours is not None and state.trained_s >= config.max_hours * 3600:
        raise ConfigError(
            "max_hours",
            f"The run has trained for {duration(state.trained_s)} already; its time limit is {config.max_hours:g} h.",
            "Set a higher time limit, or none.",
            option="--max-hours none",
        )


def _nothing_left(state: RunState, done: str, more: str) -> UsageError:
    return UsageError(
        f"{state.run_id} has finished ({done}).",
        "Train longer.",
        title="Nothing is left to train",
        option=f"rankdeck resume {state.run_id} {more}",
    )


def _progress(run: ResolvedRun, folder: _Folder) -> LedgerProgress | None:
    # All there is has diverged: what was trained goes with the weights.
    fresh = folder.checkpoint is None and bool(folder.damaged)
    # How often a self-contained program reads its data is its own business.
    if folder.ledger is None or run.recipe.self_contained or fresh:
        return None
    epochs = run.config.epoch_limit
    if folder.ledger.setup.epochs != epochs:
        folder.ledger.change(epochs=epochs)
    progress = folder.ledger.progress()
    if progress.finished:
        epochs = epochs or 0
        raise _nothing_left(folder.state, f"{epochs} epoch{'s' if epochs != 1 else ''}", f"--epochs {epochs + 1}")
    return progress


def _check_data(config: RunConfig, ledger: Ledger | None) -> DatasetIdentity:
    try:
        identity = identify(config.dataset_file, config.data_files)
    except DatasetError as error:
        if error.title != MISSING:
            raise
        raise DatasetError(
            error.cause, "If it has moved, choose the data.", title=MISSING, option="--dataset-file PATH"
        ) from None
    check_size(identity, config.seq_len)
    if ledger is not None and identity.kind != "none":
        ledger.check_same(identity.as_dict(), config.dataset_chunk_size, config.samples_per_block)
    return identity


def _copies_text(run: ResolvedRun, folder: _Folder, names: RankNames) -> str:
    synchronise = run.mode.is_apart and run.config.sync_every is not None
    policy = policy_for(run.config.merge_policy, folder.state.fallback is not None)
    return plan_restore(
        folder.checkpoint, run.mode, run.world_size, policy, synchronise=synchronise, name=names.short
    ).note


def _warnings(run: ResolvedRun, folder: _Folder) -> tuple[str, ...]:
    state, fresh = folder.state, folder.checkpoint is None
    warnings = []
    if former := former_settings(folder.store.run_toml):
        warnings.append(f"Settings of an earlier version, without effect in this one: {', '.join(former)}.")
    if state.state == "interrupted" and not fresh:
        warnings.append("It was interrupted; steps after that checkpoint are trained again.")
    if not fresh and (run.mode, run.world_size) != (folder.mode, len(state.devices)):
        warnings.append(
            "Other devices or another mode: training continues from the same weights, but "
            "results are not bit-identical."
        )
    if state.fallback and run.mode != Mode.SINGLE:
        warnings.append(f"It had fallen back: {state.fallback}")
    if run.config.val_samples is not None and run.config.val_samples == folder.config.val_samples:
        warnings.append(f"Each evaluation measures {run.config.val_samples:,} held-out samples at most, as before.")
    return tuple(warnings)
