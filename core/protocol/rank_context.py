"""`RankContext`: a rank's place in its run, as the run host hands it over in one environment variable.

torchrun's own names (RANK, WORLD_SIZE …) are set as well, for libraries that read them. A program of the user's own
gets those, never this variable: it holds the token.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core.errors import UsageError
from core.parsing import parse_json
from core.records import read_record

# A `RankContext` as JSON.
ENV_RANK: Final = "RANKDECK_RANK"
# The run's folder, for programs of the user's own.
ENV_RUN_DIR: Final = "RANKDECK_RUN_DIR"
# Stands in the environment of all processes of an attempt, so that what is left of it is found (Linux).
ENV_RUN_MARK: Final = "RANKDECK_RUN_MARK"
# The folder where a run host meets the processes that a launcher has started to be its ranks.
ENV_MEETING: Final = "RANKDECK_MEETING"
# In a run's folder: the config of the newest attempt, complete with the recipe's defaults.
CONFIG_FILE: Final = "attempt.toml"
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class RankContext:
    """One rank's place.

    Attributes:
        rank, world_size: Among all ranks of the run.
        device: ``cpu`` or ``cuda:0``, the one GPU that it sees.
        mode: The mode it trains in, resolved.
        engine: Who shards in the modes zero and fsdp: ``deepspeed`` or ``torch``; empty in other modes.
        backend: ``nccl``, ``gloo``, or empty where ranks exchange no tensors.
        rendezvous: A ``file://`` URL where the ranks find each other.
        attempt: Number of the attempt, from 1; 0 for a rank without a host.
        micro_batch: Samples that it works on at once; 0 where a program has batches of its own.
        grad_accum_steps: Micro-batches that it adds up before an optimizer step.
        halvings: How often the micro-batch was halved since the host started.
        restarts: How often this host has restarted the ranks after one of them failed.
        checkpoint: Folder of the checkpoint to resume from.
        host_address: Where the host listens: this machine, or another one's address.
        port: The port there; 0: there is no host.
        token: What it must say to the host.
        host_pid: The host's process id; 0 when it is not known.
        best_metric: A checkpoint is taken whenever this metric of the evaluations is better than before; empty: not.
        best_is_higher: Its higher values are the better ones.
    """

    rank: int
    world_size: int
    device: str
    mode: str = "single"
    engine: str = ""
    compiles: bool = False
    backend: str = ""
    rendezvous: str = ""
    threads: int = 1
    run_dir: Path = Path()
    recipe_dir: Path = Path()
    attempt: int = 0
    micro_batch: int = 0
    grad_accum_steps: int = 0
    halvings: int = 0
    restarts: int = 0
    checkpoint: Path | None = None
    host_address: str = LOOPBACK
    port: int = 0
    token: str = field(default="", repr=False)
    host_pid: int = 0
    best_metric: str = ""
    best_is_higher: bool = False

    @property
    def config_file(self) -> Path:
        return self.run_dir / CONFIG_FILE

    @property
    def on_cpu(self) -> bool:
        return self.device == "cpu"

    def to_env(self) -> dict[str, str]:
        """The variable that `from_env` reads; ASCII, whatever the paths hold."""
        return {ENV_RANK: json.dumps(dataclasses.asdict(self), default=str)}

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> RankContext:
        """Read the context of the rank that has this environment; raises `UsageError` where there is none."""
        text = environment.get(ENV_RANK)
        if text is None:
            raise _not_started_by_a_host(f"{ENV_RANK} is not set")
        try:
            return read_record(cls, parse_json(text), strict=True)
        except ValueError as error:
            raise _not_started_by_a_host(f"{ENV_RANK} cannot be read: {error}") from None


def _not_started_by_a_host(why: str) -> UsageError:
    return UsageError(f"A rank is started by its run host, and {why}.", "Use `rankdeck train`.")
