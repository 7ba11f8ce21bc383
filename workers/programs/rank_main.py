"""Entry point of a rank, `python -m workers.programs.rank_main`, started by the run host.

It connects first and imports torch afterwards, so that the window shows within a second that something happens.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from core.config import RunConfig
from core.config.batch import Batch
from core.config.layers import load_config
from core.config.mode import Mode
from core.errors import RankdeckError, UsageError
from core.protocol.messages import Bye, Phase
from core.protocol.rank_context import RankContext
from core.recipes.catalog import get_recipe
from workers.host_link.connection import HostConnection, tie_to_host
from workers.host_link.failures import explain
from workers.host_link.peak_memory import EVENT, peak_memory
from workers.host_link.reporter import Reporter
from workers.programs.rank_setup import rank_place, set_up_gpu, set_up_torch
from workers.recipe_api.loader import load_function

if TYPE_CHECKING:
    from workers.recipe_api import Run
    from workers.training.session import Session

_FAILED: Final = 1
_USAGE: Final = 2


def main() -> int:
    """Run one rank; return 0, or 1 when it failed, or 2 when the person's input is at fault."""
    # Ctrl+C is for the host, which then stops the ranks in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        context = RankContext.from_env(os.environ)
        tie_to_host(context.host_pid)
        connection = HostConnection(context)
    except RankdeckError as error:
        sys.stderr.write(f"rankdeck: {error}\n")
        return _FAILED
    reporter = Reporter(connection, context.rank, context.attempt)
    try:
        step = _train(context, connection, reporter)
    except Exception as error:
        traceback.print_exc()
        connection.expect_close()
        reporter.close(explain(error, context.device))
        connection.close()
        return _USAGE if isinstance(error, UsageError) else _FAILED
    connection.expect_close()
    delivered = reporter.close(Bye(step))
    connection.close()
    return 0 if delivered else _FAILED


def _train(context: RankContext, connection: HostConnection, reporter: Reporter) -> int:
    config = load_config(context.config_file)
    recipe = get_recipe(str(context.recipe_dir))
    reporter.send(Phase("importing torch"))
    # What is imported stays; looking through it again and again is a sixth of the start.
    gc.disable()
    session = _make_session(context, connection, reporter, config)
    from workers.optim import seeding
    from workers.recipe_api import Run

    # Alike on every rank, so that all build the same model.
    seeding.seed_everything(config.seed)
    recipe_main: Callable[[Run], None] = load_function(recipe, "main")
    gc.freeze()
    gc.enable()
    try:
        recipe_main(Run(session))
        reporter.event(EVENT, **peak_memory(session.strategy.place.device))
    finally:
        session.strategy.close()
    return session.step


def _make_session(context: RankContext, connection: HostConnection, reporter: Reporter, config: RunConfig) -> Session:
    set_up_torch()
    from workers.host_link.inbox import Inbox
    from workers.strategies import make_strategy
    from workers.training.session import Session

    set_up_gpu(context)
    place = rank_place(context)
    config = config.replace(zero_engine=context.engine or config.zero_engine, torch_compile=context.compiles)
    group = Mode.read(context.mode).group_size(context.world_size)
    batch = Batch.of(context.micro_batch, group, context.grad_accum_steps)
    strategy = make_strategy(context.mode, place, config, batch)
    inbox = Inbox(connection.inbox)
    rest = context.checkpoint, context.halvings, context.best_metric, context.best_is_higher
    return Session(config, context.run_dir, strategy, batch, reporter, inbox, *rest)


if __name__ == "__main__":
    exit_code = main()
    # Taking torch's modules apart lasts about a second, in which a stopped run would still be "stopping".
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)
