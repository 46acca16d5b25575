"""The console script: its list of commands, their usage, misspelt names, and how little it imports."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ernie_gram
from ernie_gram.config.loading import load_config
from ernie_gram.pretraining.config import PretrainConfig
from reader.console_script import MODULES, TOPICS, main
from reader.errors import InputError
from reader.system.installation import CONF, child_environment, settings_file
from tests.reader.test_commands import COMMANDS
from tests.support.commands import ROOT, Done, call, python
from tests.support.further_cases import only
from tests.support.import_graph import sources
from tests.support.task_files import write

# Modules that other commands start: the rank of a training, and parts of the launcher.
INTERNAL = {
    *("ernie_gram.pretrain", "tasks.finetune"),
    *(f"ernie_gram.distributed.{name}" for name in ("launch", "count_gpus")),
}
# Commands that load within a second.
SOON = ["corpus", "pretrain", "finetune", "tasks", "score"]
RUN_PRETRAIN = "ernie_gram.run_pretrain"
# Starts commands of the console script, each in a process of its own, and prints the end of each and what it imported.
START = """
import contextlib, io, json, os, sys
from reader.console_script import main

for command in json.loads(sys.argv[1]):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        sys.argv = ["ernie-gram", *command]
        shown = io.StringIO()
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(shown):
            main()
        print(json.dumps([shown.getvalue(), sorted(sys.modules)]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def start(*commands: list[str]) -> list[tuple[str, set[str]]]:
    """Return what each command prints, and the modules that are imported at its end."""
    done = python("-c", START, json.dumps(commands))
    assert done.returncode == 0, done.stderr
    return [(shown, set(modules)) for shown, modules in map(json.loads, done.stdout.splitlines())]


def test_every_command_is_in_the_list_with_one_line() -> None:
    assert {*MODULES.values(), *INTERNAL} == set(COMMANDS)
    [(shown, _)] = start(["--help"])
    lines = shown.splitlines()
    for commands in TOPICS.values():
        for name, (_, what) in commands.items():
            assert [line.split(maxsplit=1)[1] for line in lines if line.startswith(f"  {name} ")] == [what]
    assert max(map(len, lines)) <= 100
    assert call(main).stdout == shown


def test_the_version_is_the_same_everywhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ernie-gram", "--version"])
    main()
    assert capsys.readouterr().out == f"ernie-gram {ernie_gram.__version__}\n"
    done = subprocess.run(
        [sys.executable, "setup.py", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [ernie_gram.__version__]


def test_the_list_imports_nothing_but_the_console_script() -> None:
    for shown, modules in start(["--help"], ["vocabb"]):
        own = {name for name in modules if name.split(".")[0] in ("reader", "ernie_gram", "tasks")}
        assert own == {"reader", "reader.commands", "reader.console_script"}, shown
        assert modules.isdisjoint({"numpy", "numba", "matplotlib", "paddle", "argparse"})


def test_the_list_may_go_to_a_full_disk() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reader.console_script"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_command_imports_only_its_own_module() -> None:
    (_, listing), (_, pretrain) = start(["tasks", "--help"], ["pretrain", "--help"])
    for modules in (listing, pretrain):
        assert modules.isdisjoint({*MODULES.values(), "matplotlib", "paddle"} - {"tasks.list", RUN_PRETRAIN})
    assert "numpy" not in pretrain
    assert ("tasks.list" in listing, "tasks.list" in pretrain) == (True, False)


@pytest.mark.parametrize("names", only([SOON], [SOON, [*MODULES]]), ids=["some", "all"])
def test_the_usage_of_a_command_has_its_name(names: list[str]) -> None:
    # In one process, so that Paddle is loaded once.
    code = (
        "import contextlib, io, sys\n"
        "from reader.console_script import main\n"
        f"for name in {names}:\n"
        "    sys.argv = ['ernie-gram', name, '--help']\n"
        "    shown = io.StringIO()\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(shown):\n"
        "        main()\n"
        "    print(shown.getvalue().partition('\\n')[0])\n"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(names)
    for name, line in zip(names, lines, strict=True):
        assert f"{line} ".startswith(f"usage: ernie-gram {name} "), line


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ("predcit", "no command predcit; did you mean predict? (see ernie-gram --help)"),
        ("fill_mask", "no command fill_mask; did you mean fill-mask? (see ernie-gram --help)"),
        ("zzz", "no command zzz (see ernie-gram --help)"),
    ],
)
def test_the_nearest_name_is_given_for_a_misspelt_command(typed: str, error: str) -> None:
    assert call(main, typed) == Done(2, "", f"error: {error}\n")


def test_an_error_names_the_command_as_it_was_typed() -> None:
    vocab = ["vocab", "--input", "x", "--output", "y", "--bogus"]
    for command, program in (
        (vocab, "vocab"),
        (["join"], "join"),
        (["join", "--b"], "join"),
        (["plot", "--b"], "plot"),
    ):
        done = call(main, *command)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.endswith(f" (see ernie-gram {program} --help)\n")


def options() -> dict[str, set[tuple[str | None, str | None]]]:
    """Return the options of all commands, each with its values of `nargs` and `action`."""
    found: dict[str, set[tuple[str | None, str | None]]] = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
                name, keywords = node.args[0], {each.arg: ast.unparse(each.value) for each in node.keywords}
                if isinstance(name, ast.Constant) and str(name.value).startswith("--"):
                    found.setdefault(str(name.value), set()).add((keywords.get("nargs"), keywords.get("action")))
    return found


def test_the_same_option_is_given_in_the_same_way_to_every_command() -> None:
    found = options()
    assert len(found) > 40
    assert [name for name in found if not re.fullmatch("--[a-z_]+", name)] == []
    # The predictions for one file are in one file.
    assert {name for name, ways in found.items() if len(ways) > 1} == {"--input"}


def test_a_command_that_runs_cleans_up_when_it_is_interrupted(tmp_path: Path) -> None:
    """The command is a module of the test; it interrupts itself within a context."""
    code = (
        "import os, signal\n"
        "def main():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    finally:\n"
        "        print('cleaned up', flush=True)\n"
    )
    (tmp_path / "own_command.py").write_text(code)
    start = "import sys; from reader import console_script; console_script.MODULES['own'] = 'own_command'\n"
    start += "sys.argv = ['ernie-gram', 'own']; console_script.main()"
    done = python("-c", start, PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert (done.returncode, done.stdout, done.stderr) == (130, "cleaned up\n", "error: interrupted\n")


def test_setup_installs_the_console_script_and_all_settings() -> None:
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    assert '"ernie-gram = reader.console_script:main"' in setup
    [call_] = [node for node in ast.walk(ast.parse(setup)) if isinstance(node, ast.Call) and _name(node) == "setup"]
    values = {keyword.arg: keyword.value for keyword in call_.keywords}
    data = ast.literal_eval(values["package_data"])["ernie_gram.conf"]
    installed = {path for pattern in data for path in (ROOT / "conf").glob(pattern)}
    assert installed == {path for path in (ROOT / "conf").rglob("*") if path.is_file()}


def _name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def test_the_settings_of_the_project_are_found_from_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "conf/pretrain/small_zh.yaml"
    config, _ = load_config(PretrainConfig, ["--config", name])
    assert config == load_config(PretrainConfig, ["--config", str(ROOT / name)])[0]
    assert settings_file(Path(name)) == CONF / "pretrain" / "small_zh.yaml"
    with pytest.raises(InputError, match=r"^conf/pretrain/none\.yaml: cannot read the config"):
        load_config(PretrainConfig, ["--config", "conf/pretrain/none.yaml"])
    for other in ("pretrain/small_zh.yaml", str(tmp_path / name)):
        assert settings_file(Path(other)) == Path(other)
    # A file of the current folder comes first.
    (tmp_path / "conf" / "pretrain").mkdir(parents=True)
    write(tmp_path / name, "seed: 77\n")
    assert load_config(PretrainConfig, ["--config", name])[0].seed == 77


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no PYTHONSAFEPATH")
def test_other_processes_import_the_same_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of the user may have the name of a package."""
    (tmp_path / "reader").mkdir()
    write(tmp_path / "reader" / "__init__.py", "raise SystemExit('the wrong package')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    environment = child_environment(MORE="1")
    assert environment["PYTHONPATH"] == f"{ROOT}{os.pathsep}/nowhere"
    assert environment["MORE"] == "1"
    code = os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-m", "reader.console_script"], environment)
    assert code == 0
