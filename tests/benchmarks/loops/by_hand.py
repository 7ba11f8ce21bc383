"""A well-tuned loop written by hand: fused AdamW, gradients in DDP's buckets, no wrapper on one rank."""

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from tests.benchmarks.loops.common import BETAS, CLIP_NORM, LEARNING_RATE, Clock, Windows, half, job, model

SELDOM = 20
given = job()
net = bare = model(given).to(given.device)
if given.world > 1 and given.synchronised:
    dist.init_process_group("gloo", init_method=given.rendezvous, rank=given.rank, world_size=given.world)
if given.world > 1 and given.synchronised:
    net = DistributedDataParallel(bare, gradient_as_bucket_view=True)
optimizer = torch.optim.AdamW(bare.parameters(), lr=LEARNING_RATE, betas=BETAS, weight_decay=0.1, fused=True)
windows, clock = Windows(given), Clock()
for step in range(given.steps):
    window = windows.next().to(given.device, non_blocking=True)
    with half(given):
        loss = functional.cross_entropy(net(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(bare.parameters(), CLIP_NORM, foreach=True)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if not given.on_gpu or step % SELDOM == 0:  # to look at it, a GPU has to be waited for
        loss.item()
    clock.step()
