"""Fine-tune in one or several processes: `ernie-gram finetune TASK MODEL [--section.key VALUE ...]`."""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.run_finetune")

import sys

from ernie_gram.distributed.launcher import ENVIRONMENT, launch
from reader.errors import InputError
from tasks.registry.task_file import settings_of

USAGE = """usage: {0} TASK MODEL [--section.key VALUE ...]

Fine-tune a model on a task. TASK is a name that `ernie-gram tasks` lists, with the settings in conf/tasks/TASK.yaml; or
the .yaml file of a custom task; or a .yaml file of settings, which has `task: NAME` or `base: FILE`. MODEL is a model
folder or a run. `{0} --print_config` prints all settings with their meaning. --check checks everything, and does not
train. The scores, the best model and the log are written to output/TASK (another folder: --paths.output). Settings that
are often changed: --optimizer.learning_rate, --optimizer.batch_size, --optimizer.epochs, --input.max_seq_len.

{1}
  DATA         folder with the official files of the task, or the benchmark's folder above it (or --paths.data)"""


def main() -> None:
    """Run the command line."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE.format(sys.argv[0], ENVIRONMENT))
        return
    if arguments[:1] and arguments[0].startswith("-"):
        first, others = [], arguments
    elif len(arguments) > 1 and not arguments[1].startswith("-"):
        task, model, *others = arguments
        first = [*settings_of(task), "--paths.model", model]
    else:
        raise InputError(f"TASK and MODEL: must be given (see {sys.argv[0]} --help)")
    launch("tasks.finetune", [*first, *others])
