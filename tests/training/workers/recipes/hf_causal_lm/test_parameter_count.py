"""Parameter counts of pretrained models, by their configuration, whole and with LoRA."""

from __future__ import annotations

from pathlib import Path

from core.recipes.catalog import get_recipe
from tests.training.workers.recipes.hf_causal_lm.made import make_folder, needs_peft, needs_transformers
from tests.training.workers.test_parameter_count import count


@needs_transformers
@needs_peft
def test_a_pretrained_model_is_counted_by_its_configuration(tmp_path: Path) -> None:
    recipe, folder = get_recipe("hf_causal_lm"), make_folder(tmp_path / "model")
    full = count(recipe, model=str(folder))
    assert full is not None and full.total == full.trained > 0
    lora = count(recipe, {"training": "lora", "lora_rank": 2}, model=str(folder))
    assert lora is not None and lora.total == full.total + lora.trained and 0 < lora.trained < full.total
    assert count(recipe, model="owner/not-on-this-machine") is None
