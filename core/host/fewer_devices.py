"""Alert of a run that continues on fewer devices, because a machine is missing. Pure."""

from __future__ import annotations

from core.config.mode import Mode
from core.launch.resolved import ResolvedRun


def fewer_devices_alert(run: ResolvedRun, before: int) -> dict[str, str] | None:
    """The fields of an alert; None where no device is missing."""
    now = run.world_size
    if now >= before:
        return None
    learning, keep = _learning(run)
    if run.config.mode is Mode.SINGLE:  # resuming has set it: a run on several machines never begins so
        learning = f"One device cannot share the model's state, so it now holds all of it. {learning}"
    return {
        "kind": "fewer_devices",
        "title": "The run continues on fewer devices",
        "cause": f"A machine is missing: {now} of {before} devices {'train' if now > 1 else 'trains'}. {learning}",
        "next_step": f"To take the machine back, start its command there again. {keep}".rstrip(),
    }


def _learning(run: ResolvedRun) -> tuple[str, str]:
    """What that means for the batch, and what to do about it."""
    batch = run.batch
    if run.config.mode is Mode.INDEPENDENT:
        return f"Each device trains with its own global batch of {batch.global_}, as before.", ""
    if run.config.global_batch_size is not None:
        ranks = f"{batch.ranks} device{'s' if batch.ranks > 1 else ''}"
        return (
            f"The global batch is {batch.global_} samples = micro-batch {batch.micro} × {ranks} × accumulation "
            f"{batch.accumulation}: a step takes longer, and learns from as many samples.",
            "",
        )
    return (
        f"The global batch is now {batch.global_} samples, with the same learning rate: a step learns from fewer "
        "samples than before.",
        "To keep the batch, stop the run, and resume it with a global batch.",
    )
