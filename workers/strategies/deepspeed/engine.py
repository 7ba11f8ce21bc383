"""Imports DeepSpeed and makes its engine, without compiler, MPI or libaio.

Everything that depends on a version of DeepSpeed stands here and in `shards`. Read with the sources of 0.16.5 (the
newest with a wheel for Windows) and 0.19.8.
"""

from __future__ import annotations

import datetime
import logging
import os
import types
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.distributed_c10d import _set_pg_timeout
from torch.optim import Optimizer

from core.errors import ConfigError, RankdeckError
from core.launch.deepspeed import refusal
from workers.strategies.base import RankPlace


class DeepSpeedError(RankdeckError):
    title = "DeepSpeed could not be used"


def import_deepspeed(place: RankPlace) -> Any:
    """The package, quieted to warnings; raises `DeepSpeedError` where its import fails or brings nothing."""
    if place.device.type == "cpu":
        # A CPU device in a machine with GPUs is not one.
        os.environ["DS_ACCELERATOR"] = "cpu"
    else:
        _name_gpu_for_deepspeed(place.device)
    before = logging.root.manager.disable
    # It sets its own logger's level while it is imported.
    logging.disable(logging.INFO)
    try:
        import deepspeed
    except Exception as error:  # whatever a package's import may raise
        raise DeepSpeedError(
            f"DeepSpeed could not be imported ({type(error).__name__}: {_first_line(error)}).",
            "Reinstall it: pip install --force-reinstall deepspeed; or choose the engine torch.",
        ) from error
    finally:
        logging.disable(before)
    # What an interrupted installation leaves can be imported.
    if not hasattr(deepspeed, "initialize"):
        raise DeepSpeedError(
            "The installed DeepSpeed is incomplete: most of its files are missing.",
            "Reinstall it: pip install --force-reinstall deepspeed; or choose the engine torch.",
        )
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    return deepspeed


def _name_gpu_for_deepspeed(device: torch.device) -> None:
    """Set the two variables by which DeepSpeed finds a rank's GPU as it reads them.

    A rank sees one GPU, named by UUID. DeepSpeed 0.19.8 takes each name in `CUDA_VISIBLE_DEVICES` for one of NVML's
    numbers (`CUDA_Accelerator._get_nvml_gpu_id`), and `LOCAL_RANK` for the number of the device (`zero.Init`). CUDA
    has read its variable by now, and a process that this rank starts finds the same GPU by the number.
    """
    torch.cuda.synchronize(device)
    number = _nvml_number(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    if number is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(number)
    os.environ["LOCAL_RANK"] = str(device.index or 0)


def _nvml_number(uuid: str) -> int | None:
    """The GPU's number; None where `uuid` is none of NVML's, as for AMD's cards."""
    import pynvml

    try:
        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID(uuid)))
    except pynvml.NVMLError:
        return None


def make_engine(
    place: RankPlace,
    model: nn.Module,
    optimizer: Optimizer,
    settings: Mapping[str, Any],
    deepspeed: Any,
    written: str = "",
) -> Any:
    """DeepSpeed's engine around a model on its device, over the existing process group.

    The model is changed in place, and DeepSpeed's flat partitions take the place of the optimizer's parameters.
    `written` is the person's own configuration that `settings` were made from, if any: a setting in it that DeepSpeed
    refuses raises `ConfigError`, all else `DeepSpeedError`.
    """
    # Which of its own C++ kernels could be compiled here: none. Else on the CPU it would build one at once.
    deepspeed.ops.__compatible_ops__ = {"deepspeed_shm_comm": False}
    os.environ.setdefault("LOCAL_RANK", str(place.rank))  # it wants to see one
    buffers = [(module, dict(module._buffers)) for module in model.modules() if module._buffers]
    try:
        # No MPI discovery; `device_rank`: this process sees one device only, whatever its local rank.
        deepspeed.init_distributed("nccl" if place.backend == "nccl" else "gloo", auto_mpi_discovery=False)
        if written:
            _check_config(settings, deepspeed)
        engine, *_ = deepspeed.initialize(
            args=types.SimpleNamespace(device_rank=place.device.index or 0),
            model=model,
            optimizer=optimizer,
            config=dict(settings),
            dist_init_required=False,
        )
    except ConfigError:
        raise
    except Exception as error:  # assertions, pydantic's errors, whatever lies below
        raise DeepSpeedError(
            f"DeepSpeed {deepspeed.__version__} could not be set up ({type(error).__name__}: {_first_line(error)}).",
            "Choose the engine torch, or see this rank's log for the rest.",
        ) from error
    _limit_waiting(engine, place.timeout_s)
    for module, held in buffers:
        # DeepSpeed 0.16 casts them with the weights; a running mean has to stay exact.
        module._buffers.update(held)
    return engine


def _check_config(settings: Mapping[str, Any], deepspeed: Any) -> None:
    """Let DeepSpeed read the configuration by itself, so that its refusal is known to be about the configuration."""
    from pydantic import ValidationError  # DeepSpeed's own dependency

    try:
        deepspeed.DeepSpeedConfig(dict(settings))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        names = tuple(str(name) for name in first["loc"])
        unknown = first["type"] == "extra_forbidden"
        what = "there is no such setting" if unknown else f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise _refused(deepspeed, f"{'.'.join(names)}: {what}") from error
    except Exception as error:  # assertions, whatever lies below
        raise _refused(deepspeed, f"it: {_first_line(error)}".rstrip(".")) from error


def _refused(deepspeed: Any, what: str) -> ConfigError:
    return refusal(
        f"DeepSpeed {deepspeed.__version__} does not accept {what}",
        "Correct or remove it. DeepSpeed's settings are described at https://www.deepspeed.ai/docs/config-json/.",
    )


def _limit_waiting(engine: Any, timeout_s: float) -> None:
    """Set the collective timeout in DeepSpeed's own process groups, which it makes with torch's 10 or 30 minutes."""
    names = ("data_parallel_group", "seq_data_parallel_group", "expert_data_parallel_group")
    groups = [getattr(engine, name, None) for name in names]
    for group in groups:
        if isinstance(group, dist.ProcessGroup):
            _set_pg_timeout(datetime.timedelta(seconds=timeout_s), group)


def forget_gradients(engine: Any) -> None:
    """Drop gradients that were added up and are not to be used.

    `zero_grad` does that for gradients that hang on parameters; those that stages 2 and 3 have summed up already are
    dropped as DeepSpeed itself does when it skips a step.
    """
    wrapped = engine.optimizer
    wrapped.zero_grad()
    for name in ("averaged_gradients", "all_grad_tensors"):
        held = getattr(wrapped, name, None)
        if isinstance(held, dict):
            held.clear() if hasattr(wrapped, "persistent_parameters") else held.update(dict.fromkeys(held))
    if hasattr(wrapped, "partition_gradients"):  # stages 1 and 2 count micro-batches from -1
        wrapped.micro_step_id = -1
        if getattr(wrapped, "cpu_offload", False):
            wrapped.reset_cpu_buffers()


def grad_norm(engine: Any, device: torch.device) -> torch.Tensor:
    """The last step's norm before clipping, of all ranks' gradients; not finite when the step was skipped."""
    norm = float("inf") if getattr(engine.optimizer, "overflow", False) else engine.get_global_grad_norm()
    return torch.as_tensor(float("nan") if norm is None else norm, dtype=torch.float32, device=device)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "no reason given")[:300]
