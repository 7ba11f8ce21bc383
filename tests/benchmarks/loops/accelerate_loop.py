"""The loop of Accelerate's own quick tour."""

import torch
from accelerate import Accelerator
from torch.nn import functional

from tests.benchmarks.loops.common import BETAS, CLIP_NORM, LEARNING_RATE, Clock, Windows, job, model

given = job()
accelerator = Accelerator(cpu=not given.on_gpu, mixed_precision="bf16" if given.on_gpu else "no")
net = model(given)
optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, betas=BETAS, weight_decay=0.1)
net, optimizer = accelerator.prepare(net, optimizer)
windows, clock = Windows(given), Clock()
for _ in range(given.steps):
    window = windows.next().to(accelerator.device)
    with accelerator.autocast():
        loss = functional.cross_entropy(net(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(net.parameters(), CLIP_NORM)
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    clock.step()
