"""Process groups over loopback: gloo that listens on 127.0.0.1 and nowhere else, or NCCL.

torch's own gloo listens on whatever interface the machine's name resolves to, and on Windows the name of the loopback
adapter cannot be known. So gloo is registered once more, bound to 127.0.0.1, or for ranks on several machines to the
named network interface.
"""

from __future__ import annotations

import datetime
import functools
import socket
import warnings
from typing import Any, Final
from urllib.parse import urlsplit

import torch.distributed as dist

from core.errors import RankdeckError
from workers.strategies.base import RankPlace

LOOPBACK_GLOO: Final = "loopbackgloo"


class RendezvousError(RankdeckError):
    title = "The devices could not be connected"


def make_process_group(
    place: RankPlace, flags_timeout_s: float | None = None, *, cpu_tensors: bool = False
) -> dist.ProcessGroup:
    """Join the default process group and make a second one for flags and sums on the CPU; raise `RendezvousError`.

    Args:
        place: This rank's.
        flags_timeout_s: Limit of a collective of the second group; None: as in the default group.
        cpu_tensors: The default group takes tensors on the CPU too, also where NCCL takes those on the GPU.

    Returns:
        The group for small CPU tensors. It has its own connections, so its collectives may be in flight while the
        default group all-reduces gradients.
    """
    _filter_known_warnings()
    timeout = datetime.timedelta(seconds=place.timeout_s)
    try:
        _register_gloo(place.nic)
        backend = "nccl" if place.backend == "nccl" else LOOPBACK_GLOO
        if backend == "nccl" and cpu_tensors:
            backend = f"cpu:{LOOPBACK_GLOO},cuda:nccl"
        where: dict[str, Any] = {"init_method": place.rendezvous}
        if place.rendezvous.startswith("tcp://"):
            where = {"store": _store(place, timeout)}
        dist.init_process_group(backend, rank=place.rank, world_size=place.world_size, timeout=timeout, **where)
        patience = timeout if flags_timeout_s is None else datetime.timedelta(seconds=flags_timeout_s)
        group: dist.ProcessGroup = dist.new_group(backend=LOOPBACK_GLOO, timeout=patience)
    except (RuntimeError, ValueError, OSError) as error:
        raise RendezvousError(
            f"Rank {place.rank} of {place.world_size} could not join the process group over {place.backend}: {error}",
            "Choose parallel-independent without synchronisation, which needs no connection, or one device; "
            "`rankdeck doctor` checks this torch build.",
        ) from error
    return group


def _store(place: RankPlace, timeout: datetime.timedelta) -> Any:
    """torch's store, which rank 0 has listen on one address: by itself it would on all interfaces."""
    url = urlsplit(place.rendezvous)
    address, port = str(url.hostname), int(url.port or 0)
    descriptor = None
    if place.rank == 0:
        descriptor = socket.create_server((address, port), backlog=place.world_size + 16).detach()  # the store's
    made: Any = dist
    return made.TCPStore(
        address,
        port,
        place.world_size,
        is_master=place.rank == 0,
        timeout=timeout,
        wait_for_workers=False,
        master_listen_fd=descriptor,
    )


def _register_gloo(nic: str) -> None:
    if hasattr(dist.Backend, LOOPBACK_GLOO.upper()):
        return
    make = functools.partial(_make_gloo, nic)
    dist.Backend.register_backend(LOOPBACK_GLOO, make, extended_api=True, devices=["cpu", "cuda"])


def _make_gloo(nic: str, group: Any, _options: object = None) -> Any:
    gloo: Any = dist.ProcessGroupGloo
    options = gloo._Options()
    device = gloo.create_device(interface=nic) if nic else gloo.create_device(hostname="127.0.0.1")
    options._devices = [device]
    options._timeout = group.timeout
    options.global_ranks_in_group = group.global_ranks_in_group
    options.group_name = group.group_id
    return gloo(group.store, group.group_rank, group.group_size, options)


def _filter_known_warnings() -> None:
    """Filter two warnings that torch 2.13 gives at each call of collectives that it will rename, and at an import."""
    warnings.filterwarnings(
        "ignore", message=".*(all_gather_into_tensor|reduce_scatter_tensor).*", category=FutureWarning
    )
    warnings.filterwarnings("ignore", message=".*torch.jit.script.*", category=DeprecationWarning)
