"""What well-known programs print, written anew in their manner, with what it says: program → text and truth.

The wording of each follows the program's own logging; the numbers are made up. Recordings of real runs lie in
`printed`; a style stands here where the program cannot run in a test.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

from tests.unit.workers.script.scores import Program

LOSS: Final = (4.5, 4.125, 3.75, 3.5, 3.25, 3.125, 2.75, 2.5)
VAL: Final = (4.25, 3.0)
STYLES: Final[dict[str, Callable[[], Program]]] = {}
HF_SETTINGS: Final = (
    "***** Running training *****", "  Num examples = 128", "  Num Epochs = 3", "  Instantaneous batch size per device = 2",
    "  Total train batch size (w. parallel, distributed & accumulation) = 16", "  Gradient Accumulation steps = 8",
    "  Total optimization steps = 48", "  Number of trainable parameters = 4,368",
)  # fmt: skip


def style(make: Callable[[], Program]) -> Callable[[], Program]:
    STYLES[make.__name__] = make
    return make


def bar(number: int, total: int, title: str = "", postfix: str = "") -> str:
    drawn = "█" * (10 * number // total)
    return f"\r{title}{100 * number // total:3d}%|{drawn:<10}| {number}/{total} [00:12<00:33,  1.20it/s{postfix}]"


def program(text: str, loss: dict[int, float] | None = None, **charts: dict[int, float]) -> Program:
    return Program(text.encode(), {"loss": loss or {}, **charts})


def every(stride: int, start: int = 0) -> dict[int, float]:
    return {start + stride * index: loss for index, loss in enumerate(LOSS)}


def by_step(line: str, stride: int = 10, head: str = "", tail: str = "") -> Program:
    """A line for each step; `{step}`, `{epoch}`, `{place}` (4 an epoch) and `{loss}` are filled in."""
    losses = every(stride, stride)
    lines = [
        line.format(step=step, loss=loss, epoch=index // 4, place=index % 4 + 1, second=index)
        for index, (step, loss) in enumerate(losses.items())
    ]
    return program(head + "\n".join(lines) + "\n" + tail, losses)


# Programs that print a line for each tenth step, as `by_step` fills it in.
LINES: Final = {
    "date_day_first": "23.11.2026 12:00:0{second},123 INFO trainer: step {step} loss {loss}",
    "date_two_digit_year": "23/11/26 12:00:0{second} [INFO] step {step} loss {loss}",
    "date_iso_zone": "2026-11-23T12:00:0{second}.123456+01:00 INFO trainer step {step} loss {loss}",
    "date_slashes": "2026/11/23 12:00:0{second} step {step} loss {loss}",
    "date_compact": "20261123_12000{second} step {step} loss {loss}",
    "date_syslog": "Nov 23 12:00:0{second} node7 python[4711]: step {step} loss {loss}",
    "date_glog": "I1123 12:00:0{second}.123456 4711 trainer.py:88] step {step} loss {loss}",
    "date_loguru": "2026-11-23 12:00:0{second}.123 | INFO     | __main__:train:88 - step {step} loss {loss}",
    "llama2_c": "{step} | loss {loss:.4f} | lr 5.000000e-04 | 123.45ms | mfu 12.34%",
    "mmengine_iterations": (
        "2026/11/23 12:00:01 - mmengine - INFO - Iter(train) [   {step}/80000]  base_lr: 1.0e-02 lr: 1.0000e-02  eta: "
        "1 day, 0:03:13  time: 0.0991  data_time: 0.0100  memory: 500  loss: {loss:.4f}  decode.loss_ce: {loss}"
    ),
    "detectron2": (
        "[11/23 12:00:0{second} d2.utils.events]:  eta: 1:23:45  iter: {step}  total_loss: {loss}  loss_cls: 1.2  "
        "loss_box_reg: 0.1    time: 0.5123  last_time: 0.5123  data_time: 0.0123  last_data_time: 0.0021   lr: 1.6068e-05  "
        "max_mem: 2345M"
    ),
    "coqui_tts": (
        "   --> TIME: 2026-11-23 12:00:0{second} -- STEP: {step}/406 -- GLOBAL_STEP: {step}\n     | > loss: {loss:.5f}  "
        "({loss:.5f})\n     | > grad_norm: 0.2 (0.2)\n     | > current_lr: 2.5e-07 \n     | > step_time: 0.3 (0.3)"
    ),
}
STYLES.update({name: functools.partial(by_step, line) for name, line in LINES.items()})


# --- dates and times before the words ----------------------------------------------------------------------


@style
def date_month_first() -> Program:
    head = "".join(f"11/23/2026 12:00:01 - INFO - __main__ - {line}\n" for line in HF_SETTINGS)
    return by_step("11/23/2026 12:00:0{second} - INFO - __main__ - step {step}: loss {loss}", head=head)


@style
def date_month_first_no_step() -> Program:
    head = "".join(f"11/23/2026 12:00:01 - INFO - __main__ - {line}\n" for line in HF_SETTINGS)
    lines = [f"11/23/2026 12:00:0{index} - INFO - __main__ - loss = {loss}\n" for index, loss in enumerate(LOSS)]
    return program(head + "".join(lines), every(1, 1))


@style
def date_clock_only() -> Program:
    return by_step("[12:00:0{second}] loss {loss}", 1)


@style
def date_evaluation() -> Program:
    lines = [f"11/23/2026 12:00:01 - INFO - __main__ - step {s}: loss {v}" for s, v in every(10, 10).items()]
    lines.insert(4, f"11/23/2026 12:00:01 - INFO - __main__ - Test set: Average loss: {VAL[0]}, Accuracy: 9/10 (90%)")
    lines.append(f"11/23/2026 12:00:01 - INFO - __main__ - Validation loss: {VAL[1]}")
    return program("\n".join(lines) + "\n", every(10, 10), val_loss={40: VAL[0], 80: VAL[1]})


# --- Hugging Face and relatives ----------------------------------------------------------------------------


@style
def hf_example_with_bar() -> Program:
    head = "".join(f"11/23/2026 12:00:01 - INFO - __main__ - {line}\n" for line in HF_SETTINGS)
    text, losses = head + bar(0, 48), every(6, 6)
    for step, loss in losses.items():
        text += bar(step - 1, 48) + f"\r{' ' * 60}\r{{'loss': {loss}, 'learning_rate': 4e-05, 'epoch': {step / 16}}}\n"
        text += bar(step, 48)
    return program(text, losses)


@style
def no_trainer_example() -> Program:
    """`run_clm_no_trainer`: a bare bar, and an evaluation in a dated line after each epoch."""
    text = "".join(f"11/23/2026 12:00:01 - INFO - __main__ - {line}\n" for line in HF_SETTINGS) + bar(0, 48)
    for epoch, loss in enumerate((*VAL, 2.0)):
        text += "".join(bar(step, 48) for step in range(16 * epoch + 1, 16 * epoch + 17))
        text += f"11/23/2026 12:00:09 - INFO - __main__ - epoch {epoch}: perplexity: 33.2 eval_loss: {loss}\n"
    return program(text, {}, val_loss={16: VAL[0], 32: VAL[1], 48: 2.0})


@style
def diffusers() -> Program:
    head = "".join(f"11/23/2026 12:00:01 - INFO - __main__ - {line}\n" for line in HF_SETTINGS)
    bars = [bar(s, 48, "Steps: ", f", lr=1e-5, step_loss={v}") for s, v in every(6, 6).items()]
    return program(head + bar(0, 48, "Steps: ") + "".join(bars) + "\n", every(6, 6))


@style
def llama_factory() -> Program:
    text = "".join(f"[INFO|trainer.py:2519] 2026-11-23 12:00:01,123 >> {line}\n" for line in HF_SETTINGS) + bar(0, 48)
    for step, loss in every(6, 6).items():
        text += bar(step - 1, 48) + f"\r{' ' * 60}\r[INFO|2026-11-23 12:00:01] llamafactory.train.callbacks:143 >> "
        text += f"{{'loss': {loss:.4f}, 'learning_rate': 4.0e-05, 'epoch': {step / 16:.2f}, 'throughput': 1234.5}}\n"
        text += bar(step, 48) + f"\r{' ' * 60}\r{{'loss': {loss}, 'learning_rate': 4e-05, 'epoch': {step / 16}}}\n"
        text += bar(step, 48)
    return program(text, every(6, 6))


# --- large language models ---------------------------------------------------------------------------------


@style
def megatron() -> Program:
    line = (
        " [2026-11-23 12:00:0{second}] iteration       {step}/     100 | consumed samples:          80 | elapsed time per "
        "iteration (ms): 1234.5 | learning rate: 1.500000E-04 | global batch size:     8 | lm loss: {loss}E+00 | loss "
        "scale: 1.0 | grad norm: 2.345 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )
    head = "  accumulate_allreduce_grads_in_fp32 .............. True\n  train_iters ............ 100\n  log_interval .... 10\n"
    tail = f"{'-' * 60}\n validation loss at iteration 80 | lm loss value: {VAL[1]}E+00 | lm loss PPL: 1.8E+02 | \n{'-' * 60}\n"
    made = by_step(line, head=head, tail=tail)
    return program(made.text.decode(), dict(made.charts["loss"]), val_loss={80: VAL[1]})


@style
def torchtitan() -> Program:
    head = (
        "[titan] 2026-11-23 12:00:01,123 - root - INFO - Trainer is initialized with local batch size 8, global batch size "
        "64, gradient accumulation steps 1, sequence length 2048, total steps 100 (warmup 2)\n"
        "[titan] 2026-11-23 12:00:01,123 - root - INFO - Training starts at step 1\n"
    )
    return by_step(
        "[titan] 2026-11-23 12:00:0{second},123 - root - INFO - step: {step:2d}  loss:  {loss:.4f}  grad_norm:  0.3000  "
        "memory:  5.20GiB(8.1%)  tps: 1,234  tflops: 1.25  mfu: 4.50%",
        head=head,
    )


@style
def deepspeed() -> Program:
    line = (
        "[2026-11-23 12:00:0{second},123] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[1e-05, 1e-05], "
        "mom=[(0.9, 0.95)]\nsteps: {step} loss: {loss:.4f} iter time (s): 0.500 samples/sec: 32.000\n"
        "[2026-11-23 12:00:0{second},124] [INFO] [timer.py:259:stop] epoch=0/micro_step={step}/global_step={step}, "
        "RunningAvgSamplesPerSec=31.9, CurrSamplesPerSec=32.1, MemAllocated=0.1GB, MaxMemAllocated=0.3GB"
    )
    head = "[2026-11-23 12:00:01,123] [INFO] [config.py:1003:print]   gradient_accumulation_steps .. 8\n  steps_per_print ... 10\n"
    return by_step(line, head=head)


@style
def fairseq() -> Program:
    line = (
        "2026-11-23 12:00:0{second} | INFO | train_inner | epoch 001:     {step} / 100 loss={loss}, ppl=22.6, wps=21494, "
        "ups=3.2, wpb=6553, bsz=64, num_updates={step}, lr=1e-05, gnorm=3.2, train_wall=3, gb_free=30, wall=10"
    )
    tail = (
        '2026-11-23 12:00:09 | INFO | fairseq.trainer | begin validation on "valid" subset\n'
        f"2026-11-23 12:00:09 | INFO | valid | epoch 001 | valid on 'valid' subset | loss {VAL[1]} | ppl 8 | wps 9000 | wpb 2 "
        f"| bsz 8 | num_updates 80 | best_loss {VAL[1]}\n"
    )
    made = by_step(line, tail=tail)
    return program(made.text.decode(), dict(made.charts["loss"]), val_loss={80: VAL[1]})


@style
def fairseq_json() -> Program:
    line = (
        '2026-11-23 12:00:0{second} | INFO | train_inner | {{"epoch": 1, "update": 0.{step}, "loss": "{loss}", "ppl": "22", '
        '"wps": "21494", "num_updates": "{step}", "lr": "1e-05", "gnorm": "3.2"}}'
    )
    return by_step(line)


@style
def nanogpt() -> Program:
    head = (
        "tokens per iteration will be: 16,384\nfound vocab_size = 65 (inside data/shakespeare_char/meta.pkl)\n"
        "number of parameters: 10.65M\nnum decayed parameter tensors: 26, with 10,740,096 parameters\n"
        "num non-decayed parameter tensors: 13, with 4,992 parameters\nusing fused AdamW: True\n"
    )
    lines = []
    for index, (step, loss) in enumerate(every(10).items()):
        if index in (0, 4):
            lines.append(f"step {step}: train loss {loss + 0.1:.4f}, val loss {VAL[index // 4]:.4f}")
        lines.append(f"iter {step}: loss {loss:.4f}, time {64.53 + index}ms, mfu {4.53 if index else -100:.2f}%")
    return Program(
        (head + "\n".join(lines) + "\n").encode(),
        {"loss": every(10), "val_loss": {0: VAL[0], 40: VAL[1]}},
        also={"loss": {0: 4.6, 40: 3.35}},
    )


@style
def mingpt() -> Program:
    head = "number of parameters: 0.09M\nrunning on device cpu\n"
    return by_step("iter_dt 10.02ms; iter {step}: train loss {loss:.5f}", head=head)


@style
def modded_nanogpt() -> Program:
    made = by_step("step:{step}/1390 train_loss:{loss:.4f} train_time:1234ms step_avg:123.40ms")
    tail = f"step:80/1390 val_loss:{VAL[1]:.4f} train_time:9999ms step_avg:125.00ms\n"
    return program(made.text.decode() + tail, dict(made.charts["loss"]), val_loss={80: VAL[1]})


# --- vision ------------------------------------------------------------------------------------------------


def _two_epochs(line: str, between: str = "", head: str = "", *, first: int = 0) -> Program:
    text, losses, evaluations = head, {}, {}
    for index, loss in enumerate(LOSS):
        epoch, place = index // 4, 2 * (index % 4) + first
        text += line.format(epoch=epoch, one=epoch + 1, place=place, loss=loss) + "\n"
        losses[8 * epoch + place] = loss
        if index % 4 == 3 and between:
            text += between.format(epoch=epoch, one=epoch + 1, val=VAL[epoch]) + "\n"
            evaluations[8 * epoch + place] = VAL[epoch]
    return program(text, losses, val_loss=evaluations)


@style
def timm() -> Program:
    head = (
        "Training with a single process on 1 device (cpu).\nModel resnet18 created, param count:11689512\n"
        "Data processing configuration for current model + dataset:\n\tinput_size: (3, 224, 224)\n\tcrop_pct: 0.95\n"
        "Learning rate (0.05) calculated from base learning rate (0.1) and effective global batch size (128) with linear "
        "scaling.\nScheduled epochs: 2 (epochs + cooldown_epochs). Warmup within epochs when warmup_prefix=False. LR stepped "
        "per epoch.\n"
    )
    return _two_epochs(
        "Train: {epoch} [   {place}/8 ({place}2%)]  Loss: {loss:#.3g} (6.95)  Time: 3.110s,   41.16/s  (3.110s,   41.16/s)  "
        "LR: 1.000e-06  Data: 0.010 (0.010)",
        "Test: [   0/1]  Time: 1.207 (1.207)  Loss:   {val} ( {val})  Acc@1:  50.000 ( 50.000)  Acc@5:  90.000 ( 90.000)",
        head,
    )


@style
def imagenet_example() -> Program:
    made = _two_epochs(
        "Epoch: [{epoch}][{place}/8]\tTime 13.523 (13.523)\tData  0.211 ( 0.211)\tLoss {loss:.4e} (6.95e+00)\t"
        "Acc@1   0.00 (  0.00)\tAcc@5   0.00 (  0.00)",
        "Test: [ 0/2]\tTime  1.5 ( 1.5)\tLoss {val:.4e} (6.5e+00)\tAcc@1   0.00 (  0.00)\n *   Acc@1 50.123 Acc@5 75.2",
        first=1,
    )
    return program(made.text.decode(), dict(made.charts["loss"]), val_accuracy={7: 50.123, 15: 50.123})


@style
def mnist_example() -> Program:
    return _two_epochs(
        "Train Epoch: {one} [{place}/8 ({place}2%)]\tLoss: {loss:.6f}",
        "\nTest set: Average loss: {val:.4f}, Accuracy: 9823/10000 (98%)\n",
    )


@style
def mmengine() -> Program:
    return _two_epochs(
        "11/23 12:00:01 - mmengine - INFO - Epoch(train)  [{one}][{place}/8]  lr: 1.0000e-02  eta: 0:03:13  time: 0.0991  "
        "data_time: 0.0100  memory: 500  loss: {loss:.4f}",
        "11/23 12:00:01 - mmengine - INFO - Epoch(val) [{one}][2/2]    loss: {val}  data_time: 0.0100  time: 0.0500",
        first=1,
    )


@style
def ultralytics() -> Program:
    text = "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
    for epoch in range(1, 4):
        title = f"        {epoch}/3      0.5G      {LOSS[epoch]}      3.4      1.1         20        640: "
        text += "".join(bar(place, 4, title) for place in range(5)) + "\n"
        text += (
            "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): "
            "100%|██████████| 2/2 [00:00<00:00,  5.20it/s]\n                   all        128        929      0.64      0.53\n"
        )
    return program(text)


@style
def ignite() -> Program:
    text = ""
    for index, loss in enumerate(LOSS):
        text += f"Epoch[{index // 4 + 1}] Iteration[{2 * (index % 4) + 2}/8] Loss: {loss:.2f}\n"
        if index % 4 == 3:
            text += (
                f"Validation Results - Epoch: {index // 4 + 1}  Avg accuracy: 0.92 Avg loss: {VAL[index // 4]:.2f}\n"
            )
    return program(text, every(2, 2), val_loss={8: VAL[0], 16: VAL[1]})


# --- reinforcement learning --------------------------------------------------------------------------------


@style
def stable_baselines3() -> Program:
    text = "Using cpu device\nWrapping the env with a `Monitor` wrapper\nWrapping the env in a DummyVecEnv.\n"
    for index, loss in enumerate(LOSS):
        text += (
            f"{'-' * 41}\n| rollout/           |                  |\n|    ep_len_mean     | 22.3             |\n"
            f"|    ep_rew_mean     | {loss}              |\n| time/              |                  |\n"
            f"|    fps             | 400              |\n|    iterations      | {index + 1}                |\n"
            f"|    total_timesteps | {2048 * (index + 1)}             |\n{'-' * 41}\n"
        )
    return program(text, {}, reward=every(2048, 2048))


@style
def openai_baselines() -> Program:
    text = "Logging to /tmp/openai-2026-11-23-12-00-01\n"
    for step, loss in every(2048, 2048).items():
        text += f"{'-' * 40}\n| eplenmean                | 200       |\n| eprewmean                | {loss} |\n"
        text += f"| loss/policy_loss         | -0.0123   |\n| misc/nupdates            | {step // 2048} |\n"
        text += f"| misc/total_timesteps     | {step}  |\n{'-' * 40}\n"
    return program(text, {}, reward=every(2048, 2048))


@style
def mask_rcnn_reference() -> Program:
    return _two_epochs(
        "Epoch: [{epoch}]  [{place}/8]  eta: 0:01:02  lr: 0.000090  loss: {loss:.4f} ({loss:.4f})  loss_classifier: 0.7 (0.7)  "
        "time: 1.0321  data: 0.4213  max mem: 2173",
    )


@style
def yolox() -> Program:
    return _two_epochs(
        "2026-11-23 12:00:01 | INFO     | yolox.core.trainer:261 - epoch: {one}/2, iter: {place}/8, gpu mem: 1200Mb, mem: 3.2Gb, "
        "iter_time: 0.412s, data_time: 0.002s, total_loss: {loss}, iou_loss: 2.1, conf_loss: 3.2, lr: 1.000e-05, size: 640, "
        "ETA: 3:12:01",
        first=2,
    )


@style
def cleanrl() -> Program:
    return program(
        "".join(f"global_step={step}, episodic_return=[{loss}]\nSPS: 512\n" for step, loss in every(128, 128).items()),
        {}, reward=every(128, 128),
    )  # fmt: skip


# --- plain loops -------------------------------------------------------------------------------------------


@style
def plain_step_on_its_own_line() -> Program:
    text = "batch_size: 64\nsteps: 100\nepochs: 3\n"
    return program(text + "".join(f"step: {s}\nloss: {v}\nlr: 0.001\n" for s, v in every(1, 1).items()), every(1, 1))


@style
def plain_evaluation_names_a_step() -> Program:
    text = ""
    for step, loss in every(1, 1).items():
        text += f"Iteration {step}\n  loss: {loss}\n"
        if step % 4 == 0:
            text += f"Evaluation, step {step}: val_loss = {VAL[step // 5]}\nnext evaluation: step {step + 4}\n"
    return program(text, every(1, 1), val_loss={4: VAL[0], 8: VAL[1]})


@style
def plain_settings_first() -> Program:
    head = (
        "Namespace(batch_size=64, lr=0.01, epochs=3, steps=100, log_interval=10, loss_weight=0.5)\n"
        "gradient accumulation steps = 8\nwarmup: 10 steps\nsteps = 100\nseed 7\nepochs: 3\n[1/3] building the model\n"
        "[2/3] loading data\n[3/3] compiling\n"
    )
    return program(head + "".join(f"loss: {loss}\n" for loss in LOSS), every(1, 1))


@style
def plain_resume() -> Program:
    head = "Loaded checkpoint from step 500 (epoch 5)\nResuming at step 501\n"
    return program(head + "".join(f"step {s} loss {v}\n" for s, v in every(1, 501).items()), every(1, 501))


@style
def plain_checkpoints_between() -> Program:
    text = ""
    for step, loss in every(10, 10).items():
        text += f"step {step} loss {loss}\n"
        if step % 20 == 0:
            text += f"saved checkpoint-{step} (best at step 10)\ncheckpoint: runs/23.11.2026/step_{step}.pt, 3 files\n"
    return program(text, every(10, 10))


@style
def plain_epochs() -> Program:
    text = "".join(
        f"Epoch {index + 1}/8\n----------\ntrain Loss: {loss} Acc: 0.8\nval Loss: {loss + 0.5} Acc: 0.9\n\n"
        for index, loss in enumerate(LOSS)
    )
    val = {step: loss + 0.5 for step, loss in every(1, 1).items()}
    return Program(text.encode(), {"loss": every(1, 1), "val_loss": val}, epochs={n: n for n in range(1, 9)})


@style
def word_language_model() -> Program:
    text, losses = "", {}
    for index, loss in enumerate(LOSS):
        epoch, place = index // 4, 2 * (index % 4 + 1)
        text += f"| epoch   {epoch + 1} |     {place}/    8 batches | lr 20.00 | ms/batch 13.42 | loss  {loss} | ppl  90.1\n"
        losses[8 * epoch + place] = loss
        if index % 4 == 3:
            text += f"{'-' * 89}\n| end of epoch   {epoch + 1} | time:  1.87s | valid loss  {VAL[epoch]} | valid ppl   254.62\n"
    return program(text, losses, val_loss={8: VAL[0], 16: VAL[1]})


@style
def wandb_around() -> Program:
    tail = (
        "wandb: \nwandb: Run history:\nwandb:       loss █▆▅▄▃▂▁▁\nwandb: Run summary:\nwandb:       loss 9.75\n"
        "wandb:      epoch 3\nwandb: Synced 5 W&B file(s), 0 media file(s), 2 artifact file(s) and 1 other file(s)\n"
    )
    return by_step("step {step} loss {loss}", head="wandb: Tracking run with wandb version 0.22.1\n", tail=tail)
