"""How gradients get from rank to rank: through shared memory on one machine, else over gloo or NCCL.

`choose_exchange` measures and decides; what it returns knows how to hang itself into DDP:

    exchange = choose_exchange(group, place, model_bytes, wanted="auto")
    ddp = DistributedDataParallel(model, **exchange.ddp_options)
    exchange.register(ddp)
    …
    exchange.close()
"""

from workers.all_reduce.choice import WANTED, Exchange, choose_exchange
from workers.all_reduce.peer_watch import PeerSilentError
from workers.all_reduce.timing_test import Speeds

__all__ = ["WANTED", "Exchange", "PeerSilentError", "Speeds", "choose_exchange"]
