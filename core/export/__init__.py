"""Exports for other programs: CSV, weights, a Hugging Face folder.

Nothing here touches the files of the run's host; a live run is exported up to its current step.
"""

from typing import Final

# Each kind, and what people call it.
KINDS: Final = {
    "csv": "CSV tables",
    "safetensors": "weights (safetensors)",
    "hf": "Hugging Face folder",
}

AUTO_DTYPE: Final = "auto"
# The numbers of weights in a folder that a recipe makes; "auto": the recipe's choice.
DTYPES: Final = (AUTO_DTYPE, "fp32", "bf16", "fp16")
# What safetensors files call them, and we.
DTYPE_NAMES: Final = {"F32": "fp32", "BF16": "bf16", "F16": "fp16", "F64": "fp64"}
