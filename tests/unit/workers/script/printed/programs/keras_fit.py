"""Keras 3 on PyTorch. Usage: keras_fit.py TRUTH [VERBOSE]"""

import os
import sys
import time

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from truth import Truth


class Teller(keras.callbacks.Callback):
    step = 0

    def on_train_batch_end(self, batch, logs=None):  # type: ignore[no-untyped-def]
        Teller.step += 1
        if verbose == 1:
            truth.train(self.step, logs["loss"])
        time.sleep(0.07)

    def on_epoch_end(self, epoch, logs=None):  # type: ignore[no-untyped-def]
        if verbose == 2:
            truth.train(self.step, logs["loss"])
        truth.evaluate(self.step, logs["val_loss"])


verbose = int(sys.argv[2]) if len(sys.argv) > 2 else 1
truth = Truth(sys.argv[1], f"keras {keras.__version__}")
keras.utils.set_random_seed(1)
samples = np.random.randn(64, 4).astype("float32")
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse")
model.fit(
    samples,
    samples.sum(1),
    validation_data=(samples, samples.sum(1)),
    batch_size=4,
    epochs=3,
    verbose=verbose,
    callbacks=[Teller()],
)
truth.write()
