"""Pre-train ERNIE-Gram: `ernie-gram pretrain --config FILE [--section.key VALUE ...]`.

run_pretrain.py starts several processes with Paddle's launcher; they divide each batch.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.pretrain")

import os
import sys

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.device import check_device
from ernie_gram.distributed.world import HEARTBEAT, RANK, WORLD_SIZE, start_world
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import Run, prepare
from ernie_gram.run.heartbeat import heartbeat
from ernie_gram.run.lost_peer import lost_peer_error
from ernie_gram.run.prepared import WRITE
from ernie_gram.run.run_folder import check_output
from ernie_gram.run.termination import end_at_signals
from reader.corpus.corpus_check import check_corpus
from reader.errors import print_warning
from reader.system.console import write_or_drop

DESCRIPTION = (
    "Pre-train ERNIE-Gram. Settings come from --config and from the options after it; their defaults and meanings "
    "are listed below, and --print_config prints them as a file."
)
CHECK_HELP = "check the configuration, the corpora and the output folder, print a summary, and exit"


def main() -> None:
    """Run the command line."""
    program, flags = "ernie-gram pretrain", {"check": CHECK_HELP}
    config, given = load_config(PretrainConfig, sys.argv[1:], program, DESCRIPTION, flags)
    check_device(config.trainer.device, config.optimizer.precision, attention=config.model.attention)
    run = prepare(config, WORLD_SIZE, RANK, given)
    check_output(run.output, RANK == 0)
    if RANK == 0:
        write_or_drop(sys.stdout, f"{run.describe()}\n")
        for line in run.warnings():
            print_warning(line)
    if "check" in given:
        if RANK == 0:
            check(run)
        return
    lock = run.claim_output() if RANK == 0 else None
    with heartbeat(HEARTBEAT, config.trainer.hang_seconds), lost_peer_error(WORLD_SIZE):
        train(run)
    if lock:
        lock.close()


def train(run: Run) -> None:
    """Train a checked run to its last step."""
    config = run.config
    world = start_world(config.trainer.device, config.optimizer.precision, config.model.attention)
    # Imported late: they load Paddle, which takes seconds, and errors in the input are reported without it.
    from ernie_gram.pretraining.job import pretraining_job
    from ernie_gram.training.trainer import Trainer

    with end_at_signals():
        trainer = Trainer(pretraining_job(run, world), world)
        trainer.train()


def check(run: Run) -> None:
    """Print what --check has found beyond the summary: digests of the corpora, and the start values of a warm start.

    The launchers' own check leaves the digests to the run that follows, which compares them in the background.
    """
    for corpus in run.corpora if os.environ.get(WRITE) is None else ():
        write_or_drop(sys.stdout, f"files    {corpus.path}: {check_corpus(corpus.path)}\n")
    if run.start:
        # Imported late: it loads Paddle.
        from ernie_gram.pretraining.job import describe_start

        print("\n".join(describe_start(run)))
