"""Plain DDP as tutorials write it: nothing here knows of Rankdeck."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main(steps: int) -> None:
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    assert (dist.get_rank(), dist.get_world_size()) == (rank, world)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for step in range(1, steps + 1):
        x = torch.randn(8, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"[GPU{rank}] Epoch {step // 10} | Step {step} | Loss {loss.item():.6f} | lr=0.1")
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    print(f"rank {rank} of {world}: the ranks add up to {total.item():g}")
    dist.destroy_process_group()


main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
# DDP keeps gloo's threads after the group's end, and PyTorch 2.13 may abort as Python ends: see hf_trainer.py.
sys.stdout.flush()
os._exit(0)
