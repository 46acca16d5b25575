"""Pre-train a model in one or several processes: `ernie-gram pretrain CONFIG [--section.key VALUE ...]`."""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.run_pretrain")

import sys

from ernie_gram.distributed.launcher import ENVIRONMENT, launch
from reader.errors import InputError

USAGE = """usage: {0} CONFIG [--section.key VALUE ...]

Pre-train a model. CONFIG is a YAML file of settings, such as conf/pretrain/small_en.yaml; options after it override it.
`{0} --print_config` prints all settings with their meaning. --check checks everything, and does not train.

{1}"""


def main() -> None:
    """Run the command line."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE.format(sys.argv[0], ENVIRONMENT))
        return
    if not arguments:
        raise InputError(f"CONFIG: must be given: a YAML file of settings (see {sys.argv[0]} --help)")
    if not arguments[0].startswith("-"):
        arguments = ["--config", *arguments]
    launch("ernie_gram.pretrain", arguments)
