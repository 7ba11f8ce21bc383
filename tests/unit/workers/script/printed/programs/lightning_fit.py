"""Lightning's Trainer. Usage: lightning_fit.py TRUTH rich|tqdm [test]"""

import sys
import time

import lightning as L
import torch
from lightning.pytorch.callbacks import RichProgressBar, TQDMProgressBar
from truth import Truth


class Sums(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        loss = (self.layer(batch[0]) - batch[0].sum(1, keepdim=True)).square().mean()
        self.log("train_loss", loss, prog_bar=True)
        truth.train(self.global_step + 1, loss.item())
        time.sleep(0.06)
        return loss

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        time.sleep(0.02)
        self.log("val_loss", self.layer(batch[0]).square().mean(), prog_bar=True)

    def on_validation_epoch_end(self) -> None:
        if not self.trainer.sanity_checking:
            truth.evaluate(self.global_step, self.trainer.callback_metrics["val_loss"].item())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)


truth = Truth(sys.argv[1], f"lightning {L.__version__}, {sys.argv[2]}")
torch.manual_seed(1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 4)), batch_size=4)
bar = RichProgressBar() if sys.argv[2] == "rich" else TQDMProgressBar()
trainer = L.Trainer(
    accelerator="cpu", devices=1, max_epochs=3, logger=False, enable_checkpointing=False, log_every_n_steps=1,
    callbacks=[bar],
)  # fmt: skip
trainer.fit(Sums(), loader, loader)
truth.write()
