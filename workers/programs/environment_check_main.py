"""Self-test of a new environment: a host and a rank can be imported, and a small model learns on each device.

Run as ``python -m workers.programs.environment_check_main`` with the Python to test; the answer is one line of JSON.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Final

STEPS: Final = 20


def learn(device: str) -> float:
    """Fit y = 2 x on a device; return by what factor the error fell."""
    import torch

    torch.manual_seed(0)
    inputs = torch.linspace(-1, 1, 64, device=device).unsqueeze(1)
    weight = torch.zeros(1, 1, device=device, requires_grad=True)
    errors = []
    for _ in range(STEPS):
        error = ((inputs @ weight - 2 * inputs) ** 2).mean()
        (gradient,) = torch.autograd.grad(error, [weight])
        with torch.no_grad():
            weight -= 0.5 * gradient
        errors.append(float(error))
    return errors[0] / max(errors[-1], 1e-30)


def main() -> int:
    """Print what works; an exception names what does not."""
    import_module("core.host.host")
    import_module("workers.programs.rank_main")
    import torch

    devices = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    for device in devices:
        if not learn(device) > 10:
            raise ArithmeticError(f"a model does not learn on {device}")
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "devices": devices}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
