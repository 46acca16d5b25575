"""Pre-train ERNIE-Gram: `python -m ernie_gram.pretrain --config FILE [--section.key VALUE ...]`.

Under `python -m paddle.distributed.launch` the processes share the work; run_pretrain.sh does that.
"""

from __future__ import annotations

import os
import sys

from ernie_gram.config.loading import load_config
from ernie_gram.pretraining.prepare import prepare
from reader.errors import InputError, one_line_errors

DESCRIPTION = (
    "Pre-train ERNIE-Gram. Settings come from --config and from the options after it; their defaults and meanings "
    "are below, and --print_config shows them as a file."
)
CHECK_HELP = "check the configuration, the corpora and the output folder, say what would be done, and exit"


def main() -> None:
    config, given = load_config(sys.argv[1:], "python -m ernie_gram.pretrain", DESCRIPTION, {"check": CHECK_HELP})
    world = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    run = prepare(config, world)
    first = os.environ.get("PADDLE_TRAINER_ID", "0") == "0"
    if first:
        print(run.describe(), flush=True)
    if "check" in given:
        return
    lock = run.claim_output() if first else None
    # Only now: importing Paddle takes seconds, and an error above should not wait for it.
    from ernie_gram.distributed import collectives as distributed
    from ernie_gram.training.trainer import Trainer

    try:
        place = distributed.start(config.trainer.device)
    except ValueError as error:
        raise InputError(str(error)) from error
    Trainer(run, place).train()
    if lock:
        lock.close()


if __name__ == "__main__":
    one_line_errors(main)
