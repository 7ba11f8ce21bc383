"""The loop of Lightning Fabric's own guide."""

import torch
from lightning_fabric import Fabric
from torch.nn import functional

from tests.benchmarks.loops.common import BETAS, CLIP_NORM, LEARNING_RATE, Clock, Windows, job, model

given = job()
fabric = Fabric(
    accelerator="cuda" if given.on_gpu else "cpu",
    devices=given.world,
    strategy="ddp" if given.world > 1 else "auto",
    precision="bf16-mixed" if given.on_gpu else "32-true",
)
fabric.launch()
net = model(given)
optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, betas=BETAS, weight_decay=0.1)
net, optimizer = fabric.setup(net, optimizer)
windows, clock = Windows(given), Clock()
for _ in range(given.steps):
    window = windows.next().to(fabric.device)
    loss = functional.cross_entropy(net(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
    fabric.backward(loss)
    fabric.clip_gradients(net, optimizer, max_norm=CLIP_NORM)
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    clock.step()
