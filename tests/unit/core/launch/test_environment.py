"""What a rank finds in its environment: its place, its card, and settings for memory and threads."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from core.config import RunConfig
from core.config.distributed import DistributedConfig
from core.launch.environment import REMOVED, cpu_threads, defaults_of_rank, hash_seed, of_rank, of_script
from core.machine.devices.device import Device
from core.machine.devices.visible import CUDA, HIP, ROCR
from core.machine.platform import Platform

CARDS_VARIABLES = (CUDA, HIP, ROCR)
pytestmark = pytest.mark.windows
LINUX, WINDOWS = Platform("linux", "2.13.0", "13.0", 6), Platform("windows", "2.13.0", "13.0", 6)
CPU = Device("cpu:0", "cpu", 0, "A processor")
CARDS = [Device(f"GPU-{n}", "cuda", n, "A card") for n in range(2)]


def place(rank: int, backend: str = "") -> DistributedConfig:
    return DistributedConfig(2, rank, rank, devices_per_node=2, backend=backend)


def test_a_named_interface_takes_loopbacks_place() -> None:
    env = of_rank(place(0, "nccl").replace(nic="eth1"), CARDS, LINUX)
    assert (env["GLOO_SOCKET_IFNAME"], env["NCCL_SOCKET_IFNAME"]) == ("eth1", "eth1")


def test_a_rank_knows_its_place_and_sees_its_card_only() -> None:
    env = of_rank(place(1, "nccl"), CARDS, LINUX)
    assert {name: env[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")} == {
        "RANK": "1",
        "LOCAL_RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
    }
    assert (env["CUDA_VISIBLE_DEVICES"], env["OMP_NUM_THREADS"]) == ("GPU-1", "3")


@pytest.mark.parametrize(
    ("platform", "backend", "names"),
    [
        (LINUX, "", set()),
        (LINUX, "gloo", {"GLOO_SOCKET_IFNAME"}),
        (LINUX, "nccl", {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}),
        (WINDOWS, "gloo", {"USE_LIBUV"}),
        (WINDOWS, "", {"USE_LIBUV"}),
    ],
)
def test_ranks_talk_over_loopback(platform: Platform, backend: str, names: set[str]) -> None:
    env = of_rank(place(0, backend), CARDS, platform)
    assert {env[name] for name in names if name.endswith("IFNAME")} <= {"lo"}
    assert env.keys() & {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "USE_LIBUV"} == names
    assert env["MASTER_ADDR"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("platform", "device", "kept", "card"),
    [(LINUX, CPU, True, ""), (WINDOWS, CPU, False, "-1"), (LINUX, CARDS[0], False, "GPU-0")],
)
def test_cpu_ranks_under_linux_keep_their_memory(platform: Platform, device: Device, kept: bool, card: str) -> None:
    env = of_rank(DistributedConfig(), [device], platform)
    assert ("MALLOC_TRIM_THRESHOLD_" in env) is kept is ("THP_MEM_ALLOC_ENABLE" in env)
    assert env["CUDA_VISIBLE_DEVICES"] == card
    assert "MALLOC_TRIM_THRESHOLD_" not in of_script(DistributedConfig(), [device], platform, together=False)


@pytest.mark.parametrize(("ranks", "threads"), [(1, 6), (2, 3), (4, 1), (12, 1)])
def test_ranks_share_the_processors_threads(ranks: int, threads: int) -> None:
    assert cpu_threads(LINUX, ranks) == threads


@pytest.mark.parametrize(("seed", "text"), [(0, "0"), (7, "7"), (2**32 + 5, "5")])
def test_sets_of_texts_have_an_order_that_follows_the_seed(seed: int, text: str) -> None:
    assert hash_seed(RunConfig(seed=seed)) == text
    assert defaults_of_rank(RunConfig(seed=seed), CARDS[0], own_program=False) == {"PYTHONHASHSEED": text}


def test_threads_of_our_own_program_sleep_while_they_wait() -> None:
    passive = {"OMP_WAIT_POLICY": "PASSIVE"}
    assert defaults_of_rank(RunConfig(), CPU, own_program=True) == passive
    assert "OMP_WAIT_POLICY" not in defaults_of_rank(RunConfig(), CPU, own_program=False)
    assert "OMP_WAIT_POLICY" not in defaults_of_rank(RunConfig(), CARDS[0], own_program=True)


@pytest.mark.parametrize(("together", "visible"), [(True, "GPU-0,GPU-1"), (False, "GPU-1")])
def test_a_script_for_torchrun_sees_every_card(together: bool, visible: str) -> None:
    env = of_script(place(1).replace(master_port=4000), CARDS, LINUX, together=together)
    assert (env["CUDA_VISIBLE_DEVICES"], env["MASTER_PORT"], env["RANK"]) == (visible, "4000", "1")
    assert "OMP_NUM_THREADS" not in env and "PYTHONFAULTHANDLER" not in env, "those are the program's to choose"
    assert of_script(place(0), [CPU, CPU], LINUX, together=True)["CUDA_VISIBLE_DEVICES"] == ""


def test_what_another_launcher_left_is_removed_and_nothing_of_ours() -> None:
    def removed(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in REMOVED)

    assert all(map(removed, ("TORCHELASTIC_RUN_ID", "ROLE_RANK", "KUBERNETES_PORT", "DOCKER_HOST", "MASTER_PORT")))
    assert not any(map(removed, ("PATH", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "HF_TOKEN", "RANK")))


RADEON = Device("GPU-a1b2c3d4e5f60718", "cuda", 0, "Radeon", is_amd=True, rocm_index=0)
UNNAMED = Device("AMD-0000:0a:00.0", "cuda", 1, "Radeon", is_amd=True, rocm_index=1)
ROCM = Platform("linux", "2.13.0+rocm7.2", None, 6, rocm_build="7.2.26015")


@pytest.mark.parametrize(("device", "named"), [(RADEON, RADEON.uuid), (UNNAMED, "1")])
def test_a_rank_on_an_amd_card_sees_that_card_alone(device: Device, named: str) -> None:
    env = of_rank(DistributedConfig(), [device], ROCM)
    # ROCm's runtime leaves one card; HIP, by either of its names, then counts from 0.
    assert [env[name] for name in CARDS_VARIABLES] == ["0", "0", named]
    defaults = defaults_of_rank(RunConfig(), device, own_program=True)
    assert defaults.keys() >= {"HSA_NO_SCRATCH_RECLAIM", "HSA_ENABLE_SDMA", "HSA_FORCE_FINE_GRAIN_PCIE"}
    assert not any(name.startswith("HSA_") for name in defaults_of_rank(RunConfig(), CARDS[0], own_program=True))


def test_a_script_for_torchrun_sees_all_amd_cards_of_the_run() -> None:
    env = of_script(place(1), [RADEON, UNNAMED], ROCM, together=True)
    assert [env[name] for name in CARDS_VARIABLES] == ["0,1", "0,1", f"{RADEON.uuid},1"]


def test_a_cpu_rank_of_a_rocm_build_sees_no_card() -> None:
    env = of_rank(DistributedConfig(), [CPU], ROCM)
    assert (env["CUDA_VISIBLE_DEVICES"], env["ROCR_VISIBLE_DEVICES"]) == ("", "")
