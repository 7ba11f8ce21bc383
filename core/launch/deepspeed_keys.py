"""Which settings of DeepSpeed may stand in a configuration, of which type they are, and why others are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_OFFLOAD: Final = {
    "device": "text", "pin_memory": "bool", "buffer_count": "int", "buffer_size": "int", "max_in_cpu": "int",
    "ratio": "number", "pipeline_read": "bool", "pipeline_write": "bool", "fast_init": "bool",
}  # fmt: skip
_PROFILE: Final = {"enabled": "bool"}
# What may stand in a configuration and of which type it is; a dict is a section. Of DeepSpeed 0.16.5 to 0.19.8.
KEYS: Final[Mapping[str, Any]] = {
    "train_batch_size": "int",
    "train_micro_batch_size_per_gpu": "int",
    "gradient_accumulation_steps": "int",
    "gradient_clipping": "number",
    "steps_per_print": "int",
    "wall_clock_breakdown": "bool",
    "memory_breakdown": "bool",
    "dump_state": "bool",
    "prescale_gradients": "bool",
    "gradient_predivide_factor": "number",
    "sparse_gradients": "bool",
    "communication_data_type": "text",
    "disable_allgather": "bool",
    "zero_allow_untested_optimizer": "bool",
    "zero_force_ds_cpu_optimizer": "bool",
    "bf16": {
        "enabled": "bool", "immediate_grad_update": "bool", "check_grad_overflow": "bool",
    },
    "fp16": {
        "enabled": "bool", "auto_cast": "bool", "loss_scale": "number", "initial_scale_power": "int",
        "loss_scale_window": "int", "hysteresis": "int", "consecutive_hysteresis": "bool", "min_loss_scale": "number",
    },
    "data_types": {"grad_accum_dtype": "text"},
    "optimizer": {"type": "text", "params": {"lr": "number", "weight_decay": "number", "torch_adam": "bool"}},
    "activation_checkpointing": {
        "partition_activations": "bool", "cpu_checkpointing": "bool", "contiguous_memory_optimization": "bool",
        "number_checkpoints": "int", "synchronize_checkpoint_boundary": "bool", "profile": "bool",
    },
    "comms_logger": {
        "enabled": "bool", "verbose": "bool", "prof_all": "bool", "debug": "bool",
    },
    "flops_profiler": {
        "enabled": "bool", "profile_step": "int", "module_depth": "int", "top_modules": "int", "detailed": "bool",
        "recompute_fwd_factor": "number", "output_file": "text",
    },
    "zero_optimization": {
        "stage": "int",
        "contiguous_gradients": "bool",
        "reduce_scatter": "bool",
        "reduce_bucket_size": "int",
        "use_multi_rank_bucket_allreduce": "bool",
        "allgather_partitions": "bool",
        "allgather_bucket_size": "int",
        "overlap_comm": "bool",
        "offload_optimizer": _OFFLOAD,
        "offload_param": _OFFLOAD,
        "sub_group_size": "int",
        "stage3_prefetch_bucket_size": "int",
        "stage3_param_persistence_threshold": "int",
        "stage3_model_persistence_threshold": "int",
        "stage3_max_live_parameters": "int",
        "stage3_max_reuse_distance": "int",
        "stage3_module_granularity_threshold": "int",
        "stage3_use_all_reduce_for_fetch_params": "bool",
        "stage3_gather_16bit_weights_on_model_save": "bool",
        "ignore_unused_parameters": "bool",
        "round_robin_gradients": "bool",
        "memory_efficient_linear": "bool",
        "log_trace_cache_warnings": "bool",
    },
}  # fmt: skip
ONLY_IN_STAGE_3: Final = ("stage3_", "offload_param", "sub_group_size")

_NOT_OURS: Final = "Rankdeck does that itself"
REFUSED: Final[Mapping[str, str]] = {
    "scheduler": "the recipe decides the learning rate at each step",
    "amp": "precision is chosen in the run's own setting",
    "torch_autocast": "precision is chosen in the run's own setting",
    "aio": "it needs libaio, which Rankdeck does without",
    "checkpoint": _NOT_OURS,
    "load_universal_checkpoint": _NOT_OURS,
    "tensorboard": _NOT_OURS,
    "wandb": _NOT_OURS,
    "comet": _NOT_OURS,
    "csv_monitor": _NOT_OURS,
    "monitor_config": _NOT_OURS,
    "elasticity": "the devices of a run are chosen in Rankdeck",
    "autotuning": "it starts runs of its own",
    "managed_gradient_accumulation": "Rankdeck says where a step ends",
    "gradient_allreduce_op": "gradients are averaged, weighted by samples",
    "log_level": "DeepSpeed's warnings go to each rank's log",
    "compile": "it needs a compiler",
    "compression_training": "it needs a compiler",
    "zero_quantized_weights": "it needs a compiler",
    "zero_quantized_nontrainable_weights": "it needs a compiler",
    "zero_quantized_gradients": "it needs a compiler",
    "zenflow": "it needs a compiler",
    "nvme_path": "it needs libaio, which Rankdeck does without",
    "cpu_offload": "it is an old name: write offload_optimizer",
    "cpu_offload_param": "it is an old name: write offload_param",
    "data_efficiency": "the ledger decides which samples are trained",
    "curriculum_learning": "the ledger decides which samples are trained",
    "pipeline": "Rankdeck shares a model out by ZeRO only",
    "tensor_parallel": "Rankdeck shares a model out by ZeRO only",
    "sequence_parallel_size": "Rankdeck shares a model out by ZeRO only",
    "zero_hpz_partition_size": "Rankdeck keeps each number on one rank only",
    "elastic_checkpoint": _NOT_OURS,
    "load_from_fp32_weights": _NOT_OURS,
    "fp16_master_weights_and_grads": "the weights that are kept are fp32",
    "bf16_master_weights_and_grads": "the weights that are kept are fp32",
    "bf16_optimizer_states": "the weights that are kept are fp32",
}


def sections() -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Every section's place and keys, of the first two levels."""
    yield (), KEYS
    for name, inner in KEYS.items():
        if isinstance(inner, Mapping):
            yield (name,), inner
