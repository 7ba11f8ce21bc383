"""Machine server: answers another computer's requests about this machine and its runs, over one SSH connection.

It is a program of that connection and ends with it, but not the run hosts that it starts. It listens nowhere.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from core.checkpoints.checkpoint_choice import choose_checkpoint
from core.checkpoints.store import MANIFEST, CheckpointStore
from core.client import resume_run
from core.doctor.quick import examine
from core.environments.make import Progress, make
from core.environments.places import environments_folder
from core.environments.record import choose, free_folder
from core.environments.wanted import default_name, wanted_for
from core.errors import PreflightError, RankdeckError, RunNotFoundError, UsageError
from core.files.atomic import explained, read_bytes
from core.held_files import open_binary
from core.launch.mode import why_no_cuda
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import this_platform
from core.machine.torch_builds import ENV_TORCH_INDEX, has_nvidia_driver, read_driver
from core.machines.agent import READY, Agent, Frames, checked_path, root_folder
from core.machines.run_files import KEPT, METRICS, MODEL, kept_files, send_new
from core.machines.tree import tree_file
from core.paths import CHECKPOINTS, default_runs_dir
from core.resume.planner import plan_resume
from core.run_folder.store import RunStore

_BLOCK: Final = 1 << 18
_LEVELS: Final = {"ok": "OK", "warn": "WARN", "fail": "FAIL", "not_tried": "–"}
Answer = dict[str, Any]
Handler = Callable[[Mapping[str, Any]], Answer]


class Server(Agent):
    """The agent's requests, those about this machine and its runs, and `more` by name."""

    def __init__(self, frames: Frames, more: Mapping[str, Handler]) -> None:
        super().__init__(frames, root_folder())
        self._handlers: dict[str, Handler] = {
            "devices": self._devices,
            "doctor": self._doctor,
            "make_environment": self._make_environment,
            "update": self._update,
            "files": self._files,
            "get": self._get,
            "place": self._place,
            "resume": self._resume,
            **more,
        }

    def serve(self) -> int:
        """Send its greeting, then answer until the stream ends."""
        self.frames.send({"ready": READY, "runs_dir": str(default_runs_dir().absolute())})
        return super().serve()

    def answer(self, frame: dict[str, Any], rest: Iterator[bytes]) -> Answer:
        op = str(frame.get("op"))
        try:
            handler = self._handlers.get(op)
            return handler(frame) if handler is not None else super().answer(frame, rest)
        except RankdeckError as error:
            return {"error": {**error.as_dict(), "exit_code": error.exit_code}}

    # the machine

    def _devices(self, _: Mapping[str, Any]) -> Answer:
        platform = this_platform()
        with DeviceMonitor(cpu_too=platform.is_cpu_only) as monitor:
            found = monitor.devices()
            problem = monitor.problem or why_no_cuda(found, platform)
        listed = [dataclasses.asdict(device) for device in found]
        return {"platform": dataclasses.asdict(platform), "devices": listed, "problem": problem}

    def _doctor(self, _: Mapping[str, Any]) -> Answer:
        code = 0
        for finding in examine(default_runs_dir(), this_platform()):
            self.frames.send({"line": f"{_LEVELS[finding.level]:4}  {finding.topic.name}: {finding.text}"})
            if finding.next_step:
                self.frames.send({"line": f"      → {finding.next_step}"})
            code = PreflightError.exit_code if finding.stops_runs else code
        return {"code": code}

    def _make_environment(self, frame: Mapping[str, Any]) -> Answer:
        """Make the environment that trains, unless a Python with PyTorch is there."""
        if this_platform().torch_version is not None:
            return {"code": 0}
        build = str(frame["build"])
        driver = read_driver() if build == "auto" and has_nvidia_driver(sys.platform) else None
        folder = free_folder(environments_folder(), default_name(build, driver))
        wheels = Path(str(frame["wheels"])) if frame.get("wheels") else None
        wanted = wanted_for(folder, build, (), driver, os.environ.get(ENV_TORCH_INDEX) or None, wheels)
        wanted = dataclasses.replace(wanted, requirements=tuple(frame["requirements"]))

        def report(progress: Progress) -> None:
            self.frames.send({"line": progress.text})

        choose(make(wanted, report, lambda: False))
        return {"code": 0}

    # runs

    def _update(self, frame: Mapping[str, Any]) -> Answer:
        """Send what a copy of a run lacks."""
        known = {str(name): (int(size), str(digest)) for name, (size, digest) in frame["known"].items()}
        send_new(_run(frame), known, self.frames.send)
        return {"done": True}

    def _files(self, frame: Mapping[str, Any]) -> Answer:
        """Name a checkpoint, the files that are kept of the base model, and the run's model if there is one."""
        store, asked = _run(frame), frame["checkpoint"]
        if asked is not None:
            numbers = [choose_checkpoint(store.checkpoints, str(asked), store.dir.name).number]
        else:
            numbers = [one.number for one in CheckpointStore(store.checkpoints).list() if not one.diverged]
        kept = [_listed(store, name) for name in kept_files(store.dir)]
        model = _listed(store, MODEL) if frame["model"] and store.model.is_file() else None
        return {"checkpoint": numbers[-1] if numbers else None, "kept": kept, "model": model}

    def _get(self, frame: Mapping[str, Any]) -> Answer:
        """Send a file of a checkpoint or of the base model, or the model, from a byte on."""
        store, name, offset = _run(frame), str(frame["path"]), int(frame["offset"])
        parts = checked_path(name)
        path = store.dir.joinpath(*parts)
        if len(parts) == 3 and parts[0] == CHECKPOINTS:
            path = store.checkpoints.joinpath(*parts[1:])  # that of an old run has another name
        elif name != MODEL and not KEPT.fullmatch(name):
            raise UsageError(f"{name!r:.80} is not a file of a checkpoint.", "Use the same version on both sides.")
        if parts[-1] == MANIFEST:
            self.frames.send({}, read_bytes(path))
            return {"done": True}
        with explained(f"{path} could not be read"), open_binary(path) as file:
            file.seek(offset)
            while block := file.read(_BLOCK):
                self.frames.send({}, block)
        return {"done": True}

    def _place(self, frame: Mapping[str, Any]) -> Answer:
        """Put files that have arrived into a run's folder, in their order; no host may have it.

        A folder whose metrics are not the beginning of those that arrived was continued here: it is refused, since one
        side would lose its work.
        """
        folder = _run_dir(str(frame["run_id"]))
        with explained(f"{folder} could not be made"):
            folder.joinpath("logs").mkdir(parents=True, exist_ok=True)
        store = RunStore(folder)
        with store.lock():
            blobs = {path: self.store.blob(digest) for path, digest, _ in frame["files"]}
            if not _begins_with(blobs.get(METRICS), store.metrics):
                raise UsageError(
                    f"{folder.name} was continued here too: its metrics are not the beginning of those sent.",
                    f"Resume it where it was sent from, or remove {folder}.",
                    title="The run was continued in two places",
                )
            for path, digest, size in frame["files"]:
                self.store.place(digest, size, folder.joinpath(*checked_path(path)))
        return {"path": str(folder)}

    def _resume(self, frame: Mapping[str, Any]) -> Answer:
        """Resume a run, of whose code the person was asked on the other side."""
        plan = plan_resume(str(_run(frame).dir), default_runs_dir(), frame["changes"], accept_code=True)
        resume_run(plan)
        return {"lines": list(plan.summary().lines)}


def _run(frame: Mapping[str, Any]) -> RunStore:
    return RunStore.open(Path(str(frame["run_dir"])))


def _listed(store: RunStore, name: str) -> Answer:
    file = tree_file(name, store.dir / name)
    return {"path": name, "size": file.size, "sha256": file.sha256}


def _begins_with(whole: Path | None, beginning: Path) -> bool:
    """Whether a file begins with the bytes of another one, which may be missing."""
    if not beginning.exists():
        return True
    if whole is None:
        return beginning.stat().st_size == 0
    with open_binary(whole) as file, open_binary(beginning) as first:
        while block := first.read(_BLOCK):
            if file.read(len(block)) != block:
                return False
    return True


def _run_dir(run_id: str) -> Path:
    """The folder of a run by its name: below the folder of runs, never elsewhere."""
    parts = checked_path(run_id)
    if len(parts) != 1:
        raise RunNotFoundError(f"{run_id!r:.80} is not the name of a run.", "List the runs: rankdeck runs.")
    return default_runs_dir().absolute() / parts[0]
