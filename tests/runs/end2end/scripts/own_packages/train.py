"""A script whose project has packages of the same names as ours."""

import sys

import app
import core
import rankdeck
import workers

print([core.WHOSE, app.WHOSE, workers.WHOSE], sys.argv[1:])
rankdeck.log(step=1, loss=0.5)
