"""Verdict on each mode: works, works less well than it could, or why not. From facts and self-tests alone; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from core.config import RunConfig
from core.config.mode import VARIANTS, Mode
from core.doctor.devices import NO_CUDA
from core.doctor.finding import MODES, Finding, Topic
from core.errors import PreflightError, RankdeckError
from core.formatting import listed
from core.launch.mode import DEEPSPEED, TORCH, ModeChoice, check_cuda, choose_mode
from core.launch.preflight import check_torch
from core.machine.devices.device import Device
from core.machine.devices.names import device_label
from core.machine.packages import MissingPackageError
from core.machine.platform import Platform

# Each mode's line and settings; ZeRO by PyTorch's engine, so that DeepSpeed's line is about DeepSpeed.
_SETTINGS: Final = (
    *(
        (Topic(f"mode_{one.name}", one.title, MODES, one.summary), {**one.settings, "zero_engine": TORCH})
        for one in VARIANTS
    ),
    (
        Topic("mode_deepspeed", "ZeRO with DeepSpeed", MODES, "DeepSpeed shares out the state instead of PyTorch."),
        {"mode": Mode.ZERO, "zero_stage": 2, "zero_engine": DEEPSPEED},
    ),
)
WITHOUT_NCCL: Final = "GPUs exchange tensors through the machine's memory"
GLOO: Final = "gloo"
NCCL: Final = "nccl"


def check_modes(
    available: Sequence[Device], cpus: Sequence[Device], platform: Platform, links: Mapping[str, Finding]
) -> list[Finding]:
    """Judge each mode on the devices that a run would take by itself.

    Args:
        links: Findings of the self-tests of the links, by backend; empty before they have run.
    """
    gpus = [device for device in available if device.kind == "cuda" and not device.hidden_by]
    why_cpu = ""
    try:
        check_cuda(gpus, platform)
    except PreflightError as error:
        why_cpu = error.next_step
    devices = list(cpus[:2]) if why_cpu or not gpus else gpus
    return [_verdict(topic, settings, devices, platform, why_cpu, links) for topic, settings in _SETTINGS]


def _verdict(
    topic: Topic,
    settings: Mapping[str, object],
    devices: Sequence[Device],
    platform: Platform,
    why_cpu: str,
    links: Mapping[str, Finding],
) -> Finding:
    is_single = settings["mode"] == Mode.SINGLE
    chosen = devices[:1] if is_single else devices
    names = listed([device_label(device) for device in chosen])
    if not is_single and len(chosen) < 2:
        step = "It can be tried on two CPU devices: choose CPU 0 and CPU 1."
        return topic.not_tried(f"needs at least two devices, and there is one: {names}", step)
    try:
        check_torch(platform)
        choice = choose_mode(RunConfig().replace(**settings), chosen, platform)
    except MissingPackageError as error:
        return topic.not_tried(error.cause, error.next_step, "install_deepspeed")
    except RankdeckError as error:
        return topic.fail(error.cause, error.next_step, cause=error.title)
    broken = _broken_link(choice, links)
    if broken is not None:
        return topic.fail(f"needs {broken.name}, whose self-test failed", "", cause=broken.cause or broken.name)
    return _how_well(topic, choice, chosen, names, why_cpu)


def _broken_link(choice: ModeChoice, links: Mapping[str, Finding]) -> Finding | None:
    """The link that this mode needs, if its self-test failed; flags go over gloo beside NCCL."""
    needed = [choice.backend, GLOO] if choice.backend else []
    return next((links[name] for name in needed if name in links and links[name].level == "fail"), None)


def _how_well(topic: Topic, choice: ModeChoice, chosen: Sequence[Device], names: str, why_cpu: str) -> Finding:
    over = f" over {'NCCL' if choice.backend == NCCL else choice.backend}" if choice.backend else ""
    text = f"works on {names}{over}"
    if why_cpu:
        return topic.warn(f"{text}, not on a GPU", why_cpu, "install_cuda", cause=NO_CUDA)
    if choice.backend == GLOO and chosen[0].kind == "cuda":
        step = "Use larger micro-batches or a sync interval; NCCL, which is faster, is part of PyTorch for Linux."
        return topic.warn(f"{text}: tensors go through the machine's memory", step, cause=WITHOUT_NCCL)
    return topic.ok(text)
