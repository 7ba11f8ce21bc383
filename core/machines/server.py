"""Machine server: answers another computer's requests about this machine and its runs, over one SSH connection.

It is a program of that connection and ends with it; it listens nowhere. What it starts are run hosts, which do not end.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from core.checkpoints.store import MANIFEST, CheckpointStore
from core.client import resume_run
from core.doctor import software
from core.doctor.quick import examine
from core.environments.make import Progress, make
from core.environments.places import environments_folder
from core.environments.record import choose, free_folder
from core.environments.wanted import default_name, wanted_for
from core.errors import RankdeckError, RunNotFoundError, UsageError
from core.files.atomic import explained, read_bytes, sha256_file
from core.held_files import open_binary
from core.launch.mode import why_no_cuda
from core.machine.devices.monitor import DeviceMonitor
from core.machine.platform import this_platform
from core.machine.torch_builds import ENV_TORCH_INDEX, has_nvidia_driver, read_driver
from core.machines.agent import READY, Agent, Frames, checked_path, root_folder
from core.machines.run_stream import KEPT, MODEL, RunStream, kept_files
from core.machines.tree import tree_file
from core.paths import default_runs_dir
from core.resume.planner import plan_resume
from core.run_folder.store import RunStore
from core.training_python import training_python

_BLOCK: Final = 1 << 18
Answer = dict[str, Any]
Handler = Callable[[Mapping[str, Any]], Answer]


class Server(Agent):
    """The agent's requests, and those about this machine and its runs.

    Args:
        frames: The two streams.
        more: Further requests by name.
    """

    def __init__(self, frames: Frames, more: Mapping[str, Handler]) -> None:
        super().__init__(frames, root_folder())
        self._handlers: dict[str, Handler] = {
            "devices": self._devices,
            "doctor": self._doctor,
            "make_environment": self._make_environment,
            "find": self._find,
            "checkpoints": self._checkpoints,
            "get": self._get,
            "place": self._place,
            "resume": self._resume,
            **more,
        }

    def serve(self) -> int:
        """Sends its greeting, then answers until the stream ends."""
        self.frames.send({"ready": READY, "runs_dir": str(default_runs_dir().absolute())})
        return super().serve()

    def answer(self, frame: dict[str, Any], rest: Iterator[bytes]) -> Answer:
        op = str(frame.get("op"))
        try:
            if op == "follow":
                self._follow(frame)
                return {"done": True}
            handler = self._handlers.get(op)
            return handler(frame) if handler is not None else super().answer(frame, rest)
        except RankdeckError as error:
            return {"error": {**error.as_dict(), "exit_code": error.exit_code}}

    # the machine

    def _devices(self, _: Mapping[str, Any]) -> Answer:
        platform = this_platform()
        with DeviceMonitor(cpu_too=platform.is_cpu_only, with_processes=True) as monitor:
            found, slots = monitor.devices(), monitor.cpu_slots()
            samples = {sample.uuid: dataclasses.asdict(sample) for sample in monitor.sample()}
            problem = monitor.problem or why_no_cuda(found, platform)
        listed = [dataclasses.asdict(device) for device in found]
        seen = dataclasses.asdict(platform)
        return {"platform": seen, "devices": listed, "cpus": len(slots), "samples": samples, "problem": problem}

    def _doctor(self, _: Mapping[str, Any]) -> Answer:
        for finding in examine(default_runs_dir(), this_platform()):
            if finding.topic is not software.WINDOW:  # it is not opened there
                self.frames.send({"finding": finding.as_dict(), "stops_runs": finding.stops_runs})
        return {"done": True}

    def _make_environment(self, frame: Mapping[str, Any]) -> Answer:
        """Makes the environment that trains, unless a Python with PyTorch is there."""
        if this_platform().torch_version is not None:
            return {"done": True}
        build = str(frame["build"])
        driver = read_driver() if build == "auto" and has_nvidia_driver(sys.platform) else None
        folder = free_folder(environments_folder(), default_name(build, driver))
        wheels = Path(str(frame["wheels"])) if frame.get("wheels") else None
        wanted = wanted_for(folder, build, (), driver, os.environ.get(ENV_TORCH_INDEX) or None, wheels)
        wanted = dataclasses.replace(wanted, requirements=tuple(frame["requirements"]))

        def report(progress: Progress) -> None:
            self.frames.send({"progress": progress.text, "done_bytes": progress.done, "total": progress.total})

        choose(make(wanted, report, lambda: False))
        return {"done": True, "python": str(training_python().executable)}

    # runs

    def _find(self, frame: Mapping[str, Any]) -> Answer:
        """A run by its name: its folder, state, and the hash of its metrics."""
        store = RunStore(_run_dir(str(frame["run_id"])))
        if not store.run_toml.exists():
            return {"run_dir": None}
        state, size, digest = store.state(), 0, ""
        if store.metrics.exists():
            size, digest = store.metrics.stat().st_size, sha256_file(store.metrics)
        found = {"run_dir": str(store.dir), "state": state.as_dict(), "live": state.is_live}
        return {**found, "metrics_bytes": size, "metrics_sha256": digest}

    def _follow(self, frame: Mapping[str, Any]) -> None:
        """Sends what is new in a run: what there is, or until it has ended, and the connection is for nothing else."""
        known = {str(name): (int(size), str(digest)) for name, (size, digest) in frame["known"].items()}
        stream = RunStream(_run(frame), known, self.frames.send)
        if frame.get("once"):
            stream.send_new()
            return
        watch = threading.Thread(target=self._end_with_the_other_side, daemon=True)
        watch.start()
        stream.run()

    def _end_with_the_other_side(self) -> None:
        self.frames.source.read(1)  # nothing more is sent: what comes is the end
        os._exit(0)

    def _checkpoints(self, frame: Mapping[str, Any]) -> Answer:
        """Every checkpoint, what is kept of the base model, and the size of the model, if there is one."""
        store = _run(frame)
        folder, listed = store.checkpoints.name, CheckpointStore(store.checkpoints).list()
        found = [{"number": one.number, "folder": folder, "diverged": bool(one.diverged)} for one in listed]
        files = [tree_file(name, store.dir / name) for name in kept_files(store.dir)]
        kept = [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in files]
        size = store.model.stat().st_size if store.model.is_file() else None
        return {"checkpoints": found, "kept": kept, "model_bytes": size}

    def _get(self, frame: Mapping[str, Any]) -> Answer:
        """A file of a checkpoint or of the base model, or the model, from a byte on."""
        store, name, offset = _run(frame), str(frame["path"]), int(frame["offset"])
        parts = checked_path(name)
        is_listed = name == MODEL or KEPT.fullmatch(name) is not None
        if not is_listed and (len(parts) != 3 or parts[0] != store.checkpoints.name):
            raise UsageError(f"{name!r:.80} is not a file of a checkpoint.", "Use the same version on both sides.")
        path = store.dir.joinpath(*parts)
        if parts[-1] == MANIFEST:
            self.frames.send({}, read_bytes(path))
            return {"done": True}
        with explained(f"{path} could not be read"), open_binary(path) as file:
            file.seek(offset)
            while block := file.read(_BLOCK):
                self.frames.send({}, block)
        return {"done": True}

    def _place(self, frame: Mapping[str, Any]) -> Answer:
        """Puts files that have arrived into a run's folder, in their order; no host may have it."""
        folder = _run_dir(str(frame["run_id"]))
        with explained(f"{folder} could not be made"):
            folder.joinpath("logs").mkdir(parents=True, exist_ok=True)
        store = RunStore(folder)
        with store.lock():
            for path, digest, size in frame["files"]:
                self.store.place(digest, size, folder.joinpath(*checked_path(path)))
        return {"path": str(folder)}

    def _resume(self, frame: Mapping[str, Any]) -> Answer:
        """Resumes a run, or only plans it."""
        accepted = bool(frame["accept_code"])
        plan = plan_resume(str(_run(frame).dir), default_runs_dir(), frame["changes"], accept_code=accepted)
        if not frame["dry_run"]:
            resume_run(plan)
        return {"plan": dataclasses.asdict(plan.summary())}


def _run(frame: Mapping[str, Any]) -> RunStore:
    return RunStore.open(Path(str(frame["run_dir"])))


def _run_dir(run_id: str) -> Path:
    """The folder of a run by its name: below the folder of runs, never elsewhere."""
    parts = checked_path(run_id)
    if len(parts) != 1:
        raise RunNotFoundError(f"{run_id!r:.80} is not the name of a run.", "List the runs: rankdeck runs.")
    return default_runs_dir().absolute() / parts[0]
