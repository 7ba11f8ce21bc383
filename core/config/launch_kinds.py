"""Kinds of launch files, by the names that flags and menus have for them."""

from __future__ import annotations

from typing import Final

# Each kind, and what people call it.
LAUNCH_KINDS: Final = {
    "torchrun": "script for torchrun",
    "launch": "script for torch.distributed.launch",
    "sbatch": "Slurm batch script",
    "env": "environment file",
    "powershell": "PowerShell script",
    "distributed": "distributed settings",
}

SUFFIXES: Final = {
    "torchrun": ".sh",
    "launch": ".sh",
    "sbatch": ".sbatch",
    "env": ".env",
    "powershell": ".ps1",
    "distributed": ".toml",
}
