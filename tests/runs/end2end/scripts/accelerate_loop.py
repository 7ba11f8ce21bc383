"""Accelerate with tqdm and prints, as its examples do."""

import os
import sys

import torch
from accelerate import Accelerator
from tqdm.auto import tqdm

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.randn(64, 4))
loader = torch.utils.data.DataLoader(data, batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
bar = tqdm(total=2 * len(loader), disable=not accelerator.is_local_main_process, mininterval=0)
for epoch in range(2):
    for (x,) in loader:
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        bar.update(1)
        bar.set_postfix(loss=loss.item())
    accelerator.print(f"epoch {epoch}:", {"accuracy": 0.5 + epoch / 10, "f1": 0.25})
accelerator.end_training()
# DDP keeps gloo's threads after the group's end, and PyTorch 2.13 may abort as Python ends: see hf_trainer.py.
sys.stdout.flush()
os._exit(0)
