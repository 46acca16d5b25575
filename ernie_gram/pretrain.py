"""Pre-train ERNIE-Gram: `ernie-gram pretrain CONFIG [--section.key VALUE ...]`.

The command checks its input; then it trains, or starts several processes, which divide each batch.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.device import check_device
from ernie_gram.distributed.launcher import ENVIRONMENT, processes_of_job, start_ranks
from ernie_gram.distributed.world import WORLD_SIZE, start_world
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import Run, prepare
from ernie_gram.run.run_folder import check_output
from ernie_gram.run.termination import end_at_signals, lost_peer_error
from reader import console_script
from reader.console_script import run_command
from reader.corpus.memmap import check_corpus
from reader.errors import InputError, print_warning, write_or_drop

USAGE = """usage: {0} CONFIG [--section.key VALUE ...]

Pre-train a model. CONFIG is a YAML file of settings, such as conf/pretrain/small_en.yaml; options after it override it.
`{0} --print_config` prints all settings with their meaning. --check checks everything, and does not train.

{1}"""


def main() -> None:
    """Run the command line."""
    arguments = sys.argv[1:]
    if {"-h", "--help"} & {*arguments}:
        print(USAGE.format(sys.argv[0], ENVIRONMENT))
        return
    if not arguments:
        raise InputError(f"CONFIG: must be given: a YAML file of settings (see {sys.argv[0]} --help)")
    if not arguments[0].startswith("-"):
        arguments = ["--config", *arguments]
    config, given = load_config(PretrainConfig, arguments, "check")
    job, checks_only = processes_of_job(), "check" in given
    check_device(config.trainer.device, config.optimizer.precision, job.here)
    starts_ranks, is_first = job.is_launcher and not checks_only, job.rank == 0
    run = prepare(config, job.size, is_first and not (starts_ranks or checks_only), given)
    check_output(run.output, is_first)
    if starts_ranks:
        del run  # its memory
        start_ranks([console_script.__file__, "pretrain", *arguments], job, config.trainer.hang_seconds)
    if is_first:
        write_or_drop(sys.stdout, f"{run.describe()}\n")
        for line in run.warnings():
            print_warning(line)
    if checks_only:
        for corpus in run.corpora if is_first else ():
            write_or_drop(sys.stdout, f"files    {corpus.path}: {check_corpus(corpus.path)}\n")
        return
    lock = run.claim_output() if is_first else nullcontext()
    with lock, lost_peer_error(WORLD_SIZE):
        train(run)


def train(run: Run) -> None:
    """Train a checked run to its last step."""
    config = run.config
    world = start_world(config.trainer.device, config.optimizer.precision)
    # Imported late: they load Paddle, which takes seconds, and errors in the input are reported without it.
    from ernie_gram.pretraining.job import pretraining_job
    from ernie_gram.training.trainer import Trainer

    with end_at_signals():
        trainer = Trainer(pretraining_job(run, world), world)
        trainer.train()


# As `paddle.distributed.launch ernie_gram/pretrain.py` starts it.
if __name__ == "__main__":
    run_command("ernie_gram.pretrain")
