"""Fine-tune in one or several processes: `ernie-gram finetune TASK MODEL [--section.key VALUE ...]`."""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.run_finetune")

import sys
from collections.abc import Sequence
from pathlib import Path

from ernie_gram.config.loading import flatten, read_tree
from ernie_gram.distributed.launcher import ENVIRONMENT, launch
from reader.errors import InputError, OneLineParser
from reader.system.installation import settings_file
from reader.system.untrusted_text import read_yaml
from tasks.reading.data_option import data_folder
from tasks.registry.task_file import CONFIG, settings_of
from tasks.training.config import FinetuneConfig

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
        task, model, *more = arguments
        settings = settings_of(task)
        if settings[0] == CONFIG and any(each.partition("=")[0] == CONFIG for each in more):
            path = Path(settings[1])
            tree = read_yaml(path)
            lines = [f"`base: {path.parent / str(tree.get('base', path.name))}`"]
            lines += [f"`task: {tree['task']}`"] if "task" in tree else []
            raise InputError(
                f"{CONFIG}: {task} has its own settings; begin your file with {' and '.join(lines)}, and give the file "
                f"in place of {task}"
            )
        first, others = [*settings, "--paths.model", model], more
    else:
        raise InputError(f"TASK and MODEL: must be given (see {sys.argv[0]} --help)")
    launch("tasks.finetune", [*first, *data_options([*first, *others]), *others])


def data_options(arguments: Sequence[str]) -> list[str]:
    """Return the option for the folder that DATA names, unless the file of settings has `paths.data`."""
    parser = OneLineParser(add_help=False, allow_abbrev=False)
    parser.add_argument(CONFIG)
    file, folder = parser.parse_known_args(arguments)[0].config, data_folder()
    tree = read_tree(FinetuneConfig, settings_file(Path(file)), {}) if file and folder else {}
    return [] if folder is None or flatten(tree).get("paths.data") else ["--paths.data", str(folder)]
