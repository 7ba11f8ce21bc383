"""The same model under Hugging Face's Trainer with its default settings, nothing saved and little logged."""

import tempfile
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import Trainer, TrainerCallback, TrainingArguments

from tests.benchmarks.loops.common import BETAS, CLIP_NORM, LEARNING_RATE, Clock, Windows, job, model

given = job()
clock = Clock()


class WithLoss(nn.Module):
    """The model, giving its loss as the Trainer wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = model(given)

    def forward(self, window: Tensor) -> dict[str, Tensor]:
        logits = self.net(window[:, :-1])
        return {"loss": functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())}


class Stream(torch.utils.data.Dataset[dict[str, Tensor]]):
    """Windows, one a sample."""

    def __init__(self) -> None:
        self._windows = Windows(given)
        self._held: list[Tensor] = []

    def __len__(self) -> int:
        return given.steps * given.batch * given.world

    def __getitem__(self, _index: int) -> dict[str, Tensor]:
        if not self._held:
            self._held = list(self._windows.next())
        return {"window": self._held.pop()}


class Ends(TrainerCallback):
    """Notes when steps end."""

    def on_step_end(self, *_: Any, **__: Any) -> None:
        clock.step()


arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    max_steps=given.steps,
    per_device_train_batch_size=given.batch,
    learning_rate=LEARNING_RATE,
    adam_beta1=BETAS[0],
    adam_beta2=BETAS[1],
    weight_decay=0.1,
    max_grad_norm=CLIP_NORM,
    use_cpu=not given.on_gpu,
    bf16=given.on_gpu,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    logging_steps=10_000,
    remove_unused_columns=False,
)
Trainer(model=WithLoss(), args=arguments, train_dataset=Stream(), callbacks=[Ends()]).train()
