"""`RunConfig`: everything that was asked of a run, as one value. Written to `run.toml`; enough to run it again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.config.fields import FieldSpec, FieldValue
from core.config.mode import Mode
from core.errors import ConfigError

PRECISIONS: Final = ("auto", "fp32", "bf16", "fp16")
MERGE_POLICIES: Final = ("best", "average", "none")
ZERO_ENGINES: Final = ("auto", "deepspeed", "torch")
SYNC_METHODS: Final = ("auto", "average", "diloco")
EXCHANGES: Final = ("auto", "shared", "plain", "fp16", "bf16", "powersgd")
BALANCES: Final = ("equal", "measured")
BACKENDS: Final = ("auto", "nccl", "gloo")

FIELDS: Final = (
    FieldSpec(
        "recipe",
        "Recipe",
        "str",
        "minigpt",
        help="What is trained: a folder with recipe.toml and train.py.",
        common=True,
    ),
    FieldSpec(
        "dataset_file",
        "Data",
        "path",
        "stdlib://",
        common=True,
        help="A text file or a folder of them. stdlib:// is the source of this machine's own Python library.",
    ),
    FieldSpec(
        "mode",
        "Mode",
        "choice",
        Mode.AUTO,
        choices=tuple(mode.value for mode in Mode),
        help="How several devices share the work. auto: one device alone; several: DDP, or independent under Windows.",
    ),
    FieldSpec(
        "zero_stage",
        "ZeRO stage",
        "int",
        1,
        1,
        3,
        help="1 shards the optimizer's state over the devices, 2 the gradients too, 3 also the weights.",
    ),
    FieldSpec(
        "zero_engine",
        "ZeRO engine",
        "choice",
        "auto",
        choices=ZERO_ENGINES,
        help="auto: DeepSpeed where it is installed, else PyTorch's own. Both give the same model.",
    ),
    FieldSpec(
        "offload_optimizer",
        "Optimizer on the CPU",
        "bool",
        False,
        help="ZeRO: keep the optimizer's state in the computer's memory. Saves GPU memory, costs time.",
    ),
    FieldSpec(
        "offload_parameters",
        "Weights on the CPU",
        "bool",
        False,
        help="ZeRO stage 3: keep the weights in the computer's memory until they are needed.",
    ),
    FieldSpec(
        "deepspeed_config",
        "DeepSpeed settings",
        "str",
        None,
        optional=True,
        help="A DeepSpeed configuration (JSON) in place of Rankdeck's own for this stage; a flag takes a file.",
    ),
    FieldSpec(
        "gradient_exchange",
        "Gradient exchange",
        "choice",
        "auto",
        choices=EXCHANGES,
        help="How DDP exchanges gradients. auto: shared memory where it is faster. fp16, bf16 and powersgd send less.",
    ),
    FieldSpec(
        "static_graph",
        "Static graph",
        "bool",
        False,
        help="DDP: promise that every step uses the same parameters in the same order, which saves a little time.",
    ),
    FieldSpec(
        "find_unused_parameters",
        "Unused parameters",
        "bool",
        False,
        help="DDP: look in every step for parameters that the loss does not depend on. Needed for models that skip "
        "some of theirs; costs a little time.",
    ),
    FieldSpec(
        "broadcast_buffers",
        "Broadcast buffers",
        "bool",
        True,
        help="DDP: copy the first device's buffers (running means of batch normalisation) to the others in every step.",
    ),
    FieldSpec(
        "backend",
        "Backend",
        "choice",
        "auto",
        choices=BACKENDS,
        help="Which library connects the devices. auto: NCCL for GPUs on Linux, else gloo.",
    ),
    FieldSpec(
        "collective_timeout_s",
        "Collective timeout",
        "float",
        300.0,
        1.0,
        86_400.0,
        unit="s",
        help="Devices that wait longer than this for another one during training give up, and the run fails.",
    ),
    FieldSpec(
        "balance",
        "Share of each device",
        "choice",
        "equal",
        choices=BALANCES,
        help="DDP: measured gives a faster device more samples of each batch; the result stays the same.",
    ),
    FieldSpec(
        "work_stealing",
        "Work stealing",
        "bool",
        False,
        help="Independent mode: a device that is done early takes the next chunk, whosever turn it was.",
    ),
    FieldSpec(
        "sync_every",
        "Synchronise every",
        "int",
        None,
        1,
        10**9,
        unit="steps",
        optional=True,
        help="Independent mode: bring all devices' weights together after so many steps. Empty: never.",
    ),
    FieldSpec(
        "sync_method",
        "Synchronise by",
        "choice",
        "auto",
        choices=SYNC_METHODS,
        help="average: the mean of the weights, for short intervals. diloco: an outer optimizer, for long ones.",
    ),
    FieldSpec(
        "outer_lr",
        "Outer learning rate",
        "float",
        None,
        0.0,
        10.0,
        optional=True,
        help="DiLoCo: how far the shared weights follow the devices' mean. Empty: chosen by the interval.",
    ),
    FieldSpec(
        "outer_momentum",
        "Outer momentum",
        "float",
        None,
        0.0,
        0.999,
        optional=True,
        help="DiLoCo: Nesterov momentum of the shared weights. Empty: chosen by the interval.",
    ),
    FieldSpec(
        "steps",
        "Steps",
        "int",
        None,
        1,
        10**12,
        common=True,
        optional=True,
        help="Optimizer steps to train. Empty: until the epochs are done.",
    ),
    FieldSpec(
        "epochs",
        "Epochs",
        "int",
        None,
        1,
        10**6,
        common=True,
        optional=True,
        help="Passes over the dataset. With steps given too, whichever ends first.",
    ),
    FieldSpec(
        "batch_size",
        "Micro-batch",
        "int",
        None,
        1,
        10**6,
        common=True,
        optional=True,
        unit="samples",
        help="Samples that one device works on at once. Smaller if memory runs out.",
    ),
    FieldSpec(
        "grad_accum_steps",
        "Accumulation",
        "int",
        None,
        1,
        10**6,
        common=True,
        optional=True,
        help="Micro-batches that are added up before each optimizer step.",
    ),
    FieldSpec(
        "global_batch_size",
        "Global batch",
        "int",
        None,
        1,
        10**9,
        common=True,
        optional=True,
        unit="samples",
        help="Samples in one optimizer step over all devices: micro-batch × devices × accumulation.",
    ),
    FieldSpec(
        "seq_len", "Sequence length", "int", 128, 2, 10**6, common=True, unit="tokens", help="Tokens in one sample."
    ),
    FieldSpec(
        "lr", "Learning rate", "float", 1e-3, 0.0, 100.0, common=True, help="The highest learning rate, after warm-up."
    ),
    FieldSpec("seed", "Seed", "int", 1234, 0, 2**63 - 1, help="The same seed, data and devices give the same run."),
    FieldSpec(
        "precision",
        "Precision",
        "choice",
        "auto",
        choices=PRECISIONS,
        help="auto: bf16 where the device has it, else fp32. fp16 scales the loss.",
    ),
    FieldSpec(
        "eval_every",
        "Evaluate every",
        "int",
        100,
        1,
        10**12,
        unit="steps",
        optional=True,
        help="Measure the validation loss this often; always at the end.",
    ),
    FieldSpec(
        "sample_share",
        "Time for samples",
        "float",
        5.0,
        0.0,
        100.0,
        unit="%",
        help="How much of the training time sampled text may take; text that would take more is left out, but at the "
        "end.",
    ),
    FieldSpec(
        "checkpoint_every_steps",
        "Commit every",
        "int",
        None,
        1,
        10**12,
        unit="steps",
        optional=True,
        help="Commit a generation (weights, optimizer, ledger) after so many steps.",
    ),
    FieldSpec(
        "checkpoint_every_s",
        "Commit every",
        "float",
        300.0,
        1.0,
        10**7,
        unit="s",
        optional=True,
        help="Commit a generation at least this often, by the clock; the first after a minute.",
    ),
    FieldSpec(
        "keep_generations",
        "Generations kept",
        "int",
        3,
        1,
        10_000,
        help="The last so many generations stay, and the best.",
    ),
    FieldSpec(
        "samples_per_block",
        "Samples in a block",
        "int",
        100_000,
        1,
        10**12,
        unit="samples",
        help="The ledger's larger unit.",
    ),
    FieldSpec(
        "dataset_chunk_size",
        "Samples in a chunk",
        "int",
        4_000,
        1,
        10**12,
        unit="samples",
        help="The ledger's smaller unit: what one device claims at a time.",
    ),
    FieldSpec(
        "merge_policy",
        "Merge",
        "choice",
        "best",
        choices=MERGE_POLICIES,
        help="Independent mode, at the end: keep the best device's weights, average all, or keep every one.",
    ),
    FieldSpec(
        "merge_every_chunks",
        "Merge every",
        "int",
        None,
        1,
        10**9,
        unit="chunks",
        optional=True,
        help="Independent mode: also merge each time every device has trained so many chunks.",
    ),
    FieldSpec(
        "model", "Model", "str", None, optional=True, help="A model's name or folder, for recipes that take one."
    ),
    FieldSpec(
        "cudnn_benchmark",
        "cuDNN benchmark",
        "bool",
        False,
        help="Let cuDNN time its algorithms and take the fastest. Often faster for convolutions of one size, but a "
        "resumed run may then differ in the last bits.",
    ),
    FieldSpec(
        "expandable_segments",
        "Expandable segments",
        "bool",
        False,
        help="GPUs under Linux: let PyTorch's memory segments grow. Helps if memory runs out although much is reserved "
        "and unused; some virtual GPUs do not support it.",
    ),
    FieldSpec(
        "env",
        "Environment",
        "variables",
        None,
        optional=True,
        help="Environment variables for every process of the run, one NAME=VALUE a line, for example NCCL_DEBUG=INFO. "
        "They are saved with the run: keep passwords and tokens out.",
    ),
    FieldSpec("strict", "Strict", "bool", False, help="Fail instead of falling back to a lesser mode."),
    FieldSpec(
        "max_restarts",
        "Restarts",
        "int",
        0,
        0,
        1_000,
        help="When a rank fails, start all of them anew from the last commit, at most so often.",
    ),
    FieldSpec(
        "start_timeout_s",
        "Start limit",
        "float",
        180.0,
        1.0,
        86_400.0,
        unit="s",
        help="Ranks that have not made their first step by then count as failed to start.",
    ),
    FieldSpec(
        "stop_timeout_s",
        "Stop limit",
        "float",
        120.0,
        1.0,
        86_400.0,
        unit="s",
        help="A stop that has not committed by then ends the ranks without.",
    ),
    FieldSpec(
        "log_file", "Copy of the metrics", "path", None, optional=True, help="metrics.jsonl is also written here."
    ),
)
FIELD_BY_NAME: Final[Mapping[str, FieldSpec]] = {spec.name: spec for spec in FIELDS}


@dataclass(frozen=True, slots=True)
class RunConfig:
    """What was asked of a run. Its fields' meaning and limits stand in `FIELDS`; a bad value raises here.

    `batch_size` is a rank's micro-batch. Of `batch_size`, `grad_accum_steps` and `global_batch_size` two are
    enough (`core.config.batch.resolve_batch`). `devices` holds what `--devices` took: ``("auto",)``,
    ``("cpux2",)``, GPU UUIDs, ``cuda:0`` ….

    Raises:
        ConfigError: A field has a value that cannot be used; it names the field and what is allowed.
    """

    recipe: str = "minigpt"
    dataset_file: str = "stdlib://"
    mode: Mode = Mode.AUTO
    zero_stage: int = 1
    zero_engine: str = "auto"
    offload_optimizer: bool = False
    offload_parameters: bool = False
    deepspeed_config: str | None = None
    gradient_exchange: str = "auto"
    static_graph: bool = False
    find_unused_parameters: bool = False
    broadcast_buffers: bool = True
    backend: str = "auto"
    collective_timeout_s: float = 300.0
    balance: str = "equal"
    work_stealing: bool = False
    sync_every: int | None = None
    sync_method: str = "auto"
    outer_lr: float | None = None
    outer_momentum: float | None = None
    devices: tuple[str, ...] = ("auto",)
    steps: int | None = None
    epochs: int | None = None
    batch_size: int | None = None
    grad_accum_steps: int | None = None
    global_batch_size: int | None = None
    seq_len: int = 128
    lr: float = 1e-3
    seed: int = 1234
    precision: str = "auto"
    eval_every: int | None = 100
    sample_share: float = 5.0
    checkpoint_every_steps: int | None = None
    checkpoint_every_s: float | None = 300.0
    keep_generations: int = 3
    samples_per_block: int = 100_000
    dataset_chunk_size: int = 4_000
    merge_policy: str = "best"
    merge_every_chunks: int | None = None
    model: str | None = None
    cudnn_benchmark: bool = False
    expandable_segments: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    max_restarts: int = 0
    start_timeout_s: float = 180.0
    stop_timeout_s: float = 120.0
    log_file: str | None = None
    options: Mapping[str, FieldValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, spec in FIELD_BY_NAME.items():
            object.__setattr__(self, name, spec.check(getattr(self, name)))
        object.__setattr__(self, "mode", Mode(self.mode))
        if not self.devices or not all(isinstance(d, str) and d.strip() for d in self.devices):
            raise ConfigError(
                "devices", "The list of devices names nothing.", "Name devices, for example cpux2 or cuda:0,cuda:1."
            )

    def replace(self, **changes: Any) -> RunConfig:
        """A copy with some fields changed, validated again."""
        return dataclasses.replace(self, **changes)

    @property
    def epoch_limit(self) -> int | None:
        """How often the dataset is trained: as asked; once when neither steps nor epochs are given; else no limit."""
        return 1 if self.epochs is None and self.steps is None else self.epochs

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for TOML and JSON; fields that are None are left out."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values["mode"] = self.mode.value
        values["devices"] = list(self.devices)
        values["options"] = dict(self.options)
        values["env"] = dict(self.env)
        return {name: value for name, value in values.items() if value is not None}
