"""Type "Ten minutes" of the README, in two processes: `make demo`, which is `python -m tests.support.ten_minutes`."""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from reader.errors import one_line_errors
from tests.support.commands import ROOT

HEADING = re.compile(r'^(?:<a id="([\w-]+)"></a>\n+)?(#+) (.+)\n', re.MULTILINE)


def sections(path: Path) -> list[tuple[int, str, list[str]]]:
    """Return the level of each heading of a page, from 1, its anchor, and the indented blocks below it.

    The anchor is the line before a heading, or made of its words.
    """
    page = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    _, *parts = HEADING.split(page)
    found = []
    for marked, marks, title, body in zip(*(parts[i::4] for i in range(4)), strict=True):
        words = re.sub(r"[^\w\s-]", "", title.lower()).replace(" ", "-")
        blocks = [text.strip("\n") for text in re.split(r"\n\s*\n", body)]
        found.append((len(marks), marked or words, [dedent(text) for text in blocks if text.startswith("    ")]))
    return found


STEPS, WARMUP = "--trainer.max_steps 1000", "--optimizer.warmup_steps 100"
EPOCHS = "--optimizer.epochs 3"


def script(page: Path, folder: Path, pairs: Mapping[str, str]) -> str:
    """Return the commands of a page as a script of bash that prints them and works in a folder.

    Args:
        pairs: what is replaced in the page's commands, which must have it, and what stands in its place.
    """
    blocks = next(blocks for _, anchor, blocks in sections(page) if anchor == "ten-minutes")
    commands, pairs = "\n".join(blocks), {**pairs, "output/first": str(folder)}
    for old, new in pairs.items():
        assert old in commands, old
        commands = commands.replace(old, new)
    return f'ernie-gram() {{ "{sys.executable}" -m reader.console_script "$@"; }}\nset -euxo pipefail\n{commands}'


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="of pre-training (%(default)s)")
    steps = parser.parse_args().steps
    folder, began = Path("output/demo"), time.monotonic()
    if (ROOT / folder).exists() and not (ROOT / folder / "order.yaml").is_file():
        parser.error(f"{folder}: not the folder of an earlier demo, which would be deleted; move it away")
    shutil.rmtree(ROOT / folder, ignore_errors=True)
    (ROOT / folder).mkdir(parents=True)
    (ROOT / folder / "order.yaml").touch()  # this marks the folder, also if the demo is interrupted
    # Each process would need a GPU of its own.
    more, ranks = "--trainer.device cpu", f"NPROC=2 LOG_DIR={folder}/log ./run_"
    fewer = f" --max_train_examples {10 * steps}" if steps < 1000 else ""
    pairs = {
        "./run_": ranks,
        STEPS: f"--trainer.max_steps {steps} {more}",
        WARMUP: f"--optimizer.warmup_steps {min(100, steps // 10)}",
        EPOCHS: f"{EPOCHS} {more}{fewer}",
    }
    done = subprocess.run(["bash", "-c", script(ROOT / "README.md", folder, pairs)], cwd=ROOT, check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, seconds = used.ru_utime + used.ru_stime, time.monotonic() - began
    print(f"\nAll of it took {seconds:.0f} s, {cpu:.0f} CPU seconds, on {processor_name(read_cpuinfo())}")
    sys.exit(done.returncode)


if __name__ == "__main__":
    one_line_errors(main)
