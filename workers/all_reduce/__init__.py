"""All-reduce of gradients: through shared memory on one machine, else over gloo or NCCL.

`choose_all_reduce` measures and decides; what it returns registers itself with DDP:

    all_reduce = choose_all_reduce(group, place, model_bytes, wanted="auto")
    ddp = DistributedDataParallel(model)
    all_reduce.register(ddp)
    …
    all_reduce.close()
"""

from workers.all_reduce.choice import WANTED, GradientAllReduce, choose_all_reduce
from workers.all_reduce.peer_watch import PeerSilentError
from workers.all_reduce.timing_test import Speeds

__all__ = ["WANTED", "GradientAllReduce", "PeerSilentError", "Speeds", "choose_all_reduce"]
