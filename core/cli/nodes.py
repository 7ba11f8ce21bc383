"""`rankdeck train --nodes`: one machine's part in a run of several.

On the machine that `--rdzv-endpoint` names it opens the desk; on the others it checks in there. When enough are there,
each starts torchrun's elastic agent, whose workers are this command again (`core.cli.launched`).

An agent whose network is cut waits in torch's store for as long as TCP does, a quarter of an hour, whatever its
time-outs say: the call is one of C++ that no signal ends. So this command, which stays at the desk, ends it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from core.cli.interrupts import Interrupts, counted_interrupts
from core.cli.node_return import ReturnWait
from core.cli.node_worker import LEAVE
from core.cli.terminal import Terminal
from core.config.distributed import DistributedConfig
from core.errors import PreflightError, RankdeckError
from core.formatting import duration
from core.launch.command_line import command_text
from core.launch.meeting import Meeting, folder_of
from core.launch.nodes.agent import (
    address_of,
    addresses,
    agent_command,
    compared,
    line_elsewhere,
    resolve_host,
    without_own_flags,
)
from core.launch.nodes.channel import Channel, ChannelError
from core.launch.nodes.desk import CheckIn, Desk, NodeFacts
from core.launch.nodes.job import NodeJob
from core.launch.nodes.key import key_file, make_key, read_key
from core.machine.devices.device import Device
from core.machine.devices.visible import VARIABLE
from core.machine.platform import this_platform
from core.paths import PACKAGE_FOLDER, RUNS_VARIABLE
from core.processes.identity import own
from core.run_folder.store import RunStore
from core.training_python import training_python

_RETURN_S: Final = 15.0  # A machine that has lost the host's looks so long for it before it gives up.
# At the end of a run the desk closes as soon as the agent beside it has ended; the others do in the same moment.
_LET_END_S: Final = 2.0
_POLL_S: Final = 0.5
# For the other machines to ask at the desk, and hear of an error; one that is gone is known as such after 6 s.
_NOTICE_LIMIT_S: Final = 5.0
_AGENT_STARTS: Final = 5  # an agent ends by itself if another one dies just as all of them meet
_SAY_EVERY_S: Final = 30.0
_TERM_LIMIT_S: Final = 45.0
_INTERRUPTED: Final = 130


def run_nodes(job: NodeJob, terminal: Terminal, runs_dir: Path, devices: Sequence[Device]) -> int:
    """Takes part in a run until its end; returns the exit code.

    Args:
        job: What is asked for.
        terminal: Shows who is there.
        runs_dir: The shared folder.
        devices: This machine's, one rank each.

    Raises:
        RankdeckError: This machine cannot take part.
    """
    host = resolve_host(job.host)
    nic, address = address_of(job.nic, addresses(), host)
    here = {"is_host": host == address, "name": socket.gethostname(), "session": secrets.token_hex(8)}
    job = job.replace(nic=nic, address=address, **here)
    node = _Node(job, terminal, runs_dir, devices)
    with counted_interrupts() as interrupts:
        return node.host(interrupts) if job.is_host else node.join(interrupts)


class _Node:
    """This machine, from its check-in to the end of its agent."""

    def __init__(self, job: NodeJob, terminal: Terminal, runs_dir: Path, devices: Sequence[Device]) -> None:
        self._job = job
        self._terminal = terminal
        self._runs_dir = runs_dir
        self._devices = devices
        self._argv = sys.argv[1:]

    def host(self, interrupts: Interrupts) -> int:
        """As the machine with the run's host."""
        key = make_key()
        line = line_elsewhere(self._argv, self._job)
        count = self._job.count
        desk = Desk(self._facts(), self._runs_dir, count.least, count.most, self._terminal.say, self._say_lost)
        try:
            desk.open(self._job.address, self._job.desk_port, key)
            if "SLURM_STEP_ID" not in os.environ:  # srun has started the others
                self._terminal.say(f"On each other machine: cd {shlex.quote(str(Path.cwd()))} && {command_text(line)}")
                self._terminal.say(f"The key that they need is in {key_file()}.")
            if not self._wait(interrupts, lambda: (desk.is_complete, desk.missing())):
                return _INTERRUPTED
            return self._lead_until_end(desk, interrupts)
        except RankdeckError as error:
            desk.end(error, _NOTICE_LIMIT_S)
            raise
        finally:
            desk.close()

    def _lead_until_end(self, desk: Desk, interrupts: Interrupts) -> int:
        wait, failure = self._return_wait(desk), None
        try:
            for _ in range(_AGENT_STARTS):
                code = self._agent(desk.job, interrupts, wait.look)
                if code is not None:
                    return code
                self._terminal.warn("torchrun has ended before the run. It is started again.")
            raise RankdeckError(
                f"torchrun has ended before the run {_AGENT_STARTS} times.",
                "Read what it has printed above, and resume the run.",
                title="The agent has ended",
            )
        except RankdeckError as error:
            failure = error
            raise
        finally:
            wait.close(is_stopped=interrupts.count > 0, error=failure)

    def _return_wait(self, desk: Desk) -> ReturnWait:
        job = self._job
        place = DistributedConfig(launch_method="torchrun", job=job.session)
        meeting = Meeting(folder_of(place, own()))

        def find_run() -> RunStore | None:
            run = meeting.remembered_run()
            return None if run is None else RunStore(run.run_dir)

        return ReturnWait(lambda: desk.lacks(job.count.fewest), job.count.text, job.wait_s, find_run)

    def join(self, interrupts: Interrupts) -> int:
        """As another machine: comes back while the run continues, until the host's machine is gone."""
        key = read_key()
        limit_s, why = self._job.wait_s, ""
        while True:
            visit = self._check_in(key, interrupts, limit_s, why)
            if visit is None:
                return _INTERRUPTED
            try:
                if not self._wait(interrupts, visit.poll):
                    return _INTERRUPTED
                code = self._stay(visit, interrupts)
            finally:
                visit.close()
            if code is not None:
                return code
            limit_s, why = _RETURN_S, "The run's host, or the network to it, is gone. "
            self._terminal.warn(f"{why}Looking for it for {limit_s:.0f} s.")

    def _stay(self, visit: CheckIn, interrupts: Interrupts) -> int | None:
        """Runs agents while the host's machine is there; returns the exit code, None where that is gone."""
        while True:
            code = self._agent(visit.job, interrupts, visit.poll)
            if code is not None:
                visit.leave()
                return code
            try:
                visit.poll()
            except ChannelError:
                return None
            self._terminal.warn("torchrun has ended before the run. It is started again.")

    def _check_in(self, key: str, interrupts: Interrupts, limit_s: float, why: str) -> CheckIn | None:
        deadline, shown = time.monotonic() + limit_s, ""
        while not interrupts.count:
            try:
                return CheckIn(Channel(self._job.host, self._job.desk_port, key), self._facts())
            except ChannelError as error:
                if error.why == "key":
                    raise
                if time.monotonic() > deadline:
                    raise _host_missing(why, error) from None
                if error.cause != shown:
                    shown = error.cause
                    self._terminal.say(f"Waiting for the machine with the run's host: {error.cause}")
            time.sleep(_POLL_S)
        return None

    def _wait(self, interrupts: Interrupts, look: Callable[[], tuple[bool, str]]) -> bool:
        """Until enough machines are there; False where Ctrl+C came first."""
        deadline, next_s = time.monotonic() + self._job.wait_s, 0.0
        while not interrupts.count:
            is_complete, missing = look()
            if is_complete:
                return True
            now = time.monotonic()
            if now > deadline:
                raise PreflightError(
                    f"The run did not start within {self._job.wait_s:.0f} s: {missing}",
                    "Start the command on the missing machines, or ask for fewer.",
                    option="--nodes MIN:MAX",
                    title="A node is missing",
                )
            if now > next_s:
                next_s = now + _SAY_EVERY_S
                self._terminal.say(f"Waiting: {missing}")
            time.sleep(_POLL_S)
        return False

    def _say_lost(self, name: str, left: int) -> None:
        """Says on the host's machine what follows from the loss of another one."""
        job, count = self._job, self._job.count
        again = f"To take {name} back, start its line there again: {command_text(line_elsewhere(self._argv, job))}"
        if left >= count.fewest:
            cause = f"{name}, or the network to it, is gone. The run continues from its last checkpoint with what is "
            cause += f"left: {left} of {count.most} nodes."
        else:
            cause = f"{name}, or the network to it, is gone, and with --nodes {count.text} the run does not continue "
            cause += f"with {left}. It waits for {name} up to {duration(job.wait_s)}."
            again += f". To continue with what is left, stop this with Ctrl+C and resume with --nodes {count.most}."
        self._terminal.error(RankdeckError(cause, again, title="A node is lost"))

    def _agent(self, name: str, interrupts: Interrupts, look: Callable[[], object]) -> int | None:
        """Runs torchrun; returns the command's exit code, None where the agent ended before the run.

        Args:
            name: The job's.
            interrupts: Ctrl+C.
            look: Called all the time; raises `ChannelError` where the agent is to end, and what ends the command.
        """
        with tempfile.TemporaryDirectory(prefix="rankdeck-node-") as folder:
            result = Path(folder) / "exit-code"
            python = str(training_python().executable)
            arguments = without_own_flags(self._argv)
            agent = agent_command(self._job, name, len(self._devices), python, arguments)
            command = _ending_with_us(agent)
            env = {**os.environ, **self._job.replace(result=str(result), command=own()).to_env(), **self._environment()}
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env, start_new_session=True) as process:
                try:
                    self._follow(process, interrupts, Path(folder) / LEAVE, look)
                finally:
                    _end(process)
            with contextlib.suppress(OSError, ValueError):
                return int(result.read_text(encoding="utf-8"))
        return _INTERRUPTED if interrupts.count else None

    def _follow(
        self, agent: subprocess.Popen[bytes], interrupts: Interrupts, leave: Path, look: Callable[[], object]
    ) -> None:
        handled = 0
        while agent.poll() is None:
            if handled < interrupts.count:
                handled += 1
                leave.touch()
                agent.send_signal(signal.SIGTERM)
            if not handled:
                try:
                    look()
                except ChannelError:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        agent.wait(_LET_END_S)
                    agent.kill()  # its workers see that, and end their ranks
                    return
            time.sleep(_POLL_S)

    def _environment(self) -> dict[str, str]:
        """The shared folder also for tokens, and the devices that were chosen on this machine."""
        gpus = [device.uuid for device in self._devices if device.kind == "cuda"]
        path = os.pathsep.join(filter(None, [str(PACKAGE_FOLDER), os.environ.get("PYTHONPATH", "")]))
        chosen = {RUNS_VARIABLE: str(self._runs_dir), "PYTHONPATH": path, VARIABLE: ",".join(gpus)}
        # With a store that agents share, torch 2.13's rank 0 tells its address in the first round only, so an agent
        # that joins later waits for it in vain, and all of them fail.
        own_store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        return {**chosen, **own_store, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "TORCH_CPP_LOG_LEVEL": "ERROR"}

    def _facts(self) -> NodeFacts:
        from core import __version__

        arguments = [*compared(self._argv), str(Path.cwd())]
        return NodeFacts(
            self._job.name,
            {
                "rankdeck": __version__,
                "torch": this_platform().torch_version or "",
                "python": platform.python_version(),
                "interpreter": str(training_python().executable),
                "package": str(PACKAGE_FOLDER),
                "flags": hashlib.sha256("\0".join(arguments).encode("utf-8", "surrogatepass")).hexdigest(),
                "nodes": self._job.count.text,
            },
        )


def _ending_with_us(command: Sequence[str]) -> list[str]:
    """The command, whose process the kernel ends with this one."""
    if sys.platform != "win32":  # Windows was refused before
        from core.processes.posix import LAUNCHER

        return [*LAUNCHER, "exec", str(os.getpid()), *command]
    return list(command)


def _end(agent: subprocess.Popen[bytes]) -> None:
    """Ends an agent that is left when this command is interrupted; it gives its workers 30 s."""
    if agent.poll() is None:
        agent.terminate()
        try:
            agent.wait(_TERM_LIMIT_S)
        except subprocess.TimeoutExpired:
            agent.kill()


def _host_missing(why: str, error: ChannelError) -> RankdeckError:
    step = error.next_step
    if why:
        step = "Resume the run on the machines that are left: rankdeck resume RUN"
    return RankdeckError(f"{why}{error.cause}", step, title="The machine with the run's host is missing")
