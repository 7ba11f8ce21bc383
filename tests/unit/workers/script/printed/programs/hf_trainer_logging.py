"""Hugging Face Trainer as the examples of transformers use it: its settings logged with dates, accumulation, a resume.

Usage: hf_trainer_logging.py TRUTH [resume]
"""

import logging
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from truth import Truth

logging.basicConfig(
    format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", datefmt="%m/%d/%Y %H:%M:%S", level=logging.INFO,
    handlers=[logging.StreamHandler(sys.stdout)],
)  # fmt: skip
transformers.utils.logging.set_verbosity_info()
transformers.utils.logging.enable_default_handler()
transformers.utils.logging.enable_explicit_format()


class Tokens(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 128

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = torch.arange(index, index + 16) % 50
        return {"input_ids": ids, "labels": ids}


class Teller(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **_):  # type: ignore[no-untyped-def]
        if "loss" in logs:
            truth.train(state.global_step, float(logs["loss"]), logs["epoch"])
        if "eval_loss" in logs:
            truth.evaluate(state.global_step, float(logs["eval_loss"]))

    def on_step_end(self, args, state, control, **_):  # type: ignore[no-untyped-def]
        time.sleep(0.4 if "resume" in sys.argv else 0.01)  # longer than what is taken for the end of a step's lines


truth = Truth(sys.argv[1], f"transformers {transformers.__version__}")
resume = "resume" in sys.argv
with tempfile.TemporaryDirectory() as folder:

    def train(steps: int, checkpoint: str | None = None) -> None:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=steps, logging_steps=2 if resume else 4, eval_steps=16, eval_strategy="steps",
            save_strategy="steps", save_steps=20, per_device_train_batch_size=2, per_device_eval_batch_size=16,
            gradient_accumulation_steps=2 if resume else 8, report_to=[], use_cpu=True, disable_tqdm=False, seed=1,
        )  # fmt: skip
        model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2))
        callbacks = [] if resume and checkpoint is None else [Teller()]
        trainer = Trainer(
            model=model, args=arguments, train_dataset=Tokens(), eval_dataset=Tokens(), callbacks=callbacks
        )
        trainer.train(resume_from_checkpoint=checkpoint)

    if not resume:
        train(48)
    else:  # what was printed before the resume is not part of the recording
        with (Path(folder) / "before").open("w", encoding="utf-8") as file:
            saved, sys.stdout, error, sys.stderr = sys.stdout, file, sys.stderr, file
            train(20)
            sys.stdout, sys.stderr = saved, error
        train(28, str(Path(folder) / "checkpoint-20"))
truth.write()
