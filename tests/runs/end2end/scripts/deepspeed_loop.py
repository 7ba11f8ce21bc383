"""DeepSpeed with its own log lines."""

import deepspeed
import torch

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # needs a compiler
model = torch.nn.Linear(4, 1)
engine, _, _, _ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
    dist_init_required=True,
    config={
        "train_micro_batch_size_per_gpu": 4,
        "steps_per_print": 2,
        "gradient_clipping": 0.0,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    },
)
for step in range(10):
    x = torch.randn(4, 4)
    loss = (engine(x) - x.sum(1, keepdim=True)).square().mean()
    engine.backward(loss)
    engine.step()
    if engine.global_rank == 0:
        print(f"step: {step + 1}, train loss: {loss.item():.4f}, lr: {engine.get_lr()[0]:.2e}")
