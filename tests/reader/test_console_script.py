"""The console script: its list of commands, their usage, misspelt names, and how little it imports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ernie_gram
from ernie_gram.config.loading import load_config
from ernie_gram.pretraining.config import PretrainConfig
from reader import console_script
from reader.console_script import MEMORY, MEMORY_VARIABLE, MODULES, main
from reader.errors import InputError
from reader.system.installation import CONF, child_environment, settings_file
from tests.support.commands import ROOT, assert_one_line_error, call, python
from tests.support.import_graph import module, sources
from tests.support.task_files import write


def test_every_command_is_in_the_list_and_the_nearest_name_is_given_for_a_misspelt_one() -> None:
    modules = {module(path) for path in sources() if "\ndef main() -> None:\n" in path.read_text(encoding="utf-8")}
    started_by_ours = {"ernie_gram.inference.onnx_folder", "reader.console_script"}
    assert {*MODULES.values()} | started_by_ours == modules
    lines = call(main).stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")][-len(MODULES) :] == [*MODULES]
    for typed, nearest in (
        ("predcit", "did you mean predict?"),
        ("fill_mask", "did you mean fill-mask?"),
        ("zzz", ""),
    ):
        done = call(main, typed)
        assert_one_line_error(done, f"no command {typed}")
        assert nearest in done.stderr


def test_the_version_is_one_everywhere_and_an_unread_list_of_commands_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ernie-gram", "--version"])
    main()
    assert capsys.readouterr().out == f"ernie-gram {ernie_gram.__version__}\n"
    done = python("setup.py", "--version").ok()
    assert done.stdout.split() == [ernie_gram.__version__]
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", "from reader.console_script import main; main()", "--help"]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("command", "environment", "expected", "restarts"),
    [
        ("pretrain", {}, MEMORY, True),
        ("finetune", {"NPROC": "1"}, MEMORY, True),
        ("finetune", {"NPROC": "2"}, MEMORY, False),
        ("pretrain", {MEMORY_VARIABLE: "own"}, "own", False),
        ("score", {}, None, False),
    ],
)
def test_processes_that_train_have_their_memory_settings(
    command: str, environment: dict[str, str], expected: str, restarts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, arguments: started.append(arguments))
    monkeypatch.setattr(console_script, "run_command", lambda *_: None)
    # A program that calls `main` is not started again.
    for typed in (["another", "program"], ["python", "ernie-gram", command, "A", "B"]):
        given = {**environment}
        monkeypatch.setattr(os, "environ", given)
        monkeypatch.setattr(sys, "argv", ["ernie-gram", command, "A", "B"])
        monkeypatch.setattr(sys, "orig_argv", typed)
        main()
        assert given.get(MEMORY_VARIABLE) == expected
    assert started == [[sys.executable, "ernie-gram", command, "A", "B"]] * restarts


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
    [values] = [node.value for node in ast.walk(ast.parse(setup)) if getattr(node, "arg", "") == "package_data"]
    data = ast.literal_eval(values)["ernie_gram.conf"]
    installed = {path for pattern in data for path in (ROOT / "conf").glob(pattern)}
    assert installed == {path for path in (ROOT / "conf").rglob("*") if path.is_file()}


def test_settings_of_the_project_are_found_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
