"""What training programs print, as points of curves: the formats of many authors, and bytes of any kind."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from workers.script.printed.names import Names
from workers.script.printed.segments import MAX_SEGMENT_BYTES, Segments
from workers.script.printed.steps import Point, PrintedMetrics

CORPUS = Path(__file__).parent / "printed"
BAR = "{percent:3.0f}%|{blocks:<10}| {n}/{total} [00:05<00:45,  2.00it/s{postfix}]"


def points(text: str | bytes, names: Names | None = None) -> list[Point]:
    printed = PrintedMetrics(names)
    data = text.encode() if isinstance(text, str) else text
    return [*printed.feed(data), *printed.finish()]


def trained(text: str | bytes, names: Names | None = None) -> list[tuple[int, dict[str, float]]]:
    return [(point.step, dict(point.values)) for point in points(text, names) if not point.evaluation]


def evaluated(text: str | bytes) -> list[tuple[int, dict[str, float]]]:
    return [(point.step, dict(point.values)) for point in points(text) if point.evaluation]


def bar(n: int, total: int, postfix: str = "", title: str = "") -> str:
    return (
        "\r"
        + title
        + BAR.format(percent=100 * n / total, blocks="#" * (10 * n // total), n=n, total=total, postfix=postfix)
    )


@pytest.mark.parametrize(
    ("line", "step", "values"),
    [
        ("step 7: loss 2.5", 7, {"loss": 2.5}),
        ("step=7, loss=2.5", 7, {"loss": 2.5}),
        ("Step: 7 | Loss: 2.5", 7, {"loss": 2.5}),
        ("step 7/100 - train_loss: 2.5 - learning_rate: 1e-4", 7, {"loss": 2.5, "lr": 1e-4}),
        ("iteration 7 loss=2.5 lr=.001", 7, {"loss": 2.5, "lr": 0.001}),
        ("iter 7: loss 3.2, time 64.53ms, mfu 4.53%", 7, {"loss": 3.2, "step_time_s": 0.06453, "mfu": 4.53}),
        ("step 7 loss 2.5 tok/s 21,494", 7, {"loss": 2.5, "tokens_per_s": 21494}),
        ("step 7 acc: 50.00%", 7, {"accuracy": 50}),
        ("step\t7\tloss\t2.5", 7, {"loss": 2.5}),
        ("\x1b[32mstep 7\x1b[0m \x1b[1mloss\x1b[0m \x1b[31m2.5\x1b[0m", 7, {"loss": 2.5}),
        ("step 7 loss='2.5'", 7, {"loss": 2.5}),
        ("step 7 loss: tensor(2.5000, grad_fn=<NllLossBackward0>)", 7, {"loss": 2.5}),
        ("2026-11-21 10:00:00,123 - INFO - trainer.py:88 - step 7 loss 2.5", 7, {"loss": 2.5}),
        ("[rank0]: step 7 loss 2.5", 7, {"loss": 2.5}),
        ("Global step 1,234: loss 2.5", 1234, {"loss": 2.5}),
        ("step    7/18865 | loss 11.009 (+nan z)| norm 15.3 (+nan z)| lr 3.00e-06 | 3074.1 ms | 47.1% bf16 MFU | 170559 tok/s",
         7, {"loss": 11.009, "grad_norm": 15.3, "lr": 3e-6, "step_time_s": 3.0741, "mfu": 47.1, "tokens_per_s": 170559}),
        ("step 00007/21400 (0.05%) | loss: 10.8 | grad norm: 1.2 | dt: 1433.30ms | tok/sec: 365,786",
         7, {"loss": 10.8, "grad_norm": 1.2, "step_time_s": 1.4333, "tokens_per_s": 365786}),
        (" iteration        7/  500000 | consumed samples:  512 | elapsed time per iteration (ms): 1234.5 | learning rate: "
         "1.500E-04 | global batch size:   512 | lm loss: 1.05E+01 | loss scale: 1.0 | grad norm: 2.345 |",
         7, {"consumed_samples": 512, "step_time_s": 1.2345, "lr": 1.5e-4, "loss": 10.5, "loss_scale": 1, "grad_norm": 2.345}),
        ("2024-01-01 10:00:00 | INFO | train_inner | epoch 001:     99 / 100 loss=10.2, wps=21,494, num_updates=7, lr=1e-05, gnorm=3.2",
         7, {"loss": 10.2, "tokens_per_s": 21494, "lr": 1e-5, "grad_norm": 3.2}),
        ("steps: 7 loss: 0.6931 iter time (s): 0.500 samples/sec: 32.000",
         7, {"loss": 0.6931, "step_time_s": 0.5, "samples_per_s": 32}),
        ("04/01 12:00:00 - mmengine - INFO - Epoch(train)  [1][  7/196]  lr: 1.0000e-02  eta: 0:03:13  time: 0.0991  loss: 2.3",
         7, {"lr": 0.01, "step_time_s": 0.0991, "loss": 2.3}),
        ("[04/01 12:00:00 d2.utils.events]:  eta: 1:23:45  iter: 7  total_loss: 2.3  loss_cls: 1.2  max_mem: 2345M",
         7, {"loss": 2.3, "loss_cls": 1.2}),
        ('{"step": 7, "loss": 2.5, "config": {"depth": 3}}', 7, {"loss": 2.5}),
        ('{"global_step": 7, "train/loss": 2.5, "note": "fine"}', 7, {"loss": 2.5}),
        ("INFO:root:{'step': 7, 'loss': '2.5'}", 7, {"loss": 2.5}),
        ("step 7 loss 2.5 in 3.2 s on 127.0.0.1 by torch 2.13.0", 7, {"loss": 2.5}),
        ("step 7 loss -0.25", 7, {"loss": -0.25}),
        ("[1,     7] loss: 2.134", 7, {"loss": 2.134}),
        ("| epoch   1 |     7/ 2983 batches | lr 20.00 | ms/batch 13.42 | loss  7.63 | ppl  2063.71", 7, {"lr": 20, "step_time_s": 0.01342, "loss": 7.63, "perplexity": 2063.71}),
        ("[0/5][7/1583]\tLoss_D: 1.7410\tLoss_G: 5.2304", 7, {"loss_d": 1.741, "loss_g": 5.2304}),
        ("Train: 0 [   7/1251 (  0%)]  Loss: 6.95 (6.95)  Time: 3.110s,   41.16/s  LR: 1.000e-06", 7, {"loss": 6.95, "step_time_s": 3.11, "lr": 1e-6}),
        ("Epoch [1/5], Step [7/600], Loss: 0.4231", 7, {"loss": 0.4231}),
        ("Epoch 1 | iter 16 step 7 | loss train: 2.345, val: n/a | iter time: 123.45 ms (step)", 7, {"loss": 2.345, "step_time_s": 0.12345}),
        ("Training loss at iteration 7 is 2.25", 7, {"loss": 2.25}),
        ("global_step=7, episodic_return=[20.5]", 7, {"reward": 20.5}),
        ("step: 7  loss:  8.2  grad_norm:  0.3 memory:  5.2GiB(8.1%)  tps: 1,234  mfu: 4.5%", 7, {"loss": 8.2, "grad_norm": 0.3, "tokens_per_s": 1234, "mfu": 4.5}),
        ("iter_dt 10.02ms; iter 7: train loss 2.34567", 7, {"step_time_s": 0.01002, "loss": 2.34567}),
        (" 7/100 [==>...........] - ETA: 5s - loss: 2.3012 - accuracy: 0.1234", 7, {"loss": 2.3012, "accuracy": 0.1234}),
    ],
)  # fmt: skip
def test_a_line_names_its_step_and_its_numbers(line: str, step: int, values: dict[str, float]) -> None:
    found = trained(line + "\n")
    assert [at for at, _ in found] == [step]
    assert found[0][1] == pytest.approx(values)


@pytest.mark.parametrize(
    "text",
    [
        "hello world\nepoch is a word\n",
        "Num Epochs = 3\n  Total optimization steps = 30\nlearning_rate = 0.001\nmax_steps: 100\nbatch_size: 64\n",
        "number of parameters: 10.65M\ntokens per iteration will be: 16,384\nfound vocab_size = 65 (inside meta.pkl)\n",
        "{'task': {'name': 'Causal Language Modeling'}, 'metrics': [{'name': 'Accuracy', 'value': 0.27}]}\n",
        "{'task': {'name': 'x'}, 'value': 0.5}\n",
        '{\n  "n_layer": 12,\n  "learning_rate": 0.1,\n  "loss": 3\n}\n',
        "Saved checkpoint at step 500 in 3.2 s\n",
        "[GPU0] Epoch 0 | Batchsize: 32 | Steps: 32\n",
        "{'train_runtime': '12.3', 'train_loss': '5.6', 'epoch': '3.0'}\n",
        "model.safetensors: 100%|##########| 548M/548M [00:05<00:00, 103MB/s]\n",
        "Map: 100%|##########| 1000/1000 [00:05<00:00, 200.00 examples/s]\n",
        "http://127.0.0.1:8080/loss=3\n",
    ],
)
def test_what_is_no_metric_is_not_charted(text: str) -> None:
    assert points(text) == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("step 7: loss 0,833 acc: 0,5", [{"loss": 0.833, "accuracy": 0.5}]),
        ("step 7, loss: 2,5123, lr: 1,00e-03", [{"loss": 2.5123, "lr": 0.001}]),
        ("{'loss': '0,833', 'step': 7}", [{"loss": 0.833}]),
        ("step 7 loss 1,234", []),  # either; nothing is better than a wrong figure
        ("step 6 loss 0,9\nstep 7 loss 1,234 tok/s 21,494", [{"loss": 0.9}, {"loss": 1.234, "tokens_per_s": 21494}]),
        ("step 6 loss 0.9\nstep 7 loss 1,234 tok/s 21,494", [{"loss": 0.9}, {"loss": 1234, "tokens_per_s": 21494}]),
        ("step 7 loss 1,234,567.5", [{"loss": 1234567.5}]),
        ("step 7 loss 0.5 box: 1,2", [{"loss": 0.5}]),
        ("epoch 0,50 loss 2.0", [{"loss": 2.0}]),
        ("step 1,200 loss 2.0", [{"loss": 2.0}]),
    ],
)
def test_a_decimal_comma_is_not_one_between_thousands(text: str, values: list[dict[str, float]]) -> None:
    assert [found for _, found in trained(text)] == values


def test_a_counter_without_a_loss_beside_it_counts_once_it_rises() -> None:
    line = "[2024-01-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step={}, skipped=0, lr=[1e-05, 1e-05]\n"
    assert trained(line.format(7)) == []
    assert [step for step, _ in trained(line.format(7) + line.format(8) + line.format(9))] == [7, 8, 9]


@pytest.mark.parametrize(
    "before",
    [
        "gradient accumulation steps = 8\n", "steps: 100\nepochs: 3\n", "Namespace(steps=100, lr=0.1, loss_weight=0.5)\n",
        "11/23/2026 12:00:01 - INFO - __main__ - ready\n", "[1/3] building\n[2/3] compiling\n", "Resuming from step 500\n",
        "Gradient Accumulation steps = 8\nGradient Accumulation steps = 8\n", "update 3 of the package is available\n",
    ],
)  # fmt: skip
def test_settings_and_dates_are_no_steps(before: str) -> None:
    assert trained(before + "loss: 2.5\nloss: 2.4\n") == [(1, {"loss": 2.5}), (2, {"loss": 2.4})]
    assert [step for step, _ in trained(before + "step 5 loss 2.5\nstep 6 loss 2.4\n")] == [5, 6]
    assert [step for step, _ in trained(before + bar(3, 9) + "\r{'loss': 2.5}\n" + bar(4, 9))] == [4]


def test_a_bar_without_its_end_is_seen_when_the_program_is_quiet() -> None:
    printed = PrintedMetrics()
    assert printed.feed((bar(0, 28) + bar(21, 28) + "\r   \r{'loss': '3.66'}\n" + bar(22, 28)).encode()) == []
    assert [(point.step, point.values) for point in printed.flush()] == [(22, {"loss": 3.66})]
    assert printed.feed(("\r   \r{'loss': '3.65'}\n" + bar(24, 28)).encode()) == []
    assert [point.step for point in printed.flush()] == [24]


@pytest.mark.parametrize("quote", ["'", ""])
def test_trainer_dicts_take_their_step_from_the_bar_on_the_same_line(quote: str) -> None:
    """The Trainer of transformers 5 quotes its numbers, that of 4 does not; neither says the step."""

    def record(loss: float) -> str:
        return f"\r{' ' * 40}\r{{'loss': {quote}{loss}{quote}, 'learning_rate': {quote}4e-05{quote}, 'epoch': {quote}0.5{quote}}}\n"

    text = bar(0, 30) + record(6.5) + bar(10, 30) + bar(13, 30) + record(5.5) + bar(20, 30)
    evaluation = (
        "\n" + bar(0, 8) + "\x1b[A" + bar(8, 8) + "\x1b[A\r{'eval_loss': '5.9', 'eval_runtime': '1.0'}\n" + bar(20, 30)
    )
    assert trained(text + evaluation) == [(10, {"loss": 6.5, "lr": 4e-5}), (20, {"loss": 5.5, "lr": 4e-5})]
    assert evaluated(text + evaluation) == [(20, {"val_loss": 5.9})]


def test_a_dict_just_behind_a_bar_without_another_bar_takes_that_bars_step() -> None:
    assert trained(bar(1, 3) + bar(2, 3) + "\r{'loss': 5.5}\n") == [(2, {"loss": 5.5})]


def test_bars_with_numbers_behind_them() -> None:
    text = bar(1, 50, ", loss=2.5") + bar(1, 50, ", loss=2.4") + bar(2, 50, ", loss=2.3, lr=1e-3")
    assert trained(text) == [(1, {"loss": 2.4}), (2, {"loss": 2.3, "lr": 1e-3})]
    assert trained("\r 12/100 [00:05<00:30, 2.3it/s, loss=2.3]") == [(12, {"loss": 2.3})]
    assert trained(bar(10, 100) + "loss: 2.3\n" + bar(20, 100) + "loss: 2.1\n") == [
        (10, {"loss": 2.3}),
        (20, {"loss": 2.1}),
    ]
    assert trained("\r1|11|Loss: 2.2:   5%|5    | 11/200 [00:12<03:20,  1.05s/it]\n") == [(11, {"loss": 2.2})]


def test_a_bar_anew_each_epoch_goes_on_counting() -> None:
    epochs = [bar(n, 4, f", train_loss={3 - e}.{n}", f"Epoch {e}: ") for e in range(3) for n in range(1, 5)]
    assert [step for step, _ in trained("".join(epochs))] == list(range(1, 13))


def test_bars_that_count_something_else_are_passed_over() -> None:
    text = (
        bar(2, 2, title="Loading checkpoint shards: ")
        + "\n"
        + bar(2, 2, title="Warm-up: ")
        + "\n"
        + bar(3, 9, ", loss=2.5")
    )
    assert trained(text) == [(3, {"loss": 2.5})]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.3\nTrain Epoch: 1 [640/60000 (1%)]\tLoss: 1.7\n"
         "Train Epoch: 2 [0/60000 (0%)]\tLoss: 0.2\n", [0, 640, 60000]),
        ("Epoch: [0][   1/50]\tTime 13.523 (13.5)\tLoss 6.9e+00 (6.95e+00)\n"
         "Epoch: [1][   1/50]\tTime  0.5 ( 0.5)\tLoss 5.9e+00 (6.95e+00)\n", [1, 51]),
        ("loss: 2.30  [   64/60000]\nloss: 2.29  [ 6464/60000]\nloss: 2.1  [   64/60000]\n", [64, 6464, 60064]),
        ("[1,  2000] loss: 2.1\n[1,  4000] loss: 1.8\n[2,  2000] loss: 1.2\n", [2000, 4000, 6000]),
        ("epoch 0 step 0 loss 3\nepoch 0 step 1 loss 2\nepoch 1 step 0 loss 1\nepoch 1 step 1 loss 1\n", [0, 1, 2, 3]),
        ("epoch 1 batch 10 loss 3\nepoch 1 batch 20 loss 2\nepoch 2 batch 10 loss 1\n", [10, 20, 30]),
        ("Epoch 1/2 step 5/5 loss 2\nEpoch 2/2 step 5/5 loss 1\n", [5, 10]),
    ],
)  # fmt: skip
def test_counters_that_begin_anew_each_epoch_only_rise(text: str, steps: list[int]) -> None:
    assert [step for step, _ in trained(text)] == steps


def test_several_lines_of_one_step_are_one_point() -> None:
    text = "step: 1\nloss: 2.5\nlr: 0.001\nstep: 2\nloss: 2.4\nlr: 0.0009\n"
    assert trained(text) == [(1, {"loss": 2.5, "lr": 0.001}), (2, {"loss": 2.4, "lr": 0.0009})]
    nanogpt = "step 0: train loss 4.28, val loss 4.27\niter 0: loss 4.26, time 5.0ms\niter 10: loss 3.2, time 5.0ms\n"
    assert [step for step, _ in trained(nanogpt)] == [0, 0, 10] and evaluated(nanogpt) == [(0, {"val_loss": 4.27})]


def test_without_a_step_the_records_are_counted() -> None:
    text = "lr: 0.001\nbatch_size: 64\nloss: 2.5\nloss: 2.4\nsome words\nloss: 2.4\n"
    assert trained(text) == [(1, {"loss": 2.5}), (2, {"loss": 2.4}), (3, {"loss": 2.4})]
    epochs = "Epoch 0/24\n-----\ntrain Loss: 0.4 Acc: 0.8\nval Loss: 0.2 Acc: 0.9\n\nEpoch 1/24\n-----\ntrain Loss: 0.3 Acc: 0.85\n"
    assert [(point.step, point.epoch, point.evaluation) for point in points(epochs)] == [
        (1, 0, False),
        (1, None, True),
        (2, 1, False),
    ]
    assert trained("epoch 0: {'accuracy': 0.7, 'f1': 0.82}\n") == [(1, {"accuracy": 0.7, "f1": 0.82})]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("step 5 loss 2\nTest set: Average loss: 0.0549, Accuracy: 9823/10000 (98%)\n", {"val_loss": 0.0549, "val_accuracy": 98.23}),
        ("step 5 loss 2\nTest Error: \n Accuracy: 50.9%, Avg loss: 2.149 \n", {"val_accuracy": 50.9, "val_loss": 2.149}),
        ("step 5 loss 2\nval loss 11.01\n", {"val_loss": 11.01}),
        ("step 5 loss 2\n| end of epoch   1 | valid loss  5.97 | valid ppl   391.7\n", {"val_loss": 5.97, "val_perplexity": 391.7}),
        ("step 5 loss 2\nstep 5 loss_val: 1.94 acc_val: 0.35\n", {"val_loss": 1.94, "val_accuracy": 0.35}),
        ("step 5 loss 2\nTest: [ 0/196]\tTime  1.5 ( 1.5)\tLoss 6.5e+00 (6.5e+00)\n *   Acc@1 50.123 Acc@5 75.2\n",
         {"val_accuracy": 50.123, "val_accuracy_top5": 75.2}),
        ("step 5 loss 2\n{'eval_loss': '2.5', 'eval_accuracy': 0.5, 'eval_runtime': 3}\n", {"val_loss": 2.5, "val_accuracy": 0.5}),
    ],
)  # fmt: skip
def test_evaluations_stand_apart(text: str, values: dict[str, float]) -> None:
    assert evaluated(text) == [(5, pytest.approx(values))]
    assert trained(text) == [(5, {"loss": 2})]


def test_a_line_that_says_train_ends_an_evaluation() -> None:
    mingpt = (
        "iter_dt 0.00ms; iter 0: train loss 2.31454\ntrain final score: 17/9500 = 0.18% correct\n"
        "GPT claims that 74 + 15 = 5 but gt is 89\ntest final score: 0/500 = 0.00% correct\n"
        "saving model with new top score of 17.0\niter_dt 25.69ms; iter 10: train loss 2.11316\n"
    )
    assert [(step, values["loss"]) for step, values in trained(mingpt)] == [(0, 2.31454), (10, 2.11316)]
    assert evaluated(mingpt) == []
    epochs = (
        "| epoch   1 |   50/  112 batches | lr 20.00 | ms/batch 16.33 | loss  6.75 | ppl   850.66\n"
        "| end of epoch   1 | time:  1.87s | valid loss  5.54 | valid ppl   254.62\n"
    )
    assert trained(epochs) == [
        (50, pytest.approx({"lr": 20.0, "step_time_s": 0.01633, "loss": 6.75, "perplexity": 850.66}))
    ]
    assert evaluated(epochs) == [(50, {"val_loss": 5.54, "val_perplexity": 254.62})]
    both = "step 5 loss 2\nvalidation loss 3.1, train loss 2.9\n"
    assert evaluated(both) == [(5, {"val_loss": 3.1})]


SB3 = """
Using cpu device
Eval num_timesteps=2048, episode_reward=-93.53 +/- 0.00
Episode length: 1000.00 +/- 0.00
---------------------------------
| eval/              |          |
|    mean_ep_length  | 1e+03    |
|    mean_reward     | -93.5    |
| time/              |          |
|    total_timesteps | 2048     |
---------------------------------
New best mean reward!
-----------------------------------------
| rollout/           |                  |
|    ep_len_mean     | 1e+03            |
|    ep_rew_mean     | -51.9            |
| time/              |                  |
|    fps             | 40               |
|    iterations      | 2                |
|    time_elapsed    | 99               |
|    total_timesteps | 4096             |
| train/             |                  |
|    approx_kl       | 0.01066758       |
|    learning_rate   | 0.0003           |
|    loss            | 3.58             |
|    n_updates       | 10               |
-----------------------------------------
"""
SPINNING_UP = """
---------------------------------------
|             Epoch |               2 |
|      AverageEpRet |            -8.9 |
|             EpLen |             999 |
| TotalEnvInteracts |         1.2e+04 |
|            LossPi |        1.14e-07 |
|              Time |            20.5 |
---------------------------------------
"""


def test_tables_with_a_name_and_a_number_in_each_row() -> None:
    curve = {
        "ep_len_mean": 1000,
        "reward": -51.9,
        "samples_per_s": 40,
        "approx_kl": 0.01066758,
        "lr": 3e-4,
        "loss": 3.58,
    }
    assert trained(SB3) == [(4096, curve)]
    assert evaluated(SB3) == [
        (2048, {"val_reward": -93.53}),
        (2048, {"val_reward": -93.5, "eval_mean_ep_length": 1000}),
    ]
    (epoch,) = points(SPINNING_UP)
    assert (epoch.step, epoch.epoch) == (12000, 2)
    assert epoch.values == {"reward": -8.9, "eplen": 999, "losspi": 1.14e-7}


def test_a_setting_in_a_warning_is_not_charted() -> None:
    warning = "The number of training batches (1) is smaller than the logging interval Trainer(log_every_n_steps=50).\n"
    assert trained(f"step 5 loss 2\n{warning}") == [(5, {"loss": 2})]


def test_rich_draws_lightnings_test_results() -> None:
    rows = "┃        Test metric        ┃       DataLoader 0        ┃\n│         test_loss         │    2.5205280780792236     │\n"
    text = f"step 5 loss 2\n┏━━━┳━━━┓\n{rows}└───┴───┘\n"
    assert evaluated(text) == [(5, {"val_loss": 2.5205280780792236})]


def test_a_table_that_is_not_ended_is_charted_when_the_program_is_quiet() -> None:
    printed = PrintedMetrics()
    assert printed.feed(b"| loss | 2.5 |\n| total_timesteps | 64 |\n") == [] and printed.has_pending
    assert [(point.step, point.values) for point in printed.flush()] == [(64, {"loss": 2.5})]
    assert not printed.has_pending and trained("| learning_rate | 0.1 |\n| Property | Value |\n| n | 3 |\n") == []


def test_a_loss_that_is_no_number_is_kept() -> None:
    found = trained("step 1 loss nan\nstep 2 loss: inf\n{'step': 3, 'loss': nan}\n{\"step\": 4, \"loss\": NaN}\n")
    assert [step for step, _ in found] == [1, 2, 3, 4]
    assert not any(math.isfinite(values["loss"]) for _, values in found)


def test_the_person_says_what_a_name_means() -> None:
    names = Names({"criterion": "loss", "foo": "-"})
    assert trained("step 1 criterion 2.5 foo: 3 bar: 4\n", names) == [(1, {"loss": 2.5, "bar": 4})]
    assert trained("criterion: 2.5\n", names) == [(1, {"loss": 2.5})]


def test_the_person_says_what_counts_steps() -> None:
    names = Names({"round": "step", "criterion": "loss"})
    text = "".join(f"round {n:03d} criterion {1 / n:.3f}\n" for n in range(5, 8))
    assert [step for step, _ in trained(text, names)] == [5, 6, 7]
    assert [step for step, _ in trained("{'round': 5, 'criterion': 2}\n{'round': 9, 'criterion': 1}\n", names)] == [
        5,
        9,
    ]


def test_a_printed_name_never_replaces_what_each_metrics_line_has() -> None:
    assert trained("attempt: 3 event: 4 ts: 5 rank: 6 loss: 2\n") == [(1, {"loss": 2})]
    assert trained("{'step': 1, 'nonfinite': 3, 'loss': 2}\n") == [(1, {"loss": 2})]


UNREAD = "".join(f"round {n:03d} criterion: {2.5 / n:.3f} on board 7\n" for n in range(1, 61))


def test_output_that_cannot_be_charted_is_described() -> None:
    printed = PrintedMetrics()
    lines = UNREAD.splitlines(keepends=True)
    assert printed.feed("".join(lines[:49]).encode()) == [] and printed.describe_unread() is None
    assert printed.feed("".join(lines[49:]).encode()) == []
    described = printed.describe_unread()
    assert described is not None and "printed 60 lines with numbers" in described["cause"]
    assert "criterion (0.043, 0.042), round (59, 60)." in described["cause"]
    assert next(iter(described["names"])) == "criterion" and described["numbers"]["round"] == [59, 60]
    mapped = [step for step, _ in trained(UNREAD, Names({"criterion": "loss", "round": "step"}))]
    assert mapped == list(range(1, 61)), "what it advises helps"


def test_numbers_without_names_are_shown_as_they_are() -> None:
    printed = PrintedMetrics()
    printed.feed("".join(f"12:00:01 {n} {2.5 / n}\n" for n in range(1, 60)).encode())
    described = printed.describe_unread()
    assert described is not None and described["names"] == {} and "“59 0.042" in described["cause"]


@pytest.mark.parametrize(
    "text", ["step 1 loss 2\n", "words and no numbers\n", "2026-11-23 12:00:01 INFO ready\n", '"depth": 3,\n']
)
def test_what_needs_no_description(text: str) -> None:
    printed = PrintedMetrics()
    printed.feed((text * 60).encode())
    printed.finish()
    assert printed.describe_unread() is None
    bars = PrintedMetrics()
    bars.feed("".join(bar(n, 200) for n in range(1, 200)).encode())  # the first loss may come late
    assert bars.describe_unread() is None


def test_long_lines_and_broken_bytes_cost_nothing() -> None:
    long = b"x" * (3 * MAX_SEGMENT_BYTES) + b"\n"
    assert trained(b"step 1 loss 2.5\n" + long + b"\xff\xfe step 2 loss 2.4 \xc3\nstep 3 loss 2.3") == [
        (1, {"loss": 2.5}), (2, {"loss": 2.4}), (3, {"loss": 2.3}),
    ]  # fmt: skip
    json_line = json.dumps({"step": 4, "loss": 1.5, "text": "y" * 50_000}) + "\n"
    assert trained(json_line) == [(4, {"loss": 1.5})]
    assert trained("step 1 loss \u0131nf\n" + "\r" + "9" * 400 + "/5 [00:05<00:45, 2it/s]\nstep 2 loss 2.5\n") == [
        (2, {"loss": 2.5})
    ]
    assert trained(f"step {1 << 64} loss 2.5\n") == [(1, {"loss": 2.5})]
    assert points("{" * 60_000 + "\n" + "loss: " * 9_000 + "\n" + "1/" * 30_000 + "\n" + "step " * 12_000 + "\n") == []


EXPECTED = {
    "hf_trainer.log": ([2, 4, 6, 8, 10, 12], [4, 8, 12]),
    "accelerate_loop.log": (list(range(1, 17)), []),
    "fabric_loop.log": (list(range(12)), []),
    "plain_ddp.log": (list(range(1, 31)), []),
    "deepspeed_loop.log": (list(range(1, 11)), []),
    "lightning_tqdm.log": (list(range(1, 33)), [16, 32]),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_libraries_really_printed(name: str) -> None:
    found = points((CORPUS / name).read_bytes())
    steps, evaluations = EXPECTED[name]
    losses = {point.step for point in found if not point.evaluation and "loss" in point.values}
    assert sorted(losses) == steps
    assert sorted({point.step for point in found if point.evaluation and "val_loss" in point.values}) == evaluations


def test_lightnings_rich_bar_gives_a_curve() -> None:
    found = points((CORPUS / "lightning_trainer.log").read_bytes())
    losses = [point.step for point in found if "loss" in point.values]
    assert len(losses) >= 5 and losses == sorted(losses) and losses[-1] == 16


def every_text() -> list[bytes]:
    return [path.read_bytes() for path in sorted(CORPUS.glob("*.log"))]


@pytest.mark.parametrize("seed", range(3))
def test_it_does_not_matter_how_the_bytes_arrive(seed: int) -> None:
    chance = random.Random(seed)
    for text in every_text():
        printed, found, rest = PrintedMetrics(), list[Point](), text
        while rest:
            size = chance.choice((1, 2, 7, 40, 500))
            found += printed.feed(rest[:size])
            rest = rest[size:]
        assert [*found, *printed.finish()] == points(text)


def test_segments_are_cut_at_returns_and_newlines() -> None:
    segments = Segments()
    assert segments.feed(b"a\r\nb\rc\n\n\x1b[A d") == ["a", "b", "c"]
    assert segments.feed(b"e") == [] and segments.finish() == ["de"] and segments.finish() == []


def test_no_bytes_are_too_odd() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    strategies = hypothesis.strategies
    pieces = strategies.sampled_from(
        [b"step ", b"loss", b": ", b"=", b"{'", b"'}", b"1", b"2.5e-3", b",", b"/", b"[", b"]", b"%|", b"| ", b"\r", b"\n",
         b"00:05<00:45, ", b"it/s", b"epoch ", b"\x1b[3", b"nan", b"(", b")", b"\xff", b"tensor(", b"val_", b"Test: "]
    )  # fmt: skip

    @hypothesis.settings(max_examples=300, deadline=None)
    @hypothesis.given(strategies.lists(strategies.one_of(pieces, strategies.binary(max_size=8)), max_size=60))
    def check(parts: list[bytes]) -> None:
        text = b"".join(parts)
        for point in points(text):
            assert all(isinstance(number, float) for number in point.values.values())
            assert all(name and name == name.strip().lower() for name in point.values)

    check()


def test_whatever_the_format_the_curve_is_the_same() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    strategies = hypothesis.strategies
    forms = ["step {s}: loss {l}", "Iter {s} | Loss: {l}", "{{'step': {s}, 'loss': '{l}'}}", '{{"step": {s}, "loss": {l}}}',
             "[INFO] step={s}, loss={l}", "global_step {s}\tloss\t{l}", "epoch 1 step {s}/999999 loss={l}"]  # fmt: skip
    number = strategies.floats(-1e6, 1e6, allow_nan=False).map(lambda x: float(f"{x:.4g}"))
    curves = strategies.lists(strategies.tuples(strategies.integers(1, 1000), number), min_size=1, max_size=20)

    @hypothesis.settings(max_examples=150, deadline=None)
    @hypothesis.given(strategies.sampled_from(forms), curves, strategies.sampled_from(["\n", "\r\n", "\r"]))
    def check(form: str, curve: list[tuple[int, float]], end: str) -> None:
        at, wanted = 0, []
        for stride, loss in curve:
            at += stride
            wanted.append((at, {"loss": loss}))
        assert trained("".join(form.format(s=s, l=v["loss"]) + end for s, v in wanted)) == wanted

    check()
