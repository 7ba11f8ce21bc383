"""Hugging Face Trainer on made-up tokens."""

import os
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = torch.arange(index, index + 16) % 50
        return {"input_ids": ids, "labels": ids}


arguments = TrainingArguments(
    output_dir=sys.argv[1], max_steps=12, logging_steps=2, eval_steps=4, eval_strategy="steps", save_strategy="no",
    per_device_train_batch_size=2, per_device_eval_batch_size=16, report_to=[], use_cpu=True, disable_tqdm=False,
)  # fmt: skip
model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2))
Trainer(model=model, args=arguments, train_dataset=Tokens(), eval_dataset=Tokens()).train()
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
# DDP keeps gloo's threads all the same. One that lets go of a tensor while Python ends aborts the process: PyTorch 2.13
# waits for the interpreter's lock there, and Python 3.11 ends the thread, which C++ takes for an error.
sys.stdout.flush()
os._exit(0)
