"""All-reduce of gradients: through shared memory on one machine, else over gloo or NCCL.

all_reduce = choose_all_reduce(group, place)
ddp = DistributedDataParallel(model)
all_reduce.register(ddp)
…
all_reduce.close()
"""

from workers.all_reduce.choice import GradientAllReduce, choose_all_reduce

__all__ = ["GradientAllReduce", "choose_all_reduce"]
