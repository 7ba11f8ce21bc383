"""From what the form holds to a config, and what is said about what is wrong."""

from __future__ import annotations

import dataclasses
import json
import shlex

import pytest

from app.draft.draft import LOOKING, Draft, check_draft, draft_from_config
from app.form.draft_fields import default_texts, form_fields
from core.cli.parser import parse
from core.config.run_config import FIELD_BY_NAME
from core.data.dataset import DatasetIdentity
from core.launch.command_line import request_from_arguments
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe

RECIPE = get_recipe("minigpt")
TEXT = DatasetIdentity("a.txt", "file", 1, 1_000_000, "")
LINUX = Platform("linux", "2.13.0", None, 8)
WINDOWS = Platform("windows", "2.13.0", None, 8)
SLOTS = [Device(f"cpu:{i}", "cpu", i, "A processor") for i in range(2)]
CUDA = Platform("linux", "2.13.0+cu130", "13.0", 8)
CARDS = [Device(f"GPU-{i}", "cuda", i, "A card", 2**34) for i in range(2)]


def fields(**texts: str) -> Draft:
    return Draft(fields={**default_texts(RECIPE), **texts})


def test_the_untouched_form_can_be_started() -> None:
    checked = check_draft(Draft(), RECIPE, SLOTS, LINUX)
    assert checked.problems == {} and checked.config is not None
    assert checked.mode == "ddp" and checked.config.devices == ("cpux2",)
    assert checked.command == "rankdeck train --devices cpux2"


def test_a_recipe_that_makes_its_samples_needs_no_dataset_and_calls_a_block_an_epoch() -> None:
    recipe = get_recipe("clstm_ppo")
    checked = check_draft(Draft(recipe="clstm_ppo"), recipe, SLOTS, LINUX)
    assert checked.config is not None and checked.config.dataset_file == "none://"
    assert checked.command == "rankdeck train --recipe clstm_ppo --devices cpux2"
    assert checked.steps_per_epoch(TEXT) == checked.config.samples_per_block // 32
    traded = check_draft(Draft(recipe="clstm_ppo", dataset="prices.csv"), recipe, SLOTS, LINUX)
    assert traded.config is not None and traded.config.dataset_file == "prices.csv"


def test_under_windows_several_devices_train_independently_unless_one_says_otherwise() -> None:
    assert check_draft(Draft(), RECIPE, SLOTS, WINDOWS).mode == "independent"
    assert check_draft(Draft(mode="ddp"), RECIPE, SLOTS, WINDOWS).mode == "ddp"


def test_cards_are_named_by_uuid() -> None:
    checked = check_draft(Draft(), RECIPE, [CARDS[1]], CUDA)
    assert checked.config is not None and checked.config.devices == ("GPU-1",)
    assert checked.mode == "single"


def test_a_card_without_bf16_is_named_at_the_field() -> None:
    old = Device("GPU-old", "cuda", 0, "GeForce RTX 2080 Ti", 2**33, (7, 5))
    problems = check_draft(fields(precision="bf16"), RECIPE, [old], CUDA).problems
    assert "GeForce RTX 2080 Ti has no bf16" in problems["precision"].cause
    assert check_draft(fields(precision="bf16"), RECIPE, CARDS, CUDA).problems == {}


def test_a_card_that_this_torch_cannot_train_on_is_refused_unless_a_script_does() -> None:
    cpu_build = Platform("linux", "2.13.0+cpu", None, 8)
    problem = check_draft(Draft(), RECIPE, [CARDS[0]], cpu_build).problems["devices"]
    assert "built for the CPU only" in problem.cause and "pip install" in problem.next_step
    script = get_recipe("script")
    assert check_draft(Draft(recipe="script"), script, [CARDS[0]], cpu_build).problems == {}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("steps", "0", "below 1"),
        ("lr", "fast", "not a number"),
        ("n_layer", "2.5", "not a whole number"),
        ("global_batch_size", "7", "not a multiple of 16"),
        ("dropout", "0.95", "above 0.9"),
    ],
)
def test_a_wrong_value_is_named_by_its_field(name: str, text: str, words: str) -> None:
    checked = check_draft(fields(**{name: text}), RECIPE, SLOTS, LINUX)
    assert checked.config is None and words in checked.problems[name].cause


def test_every_wrong_field_is_named_at_once() -> None:
    assert set(check_draft(fields(lr="x", steps="y"), RECIPE, [], LINUX).problems) == {"lr", "steps", "devices"}


def test_what_cannot_be_read_hides_nothing_else() -> None:
    draft = fields(lr="x", global_batch_size="7", precision="fp16", dropout="2")
    problems = check_draft(draft, RECIPE, SLOTS, LINUX).problems
    assert set(problems) == {"lr", "dropout", "global_batch_size"}
    assert set(check_draft(draft, RECIPE, [], LINUX).problems) >= {"devices", "lr", "dropout", "global_batch_size"}
    probe = check_draft(draft, RECIPE, SLOTS, LINUX).probe
    assert probe is not None and (probe.config.lr, probe.config.precision) == (2e-3, "fp16")


