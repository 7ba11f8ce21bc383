"""Exports for other programs: CSV, TensorBoard event files, weights, a Hugging Face folder.

`export` does it. Nothing here touches what the run's host writes; a live run is exported as far as it is.
"""

from typing import Final

KINDS: Final = {
    "csv": "CSV tables",
    "tensorboard": "TensorBoard event files",
    "safetensors": "weights (safetensors)",
    "hf": "Hugging Face folder",
}
"""Each kind, and what people call it."""
