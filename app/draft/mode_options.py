"""Mode options: which modes and settings can be chosen, by devices, recipe and installed packages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from core.config.mode import RESOLVED_MODES, Mode
from core.launch.mode import DEEPSPEED, TORCH

NO_DEEPSPEED = "DeepSpeed is not installed in this Python. PyTorch's engine works without it."
_ON_CPU = "CPU devices already keep everything in main memory."
_STAGE_1 = "With PyTorch's engine, stage 1 keeps the optimizer state on the device. Stages 2 and 3 can offload it."


@dataclass(frozen=True, slots=True)
class ModeOptions:
    """Rules on which modes can be chosen.

    Attributes:
        recommended: The mode for the ticked devices.
        ranks: Number of ticked devices.
        supported: The recipe's modes.
        on_cpu: They are CPU devices.
        deepspeed: DeepSpeed can be imported.
        own_program: The recipe runs a program of its own, which shares its work as it likes.
    """

    recommended: Mode = Mode.DDP
    ranks: int = 0
    supported: Collection[str] = RESOLVED_MODES
    on_cpu: bool = False
    deepspeed: bool = True
    own_program: bool = False

    def engine(self, texts: Mapping[str, str]) -> str:
        """Return the engine that would shard; `texts` are those of `app.form.draft_fields.MODE_FIELDS`."""
        chosen = texts.get("zero_engine", "auto")
        if chosen == "auto":
            return DEEPSPEED if self.deepspeed else TORCH
        return chosen

    def reasons(self, mode: str, texts: Mapping[str, str]) -> dict[str, str]:
        """Why settings of ZeRO or FSDP mean nothing here, by field; those that do are not in it."""
        found: dict[str, str] = {}
        if self.on_cpu:
            found |= {"offload_optimizer": _ON_CPU, "offload_parameters": _ON_CPU}
        elif len(Mode.read(mode).variants) > 1 and self.engine(texts) == TORCH and texts.get("zero_stage", "1") == "1":
            found["offload_optimizer"] = _STAGE_1
        if not self.deepspeed:
            found["deepspeed_config"] = NO_DEEPSPEED
        return found
