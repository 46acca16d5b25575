"""Fine-tune in one or several processes: `ernie-gram finetune TASK MODEL [--section.key VALUE ...]`."""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("tasks.run_finetune")

import sys
from pathlib import Path

from ernie_gram.config.loading import read_yaml
from ernie_gram.distributed.launcher import ENVIRONMENT, launch
from reader.errors import InputError
from tasks.reading.data_option import data_folder
from tasks.registry.task_file import CONFIG, settings_of

USAGE = """usage: {0} TASK MODEL [--section.key VALUE ...]

Fine-tune a model on a task. TASK is a name that `ernie-gram tasks` lists, with the settings in conf/tasks/TASK.yaml; or
the .yaml file of a custom task; or a .yaml file of settings, which has `task: NAME` or `base: FILE`. MODEL is a model
folder or a run. `{0} --print_config` prints all settings with their meaning. --check checks everything, and does not
train.

{1}
  DATA         folder with the official files of the task, or the benchmark's folder above it (or --paths.data)"""


def main() -> None:
    """Run the command line."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE.format(sys.argv[0], ENVIRONMENT))
        return
    folder = data_folder()
    data = ["--paths.data", str(folder)] if folder else []
    if arguments[:1] and arguments[0].startswith("-"):
        arguments = [*data, *arguments]
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
        arguments = [*settings, "--paths.model", model, *data, *more]
    else:
        raise InputError(f"TASK and MODEL: must be given (see {sys.argv[0]} --help)")
    launch("tasks.finetune", arguments)
