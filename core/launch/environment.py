"""The environment variables that a rank gets on top of its host's own, and those it must not inherit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.config import RunConfig
from core.config.distributed import ENV_DISTRIBUTED, DistributedConfig
from core.machine.devices.device import Device
from core.machine.devices.visible import CUDA, HIP, ROCR
from core.machine.platform import Platform
from core.protocol.rank_context import ENV_MEETING

# Left over from another launcher or a container tool, these would lead torch astray: Docker Desktop and Kubernetes
# publish names that 127.0.0.1 then resolves to, and an elastic agent's store is not ours.
# Patterns of names.
REMOVED: Final = (
    "KUBERNETES_*", "DOCKER_HOST", "MASTER_PORT", "TORCHELASTIC_*", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_*",
    "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", ENV_DISTRIBUTED, ENV_MEETING, "GPU_DEVICE_ORDINAL",
)  # fmt: skip
# For ranks on AMD's GPUs: keep scratch memory between kernels, copy by the cards' own engines, and let a card read
# another one's memory over PCIe, which RCCL uses where there is no link between them.
AMD_DEFAULTS: Final = {"HSA_NO_SCRATCH_RECLAIM": "1", "HSA_ENABLE_SDMA": "1", "HSA_FORCE_FINE_GRAIN_PCIE": "1"}


def of_rank(
    place: DistributedConfig, devices: Sequence[Device], platform: Platform, *, shards: bool = False
) -> dict[str, str]:
    """Return the variables of a rank of Rankdeck's own program; `shards`: it holds a share of the training state."""
    env = {
        **place.to_env(),
        **_card(devices[place.rank], platform),
        **_memory(devices[place.rank], platform, shards=shards),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",  # a crash in native code leaves a traceback in the rank's log
        "OMP_NUM_THREADS": str(cpu_threads(platform, place.devices_per_node)),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    if platform.name == "windows":
        env["USE_LIBUV"] = "0"  # no Windows build of torch has it
    if platform.name == "linux" and place.backend:
        env["GLOO_SOCKET_IFNAME"] = place.nic or "lo"
    if place.backend == "nccl":
        env["NCCL_SOCKET_IFNAME"] = place.nic or "lo"
    return env


def hash_seed(config: RunConfig) -> str:
    """Return the seed for the order of sets of texts: 32 bits of the run's."""
    return str(config.seed % (1 << 32))


def defaults_of_rank(config: RunConfig, device: Device, *, own_program: bool) -> dict[str, str]:
    """Return variables for a rank whose user has not set them."""
    env = {} if own_program else {"PYTHONHASHSEED": hash_seed(config)}
    if own_program and device.kind == "cpu":
        # OpenMP's threads sleep while they wait for each other. Spinning, they take the cores from the very threads
        # that they wait for as soon as another program runs: docs/decisions/0026.
        env["OMP_WAIT_POLICY"] = "PASSIVE"
    if device.is_amd:
        env |= AMD_DEFAULTS
    return env


def of_script(
    place: DistributedConfig, devices: Sequence[Device], platform: Platform, *, together: bool
) -> dict[str, str]:
    """Return the variables of a rank that starts a user's program, whose environment is theirs to choose.

    `together`: the ranks are one program in several processes, as under torchrun.
    """
    return {
        **place.torchrun_variables(),
        **_card(devices[place.rank], platform),
        "PYTHONUNBUFFERED": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **(_all_visible(devices) if together else {}),
    }


def _card(device: Device, platform: Platform) -> dict[str, str]:
    # Each rank sees its own card only, named by UUID: the card that was ticked, whatever order CUDA counts in.
    # Windows cannot tell an empty variable from none, so there "no card" is written -1.
    if device.is_amd:
        return _amd_cards([device])
    if device.kind == "cuda":
        return {CUDA: device.uuid}
    no_rocm = {} if platform.rocm_build is None else {ROCR: ""}
    return {CUDA: "-1" if platform.name == "windows" else "", **no_rocm}


def _amd_cards(devices: Sequence[Device]) -> dict[str, str]:
    # A card without a UUID has its number only.
    return _rocm_variables([str(d.rocm_index) if d.uuid.startswith("AMD-") else d.uuid for d in devices])


def _rocm_variables(named: Sequence[str]) -> dict[str, str]:
    """Show these cards by ROCm's runtime; HIP then counts them from 0.

    Both of HIP's names are set, since a value of the user's own would count among the cards that are left.
    """
    places = ",".join(map(str, range(len(named))))
    return {ROCR: ",".join(named), HIP: places, CUDA: places}


def _all_visible(devices: Sequence[Device]) -> dict[str, str]:
    """Show the ticked cards, in rank order: a program made for torchrun picks its own by LOCAL_RANK."""
    if any(device.is_amd for device in devices):
        return _amd_cards([device for device in devices if device.is_amd])
    uuids = [device.uuid for device in devices if device.kind == "cuda"]
    return {CUDA: ",".join(uuids)} if uuids else {}


def _memory(device: Device, platform: Platform, *, shards: bool) -> dict[str, str]:
    """Return variables with which a CPU rank keeps its memory from step to step.

    A page that comes back from the system is cleared first, and comes one by one (docs/decisions/0025). On GPUs torch
    keeps memory by itself; other systems' allocators have no such settings.
    """
    if platform.name != "linux" or device.kind != "cpu":
        return {}
    kept = {
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # bytes; what is larger goes back at once, or holes would grow
        "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    }
    # torch's own: tensors of 2 MiB and more begin at multiples of that, in pages of that size. glibc (2.36) looks for a
    # hole of 2 MiB more than the tensor, and so never finds the one that such a tensor left. Where shards live beside
    # whole weights the heap grew by 4 MiB in every other step: 699 MiB after 110 steps in ZeRO 2, 534 without this.
    return kept if shards else {**kept, "THP_MEM_ALLOC_ENABLE": "1"}


def cpu_threads(platform: Platform, ranks: int) -> int:
    return max(1, platform.physical_cores // ranks)