def test_a_batch_number_that_cannot_be_read_says_nothing_of_the_others() -> None:
    assert set(check_draft(fields(batch_size="x", global_batch_size="7"), RECIPE, SLOTS, LINUX).problems) == {
        "batch_size"
    }


def test_a_mode_that_is_not_possible_hides_nothing_else() -> None:
    mixed = [SLOTS[0], CARDS[0]]
    problems = check_draft(
        Draft(mode="ddp", fields={"batch_size": "3", "grad_accum_steps": "2", "global_batch_size": "5"}),
        RECIPE,
        mixed,
        CUDA,
    ).problems
    assert set(problems) == {"devices", "global_batch_size"}


def test_an_empty_field_has_its_default_as_on_the_command_line() -> None:
    checked = check_draft(Draft(fields={"seq_len": "", "lr": " ", "steps": "", "n_layer": ""}), RECIPE, SLOTS, LINUX)
    config = checked.config
    assert config is not None and (config.seq_len, config.lr, config.steps) == (128, 2e-3, 1000)
    assert checked.command == "rankdeck train --devices cpux2"
    epochs = check_draft(Draft(fields={"epochs": "3"}), RECIPE, SLOTS, LINUX)
    assert epochs.config is not None and (epochs.config.steps, epochs.config.epochs) == (None, 3)
    assert epochs.placeholders["steps"] == "set by epochs"
    assert epochs.config.options["sample_prompt"] == "" and "held-out" in epochs.placeholders["sample_prompt"]


def test_a_number_that_was_switched_off_stays_so_in_a_copy() -> None:
    config = check_draft(Draft(fields={"checkpoint_every_s": "none"}), RECIPE, SLOTS, LINUX).config
    assert config is not None and config.checkpoint_every_s is None
    again = draft_from_config(config, SLOTS)
    assert again.fields["checkpoint_every_s"] == "none" and check_draft(again, RECIPE, SLOTS, LINUX).config == config


def test_while_devices_are_looked_for_nothing_is_wrong() -> None:
    checked = check_draft(Draft(), RECIPE, [], LINUX, looking=True)
    assert checked.problems == {} and checked.run is None and checked.waiting == LOOKING
    assert set(check_draft(fields(lr="x"), RECIPE, [], LINUX, looking=True).problems) == {"lr"}


def test_sizes_mean_nothing_to_a_pretrained_model() -> None:
    recipe = get_recipe("hf_causal_lm")
    draft = Draft(recipe.name, fields={"model": "owner/name", "n_embd": "x", "lora_rank": "0"})
    checked = check_draft(draft, recipe, SLOTS, LINUX)
    assert checked.problems == {} and checked.reasons["n_embd"] == "A pretrained model brings its own."
    assert "lora_rank" in checked.reasons and "lr" not in checked.reasons
    scratch = check_draft(Draft(recipe.name, fields={"n_embd": "x", "training": "lora"}), recipe, SLOTS, LINUX)
    assert set(scratch.problems) == {"n_embd"} and "lora_rank" not in scratch.reasons


def test_a_name_that_cannot_be_one_is_marked() -> None:
    assert set(check_draft(Draft(name="x" * 500), RECIPE, SLOTS, LINUX).problems) == {"name"}
    assert check_draft(Draft(name="baseline 2"), RECIPE, SLOTS, LINUX).problems == {}


def test_a_python_without_pytorch_is_named_before_the_start() -> None:
    bare = Platform("linux", None, None, 8)
    assert "PyTorch is not installed" in check_draft(Draft(), RECIPE, SLOTS, bare).problems["recipe"].cause
    assert "recipe" not in check_draft(Draft("script"), get_recipe("script"), SLOTS, bare).problems


def test_of_the_three_batch_numbers_two_are_enough() -> None:
    checked = check_draft(fields(batch_size="4", global_batch_size="32"), RECIPE, SLOTS, LINUX)
    assert checked.batch is not None and checked.placeholders["grad_accum_steps"] == "4"
    checked = check_draft(fields(batch_size="", grad_accum_steps="2", global_batch_size="32"), RECIPE, SLOTS, LINUX)
    assert checked.placeholders["batch_size"] == "8"


def test_steps_of_an_epoch_follow_the_batch_and_the_mode() -> None:
    together = check_draft(fields(seq_len="100", batch_size="5", val_fraction="0.001"), RECIPE, SLOTS, LINUX)
    apart = check_draft(
        Draft(mode="independent", fields={"seq_len": "100", "batch_size": "5", "val_fraction": "0.001"}),
        RECIPE,
        SLOTS,
        LINUX,
    )
    # 1,000,000 bytes less a thousandth are 9,989 samples of 100: by tens, or half of them by fives.
    assert together.steps_per_epoch(TEXT) == 999
    assert apart.steps_per_epoch(TEXT) == 999


