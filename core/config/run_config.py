"""`RunConfig`: all settings of a run, as one value. Written to `run.toml`; enough to run it again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.config.fields import FieldSpec, FieldValue, Needs, declared_fields, setting
from core.config.lr_schedule import CHOICES, CONTINUE
from core.config.mode import APART, IN_BUCKETS, SHARDED, Mode
from core.config.stop_target import read_stop_target
from core.errors import ConfigError

DATA_FILES: Final = ("auto", "all")
PRECISIONS: Final = ("auto", "fp32", "bf16", "fp16")
MERGE_POLICIES: Final = ("best", "average", "none")
ZERO_ENGINES: Final = ("auto", "deepspeed", "torch")
SYNC_METHODS: Final = ("auto", "average", "diloco")
EXCHANGES: Final = ("auto", "shared", "plain")
BALANCES: Final = ("equal", "measured")
NON_FINITE: Final = ("skip", "stop")
BACKENDS: Final = ("auto", "nccl", "gloo")
HANG_POLICIES: Final = ("warn", "restart", "stop")


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The settings of a run. Their meaning and limits stand in `FIELDS`; a bad value raises here.

    `batch_size` is a rank's micro-batch. Of `batch_size`, `grad_accum_steps` and `global_batch_size` two are enough
    (`core.config.batch.resolve_batch`). `devices` holds the texts of `--devices`: ``("auto",)``, ``("cpux2",)``, GPU
    UUIDs, ``cuda:0`` ….

    Raises:
        ConfigError: A field has a value that cannot be used; it names the field and the allowed values.
    """

    # A table: default, label and help of a setting, then its limits and where it has an effect.
    # fmt: off
    recipe: str = setting(
        "minigpt", "Recipe", "What to train: a folder with recipe.toml and train.py.", common=True, group=""
    )
    dataset_file: str = setting(
        "stdlib://", "Data", "A text file or a folder of them. stdlib:// is the source of Python's standard library.",
        path=True, common=True, group="",
    )
    data_files: str = setting(
        "auto", "Files of a folder",
        "auto: train on the training split, measure on the validation split, and leave out files about the dataset. "
        "all: train on every file that can be read.",
        choices=DATA_FILES, group="Data",
    )
    mode: Mode = setting(  # noqa: RUF009  # it makes a new field at each call, as dataclasses.field does
        Mode.AUTO, "Mode", "How devices share the work. auto: DDP on several devices (independent on Windows).",
        choices=tuple(mode.value for mode in Mode), changes="how", group="",
    )
    zero_stage: int = setting(
        1, "ZeRO stage", "1 shards the optimizer state across devices, 2 also the gradients, 3 also the weights.",
        limits=(1, 3), modes=(Mode.ZERO,),
        changes="how", effect="The sharded state is redistributed; its values stay the same.",
        group="Mode", names=(("1", "1: optimizer state"), ("2", "2: optimizer + gradients"), ("3", "3: + weights")),
    )
    zero_engine: str = setting(
        "auto", "ZeRO engine", "auto: DeepSpeed if it is installed, otherwise PyTorch's. Both give the same model.",
        choices=ZERO_ENGINES, modes=(Mode.ZERO,), changes="how", effect="Weights and optimizer state stay the same.",
        group="Mode", names=(("auto", "auto"), ("deepspeed", "DeepSpeed"), ("torch", "PyTorch")),
    )
    offload_optimizer: bool = setting(
        False, "Offload optimizer to CPU",
        "ZeRO: keep the optimizer state in main memory. Saves GPU memory, costs time.",
        modes=SHARDED, changes="how", group="Mode",
    )
    offload_parameters: bool = setting(
        False, "Offload weights to CPU", "ZeRO stage 3: keep the weights in main memory until they are needed.",
        modes=SHARDED, when=("zero_stage", "3"), changes="how", group="Mode",
    )
    deepspeed_config: str | None = setting(
        None, "DeepSpeed settings", "A DeepSpeed configuration (JSON) that replaces Rankdeck's for this stage.",
        modes=(Mode.ZERO,), when=("zero_engine", "!torch"), changes="how", group="Mode",
    )
    gradient_exchange: str = setting(
        "auto", "Gradient all-reduce",
        "How DDP averages gradients. auto: NCCL, else shared memory where all devices can use it, else gloo.",
        choices=EXCHANGES, former=("bf16", "fp16", "powersgd"), modes=(Mode.DDP,), needs=Needs.DDP,
        changes="how", effect="Affects only what is sent from here on.", group="Distribution",
    )
    find_unused_parameters: bool = setting(
        False, "Unused parameters",
        "DDP: look in every step for parameters that the loss does not depend on. Needed for models that skip "
        "some of theirs; costs a little time.",
        modes=IN_BUCKETS, needs=Needs.DDP, changes="how", group="Distribution",
    )
    broadcast_buffers: bool = setting(
        True, "Broadcast buffers",
        "DDP: copy the first device's buffers (running means of batch normalisation) to the others at every step.",
        modes=IN_BUCKETS, needs=Needs.DDP, changes="how", group="Distribution",
    )
    gradient_as_bucket_view: bool = setting(
        True, "Gradients in buckets",
        "DDP: keep gradients in the buckets that are exchanged. Off: copy them; needs more memory.",
        modes=IN_BUCKETS, needs=Needs.DDP, changes="how", group="Distribution",
    )
    backend: str = setting(
        "auto", "Backend", "Which library connects the devices. auto: NCCL for GPUs on Linux, else gloo.",
        choices=BACKENDS, needs=Needs.EXCHANGE, changes="how", group="Distribution",
    )
    collective_timeout_s: float = setting(
        300.0, "Collective timeout", "The run fails if a device waits longer than this for another one.",
        limits=(1.0, 86_400.0), unit="s", changes="how", group="Distribution",
    )
    balance: str = setting(
        "equal", "Load balancing",
        "DDP: measured gives faster devices more samples of each batch; the result stays the same.",
        choices=BALANCES, modes=IN_BUCKETS, needs=Needs.DDP,
        instead="The samples are shared out equally; independent devices never wait for each other.",
        changes="how", group="Distribution",
    )
    sync_every: int | None = setting(
        None, "Sync interval",
        "Independent mode: synchronise the devices' weights after this many steps. Empty: never.",
        limits=(1, 10**9), unit="steps", modes=APART, empty="never",
        changes="how", effect="Affects synchronisation from here on.", group="Mode",
    )
    sync_method: str = setting(
        "auto", "Sync method",
        "average: the mean of the weights (short intervals). diloco: an outer optimizer (long intervals).",
        choices=SYNC_METHODS, modes=APART, when=("sync_every", "*"), changes="how", group="Distribution",
    )
    devices: tuple[str, ...] = ("auto",)
    steps: int | None = setting(
        None, "Steps", "Optimizer steps to train. Empty: set by epochs.", limits=(1, 10**12), common=True,
        group="How", empty="set by epochs",
    )
    epochs: int | None = setting(
        None, "Epochs", "Passes over the dataset. If steps are set too, whichever ends first.",
        limits=(1, 10**6), common=True, group="How", empty="set by steps",
    )
    batch_size: int | None = setting(
        None, "Micro-batch", "Samples per device in one forward pass. Lower it if memory runs out.",
        limits=(1, 10**6), unit="samples", common=True, changes="batch", group="How",
    )
    grad_accum_steps: int | None = setting(
        None, "Accumulation", "Micro-batches accumulated before each optimizer step.", limits=(1, 10**6), common=True,
        changes="batch", group="Batch & steps",
    )
    global_batch_size: int | None = setting(
        None, "Global batch", "Samples per optimizer step on all devices: micro-batch × devices × accumulation.",
        limits=(1, 10**9), unit="samples", common=True, changes="batch", group="Batch & steps",
    )
    seq_len: int = setting(
        128, "Sequence length", "Tokens per sample.", limits=(2, 10**6), unit="tokens", common=True,
        group="How",
    )
    lr: float = setting(
        1e-3, "Learning rate", "The peak learning rate, after warm-up.", limits=(0.0, 100.0), common=True,
        changes="how", effect="It is the peak of the schedule.", group="How",
    )
    lr_schedule: str = setting(
        CONTINUE, "Learning rate schedule",
        "When a run gets more or fewer steps. continue: the rest of the schedule from the current rate, which stays at "
        "its end. decay: down again from the current rate. restart: warm-up and decay again from the peak. replan: as "
        "if planned with all its steps from the start.",
        choices=CHOICES, changes="how", group="",
    )
    non_finite: str = setting(
        "skip", "Non-finite loss",
        "If a loss or gradient is NaN or infinite. skip: leave the batch out. stop: end the run.",
        choices=NON_FINITE, changes="how", group="Optimizer",
    )
    non_finite_limit: int = setting(
        10, "Non-finite limit", "How many batches may be skipped before the run ends.",
        limits=(1, 10**6), when=("non_finite", "!stop"), changes="how", group="Optimizer",
    )
    seed: int = setting(1234, "Seed", "The same seed, data and devices give the same run.", limits=(0, 2**63 - 1))
    precision: str = setting(
        "auto", "Precision", "auto: bf16 if the device supports it, otherwise fp32. fp16 scales the loss.",
        choices=PRECISIONS,
        changes="how", effect="The weights stay the same; steps are computed differently from here on.", group="Where",
    )
    eval_every: int | None = setting(
        100, "Evaluate every", "Steps between two evaluations. The end is always evaluated.",
        limits=(1, 10**12), unit="steps", group="Checkpoints & evaluation",
    )
    val_samples: int | None = setting(
        None, "Validation samples",
        "Held-out samples that each evaluation measures: always the same ones, spread evenly. Empty: all, up to 1,000.",
        limits=(1, 10**9), unit="samples",
        changes="how", effect="Validation losses before and after are of different samples.",
        group="Checkpoints & evaluation",
    )
    sample_share: float = setting(
        5.0, "Time for samples",
        "The share of training time that text samples may take. The final sample is always taken.",
        limits=(0.0, 100.0), unit="%", group="Checkpoints & evaluation",
    )
    checkpoint_every_steps: int | None = setting(
        None, "Save every (steps)", "Save a checkpoint (weights, optimizer, data progress) after this many steps.",
        limits=(1, 10**12), unit="steps", group="Checkpoints & evaluation", empty="only by time",
    )
    checkpoint_every_s: float | None = setting(
        300.0, "Save every (seconds)", "Save a checkpoint at least this often; the first after a minute.",
        limits=(1.0, 10**7), unit="s", group="Checkpoints & evaluation",
    )
    keep_checkpoints: int = setting(
        3, "Checkpoints kept", "How many recent checkpoints to keep (the best one is always kept).",
        limits=(1, 10_000), group="Checkpoints & evaluation",
    )
    disk_reserve: float = setting(
        0.5, "Disk reserve",
        "Disk space that stays free. Before it is touched, older checkpoints are removed, then the run is saved and "
        "stopped.",
        limits=(0.0, 100_000.0), unit="GiB", changes="stop", group="Checkpoints & evaluation",
    )
    early_stop_patience: int | None = setting(
        None, "Early stop patience",
        "Stop after this many evaluations without an improvement, and keep the best checkpoint. Empty: never.",
        limits=(1, 10**6), unit="evaluations", changes="stop", group="Early stopping",
    )
    early_stop_min_delta: float = setting(
        1e-3, "Smallest improvement", "A smaller change of the evaluated metric does not count as an improvement.",
        limits=(0.0, 1e9), when=("early_stop_patience", "*"), changes="stop", group="Early stopping",
    )
    stop_at: str | None = setting(
        None, "Stop at value",
        "Stop once an evaluation reaches this value, for example val_loss=1.2 or val_accuracy>=0.9.",
        changes="stop", group="Early stopping",
    )
    max_hours: float | None = setting(
        None, "Training time limit", "Save and stop after this much training time, over all attempts of the run.",
        limits=(1e-5, 1e6), unit="h", changes="stop", group="Early stopping",
    )
    samples_per_block: int = setting(
        100_000, "Samples in a block", "Samples per block, the larger unit of the ledger.",
        limits=(1, 10**12), unit="samples", group="Data",
    )
    dataset_chunk_size: int = setting(
        4_000, "Samples in a chunk", "Samples per chunk, the part of the data that one device claims at a time.",
        limits=(1, 10**12), unit="samples", group="Data",
    )
    merge_policy: str = setting(
        "best", "Merge", "Independent mode, at the end: keep the best device's weights, average all, or keep all.",
        choices=MERGE_POLICIES, modes=APART, changes="how",
        group="Mode", names=(("best", "keep the best"), ("average", "average all"), ("none", "keep every one")),
    )
    model: str | None = setting(
        None, "Model", "A model's name or folder, for recipes that use one.",
        group="What", picks="folder", empty="none",
    )
    torch_compile: bool = setting(
        False, "Compile the model",
        "torch.compile: make kernels for this model. The first step takes a minute or more, those after it may be "
        "faster; results may differ in the last bits.",
        needs=Needs.COMPILER, changes="how",
    )
    env: Mapping[str, str] = setting(
        {}, "Environment variables",
        "Environment variables for every process of the run, one NAME=VALUE a line, for example NCCL_DEBUG=INFO. "
        "They are saved with the run, so don't put passwords or tokens here.",
        changes="how",
    )
    strict: bool = setting(False, "Strict", "Fail instead of falling back to another mode.")
    max_restarts: int = setting(
        0, "Restarts", "If a rank fails, restart all ranks from the last checkpoint, up to this many times.",
        limits=(0, 1_000),
    )
    start_timeout_s: float = setting(
        180.0, "Start limit", "A rank that makes no first step within this time has failed to start.",
        limits=(1.0, 86_400.0), unit="s",
    )
    stop_timeout_s: float = setting(
        120.0, "Stop limit",
        "If no checkpoint is saved within this time after a stop, the ranks are ended without one.",
        limits=(1.0, 86_400.0), unit="s",
    )
    hang_timeout_s: float | None = setting(
        None, "Hang limit",
        "A device that reports nothing for this long may hang. Empty: ten of its usual steps, and at least a minute. "
        "Evaluations and checkpoints may take ten times as long.",
        limits=(0.5, 86_400.0), unit="s", changes="stop",
    )
    hang_policy: str = setting(
        "warn", "If a device hangs",
        "warn: say which one, and where. restart: also restart all devices from the last checkpoint, at most three "
        "times. stop: also save what can be saved, and end the run.",
        choices=HANG_POLICIES, changes="stop",
    )
    log_file: str | None = setting(
        None, "Copy of the metrics", "Also write metrics.jsonl to this file.", path=True, empty="none"
    )
    # fmt: on
    options: Mapping[str, FieldValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, spec in FIELD_BY_NAME.items():
            object.__setattr__(self, name, spec.check(getattr(self, name)))
        object.__setattr__(self, "mode", Mode.read(self.mode))
        if self.stop_at is not None:
            read_stop_target(self.stop_at)
        if not self.devices or not all(isinstance(d, str) and d.strip() for d in self.devices):
            raise ConfigError(
                "devices", "The list of devices is empty.", "Name devices, for example cpux2 or cuda:0,cuda:1."
            )

    def replace(self, **changes: Any) -> RunConfig:
        return dataclasses.replace(self, **changes)

    @property
    def epoch_limit(self) -> int | None:
        """Passes over the dataset: `epochs`; once when neither steps nor epochs are given; else no limit."""
        return 1 if self.epochs is None and self.steps is None else self.epochs

    @property
    def held_out(self) -> float:
        """The held-out part of the data; recipes have it as their option `val_fraction`."""
        fraction = self.options.get("val_fraction")
        return fraction if isinstance(fraction, float) else 0.0

    def sorted_values(self) -> tuple[dict[str, Any], dict[str, FieldValue]]:
        """The fields in their own order, None included, and the options by name."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "options"}
        return {**values, "devices": list(self.devices), "env": dict(self.env)}, dict(sorted(self.options.items()))

    def as_dict(self) -> dict[str, Any]:
        values, options = self.sorted_values()
        values |= {"mode": self.mode.value, "options": options}
        return {name: value for name, value in values.items() if value is not None}


# What each field of `RunConfig` means, in the order of the form; `devices` and `options` have shapes of their own.
FIELDS: Final = declared_fields(RunConfig)
FIELD_BY_NAME: Final[Mapping[str, FieldSpec]] = {spec.name: spec for spec in FIELDS}
