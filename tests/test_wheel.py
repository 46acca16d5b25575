"""The wheel: installed in an environment of its own, it does everything from another folder, without the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.commands import ROOT, shell
from tests.support.further_cases import FURTHER
from tests.support.runs import TINY
from tests.support.task_files import write
from tests.support.tiny_task import SETTINGS, write_data

SOURCES = ("reader", "ernie_gram", "tasks", "conf", "setup.py", "pyproject.toml", "README.md", "LICENSE")

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs a command of the wheel in the folder `place`, and returns what is printed."""
    # From a copy of the sources, because setuptools writes beside them.
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / "source" / name)
    # Setuptools 70.1 and later needs no other package; otherwise pip downloads one.
    offline = ["--no-build-isolation"] if find_spec("setuptools.command.bdist_wheel") else []
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *offline, "--wheel-dir", str(tmp_path)]
    subprocess.run([*command, str(tmp_path / "source")], check=True)
    [wheel] = tmp_path.glob("*.whl")
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = environment / "lib" / version / "site-packages"
    # The dependencies are those of this environment. Its own .pth files, such as that of the checkout, have no effect.
    write(packages / "dependencies.pth", f"{sysconfig.get_path('purelib')}\n")
    place = tmp_path / "place"
    place.mkdir()
    if sys.version_info >= (3, 11):
        # The user's own files may have the names of packages.
        write(place / "reader.py", "raise SystemExit('the wrong package')\n")
    own: dict[str, str | None] = dict.fromkeys(("PYTHONPATH", "PYTHON", "NPROC", "DATA"))
    own |= {"PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    # The wheel's packages, not those of the checkout.
    code = "import reader, ernie_gram, tasks; print(reader.__file__, ernie_gram.__file__, tasks.__file__)"
    found = shell(str(python), "-c", code, cwd=place.parent, **own).ok()
    assert [Path(name).parents[1] for name in found.stdout.split()] == [packages] * 3

    def run(*arguments: object, **more: str) -> str:
        return shell("ernie-gram", *map(str, arguments), cwd=place, timeout=600, **(own | more)).ok().stdout

    return run


@FURTHER
@pytest.mark.timeout(1000)
def test_the_wheel_does_everything_from_another_folder(run: Run, tmp_path: Path) -> None:
    place, steps = tmp_path / "place", ["--trainer.max_steps=4", "--trainer.eval_every=2", "--trainer.device=cpu"]
    run("demo-text", "--max_size", 400_000, "--output", "text")
    for name in ("train", "held_out"):
        assert (place / "text" / f"{name}.txt").is_file()
    run("vocab", "--input", "text/train.txt", "--size", 800, "--output", "vocab.txt")
    made_with = ["--vocab", "vocab.txt"]
    more = ["--top", "2:400,3:200", "--min_count", 2, "--processes", 2]
    run("lexicon", "--input", "text/train.txt", *made_with, *more, "--output", "lexicon.tsv")
    made_with += ["--lexicon", "lexicon.tsv"]
    for text, corpus in (("train", "corpus"), ("held_out", "held_out")):
        run("corpus", "--input", f"text/{text}.txt", *made_with, "--output", corpus)
    paths = ["--paths.corpus", "corpus", "--paths.held_out", "held_out"]

    # Two processes, with the settings that the reader has named.
    pretrain = ["pretrain", "conf/pretrain/small_en.yaml", *TINY, *paths, *steps, "--paths.output", "model"]
    assert "train step 4/4" in run(*pretrain, NPROC="2")
    assert "unit frequencies" in run("count-baselines", "model")
    assert "[MASK 1]" in run("fill-mask", "model", "the [MASK] of a list")
    run("report", "model", "--output", "report.html")
    shorter = ("--trainer.max_steps=2", "--optimizer.warmup_steps=0")
    own_paths = ("--paths.corpus=corpus", "--paths.held_out=held_out")
    options = [f"--pretrain.{option[2:]}" for option in (*TINY, *shorter, *own_paths)]
    done = run("sweep", "--pretrain", "conf/ablation/explicit.yaml", *options, "--output", "rungs")
    assert "| pre-training | explicit | " in done

    write_data(place / "task")
    settings = [*SETTINGS, "--optimizer.epochs=1", "--trainer.device=cpu"]
    finetune = ["finetune", "task/task.yaml", "model", *settings, "--paths.output", "finetuned"]
    run(*finetune, DATA="task", NPROC="1")
    write(place / "own.tsv", "text\na b c\n")
    run("predict", "finetuned", "--input", "own.tsv", "--output", "answers.jsonl", "--device", "cpu")
    assert (place / "answers.jsonl").read_text().count("\n") == 1
    run("sweep", "task/task.yaml", "model", "--data", "task", "--output", "sweep", "--seeds", 1, *settings[:1])
    assert "| task | accuracy | 1 | " in (place / "sweep" / "table.md").read_text()