def test_the_command_asks_for_the_same_config() -> None:
    draft = Draft(
        mode="independent",
        mode_fields={"merge_policy": "none"},
        fields={"steps": "9", "sample_prompt": "a b"},
    )
    checked = check_draft(draft, RECIPE, SLOTS, LINUX)
    words = shlex.split(checked.command)
    assert words[:2] == ["rankdeck", "train"]
    request = request_from_arguments(parse(words[1:]))
    assert checked.config == request.config


def test_only_what_belongs_to_the_mode_is_asked_for() -> None:
    chosen = {"zero_stage": "1", "zero_engine": "torch", "sync_every": "50", "merge_policy": "average"}
    zero = check_draft(Draft(mode="zero", mode_fields=chosen), RECIPE, SLOTS, LINUX).config
    apart = check_draft(Draft(mode="independent", mode_fields=chosen), RECIPE, SLOTS, LINUX).config
    together = check_draft(Draft(mode="ddp", mode_fields=chosen), RECIPE, SLOTS, LINUX).config
    assert zero is not None and apart is not None and together is not None
    assert (zero.zero_stage, zero.zero_engine, zero.sync_every) == (1, "torch", None)
    assert (apart.zero_stage, apart.sync_every, apart.merge_policy) == (1, 50, "average")
    assert (together.zero_stage, together.sync_every, together.merge_policy) == (1, None, "best")


def test_fsdp_is_a_mode_of_its_own() -> None:
    """What was left under ZeRO means nothing in it, and a run in it is copied into the form as it was."""
    left = {"zero_stage": "2", "zero_engine": "deepspeed", "offload_parameters": "true", "sync_every": "50"}
    checked = check_draft(Draft(mode="fsdp", mode_fields=left), RECIPE, CARDS, CUDA)
    config = checked.config
    assert config is not None and (config.mode, checked.mode) == ("fsdp", "fsdp")
    assert (config.zero_stage, config.zero_engine, config.offload_parameters) == (1, "auto", True)
    assert config.sync_every is None and "--mode fsdp" in checked.command
    draft = draft_from_config(config, CARDS)
    assert draft.mode == "fsdp" and check_draft(draft, RECIPE, CARDS, CUDA).config == config


def test_a_draft_survives_the_settings_and_damage_to_them() -> None:
    draft = Draft(dataset="a.txt", devices=("GPU-1",), mode="zero", fields={"lr": "0.1"})
    assert Draft.from_dict(json.loads(json.dumps(dataclasses.asdict(draft)))) == draft
    assert Draft.from_dict({"devices": 3, "mode": None, "fields": [], "unknown": 1}) == Draft()


def test_a_run_can_be_copied_into_the_form() -> None:
    checked = check_draft(Draft(mode="ddp", fields={"steps": "9", "n_layer": "2"}), RECIPE, SLOTS, LINUX)
    assert checked.config is not None
    again = draft_from_config(checked.config, SLOTS)
    assert again.devices == ("cpu:0", "cpu:1") and again.mode == "ddp"
    assert check_draft(again, RECIPE, SLOTS, LINUX).config == checked.config
    assert draft_from_config(checked.config.replace(devices=("GPU-gone", "GPU-1")), CARDS).devices == ("GPU-1",)


def test_common_fields_come_first() -> None:
    names = [spec.name for spec in form_fields(RECIPE) if spec.common]
    assert names[:4] == ["steps", "epochs", "batch_size", "grad_accum_steps"] and "n_layer" in names


def test_a_recipe_that_takes_a_model_has_it_among_the_common_fields() -> None:
    recipe = get_recipe("hf_causal_lm")
    (model,) = (spec for spec in form_fields(recipe) if spec.name == "model")
    assert (model.group, model.picks) == ("What", "folder") and default_texts(recipe)["model"] == "llama"
    assert not any(spec.name == "model" for spec in form_fields(RECIPE))  # MiniGPT has no use for one
    for typed, meant in (("", "llama"), ("models/mine", "models/mine")):
        draft = Draft(recipe.name, fields={**default_texts(recipe), "model": typed})
        config = check_draft(draft, recipe, SLOTS, LINUX).config
        assert config is not None and config.model == meant


def test_what_belongs_to_another_mode_stays_as_it_is() -> None:
    texts = {**default_texts(RECIPE), "balance": "measured", "sync_method": "diloco"}
    stage = {"zero_stage": "2", "sync_every": "10"}
    for mode, kept in (("ddp", {"balance"}), ("independent", {"sync_method"}), ("zero", {"balance"})):
        config = check_draft(Draft(mode=mode, mode_fields=stage, fields=texts), RECIPE, SLOTS, LINUX).config
        assert config is not None
        found = {name for name in ("balance", "sync_method") if getattr(config, name) != FIELD_BY_NAME[name].default}
        assert found == kept
    alone = check_draft(Draft(mode="zero", mode_fields=stage, fields=texts), RECIPE, SLOTS[:1], LINUX)
    assert alone.command == "rankdeck train --devices cpu:0"
