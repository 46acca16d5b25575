"""The plan of an ablation: its rungs, its runs, and the checks that keep the runs comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.experiments.experiment import check_overrides
from ernie_gram.experiments.processes import check_folders_and_devices
from ernie_gram.pretraining.config import PretrainConfig, term_weights
from ernie_gram.pretraining.planned_run import LAUNCHER, PretrainingRun, load_pretraining
from ernie_gram.pretraining.prepare import prepare
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from reader.system.installation import CONF
from reader.text.input_files import CORPUS_INFO

CONFIGS = CONF / "ablation"
# From the baselines to the full objective. The numbers are rows of the paper's table, which lacks the first two.
RUNGS = {
    "token": "token-level masking",
    "contiguous": "contiguous n-gram masking",
    "explicit": "#5 explicit n-gram masking",
    "cnp": "#4 #5 + comprehensive prediction",
    "enrm": "#3 #5 + relation modelling",
    "both": "#2 #5 + both",
    "full": "#1 #2 + relative position",
}


@dataclass(frozen=True, eq=False)
class AblationRun(PretrainingRun):
    """One rung with one seed."""

    @property
    def rung(self) -> str:
        """The name of the rung."""
        return self.varied["rung"]


def parts_of(config: PretrainConfig) -> dict[str, object]:
    """Return the settings in which rungs differ, by key."""
    objective = config.objective
    return {
        "objective.masking": objective.masking,
        **{f"objective.{key}": getattr(objective, key) > 0 for key in term_weights()},
        "model.use_relative_position": config.model.use_relative_position,
    }


def plan(
    output: Path, rungs: list[str], seeds: Sequence[int], token_corpus: str | None, overrides: list[str]
) -> list[AblationRun]:
    """Return the runs of an ablation.

    Raises InputError for an unknown option, and for an option that would turn one rung into another.
    """
    check_overrides(overrides, ("--config", "--print_config", "--seed", "--paths.output"))
    own_parts = {rung: parts_of(load_pretraining(["--config", str(CONFIGS / f"{rung}.yaml")])[0]) for rung in rungs}
    runs = []
    for seed in dict.fromkeys(seeds):
        for rung in dict.fromkeys(rungs):
            folder = output / f"{rung}_{seed}"
            options = ["--config", str(CONFIGS / f"{rung}.yaml"), *overrides, f"--seed={seed}"]
            options.append(f"--paths.output={folder}")
            if rung == "token" and token_corpus:
                options.append(f"--paths.corpus={token_corpus}")
            config, given = load_pretraining(options)
            for key, value in parts_of(config).items():
                require(value == own_parts[rung][key], key, f"makes {rung} another rung; leave it out")
            runs.append(AblationRun(folder, {"rung": rung}, seed, LAUNCHER, tuple(options), config, given))
    return runs


COMMANDS = (
    "vocab --input TEXT --output vocab.txt",
    "lexicon --input TEXT --vocab vocab.txt --output lexicon.tsv",
    "corpus --input TEXT --vocab vocab.txt --lexicon lexicon.tsv --output {corpus}",
    "corpus --input TEXT --vocab vocab.txt --output {token_corpus}",
    "corpus --input HELD_OUT --vocab vocab.txt --lexicon lexicon.tsv --output {held_out}",
)


def _check_corpora(runs: list[AblationRun]) -> None:
    """Raise InputError that names the missing corpora, what they are for, and the commands that build them."""
    needed = {"corpus": "", "token_corpus": "", "held_out": ""}
    for run in runs:
        needed["token_corpus" if run.rung == "token" else "corpus"] = run.config.paths.corpus
        needed["held_out"] = str(run.config.paths.held_out or "")
    missing = [path for path in needed.values() if path and not (Path(path) / CORPUS_INFO).is_file()]
    if not missing:
        return
    options = {"corpus": "--paths.corpus", "token_corpus": "--token_corpus", "held_out": "--paths.held_out"}
    uses = {
        "corpus": "the training corpus",
        "token_corpus": "for the rung `token`, the same text without a lexicon",
        "held_out": "other text to compare the rungs on",
    }
    described = "; ".join(f"{options[key]} {path}: {uses[key]}" for key, path in needed.items() if path)
    paths = {key: path or None for key, path in needed.items()}
    commands = [command for command in COMMANDS if not any(f"{{{key}}}" in command for key in paths if not paths[key])]
    steps = "; ".join(f"ernie-gram {command.format(**paths)}" for command in commands)
    raise InputError(f"{', '.join(missing)}: no corpus there. The ablation needs {described}. To build them: {steps}")


def check(runs: list[AblationRun], processes: int) -> None:
    """Raise InputError if any run cannot be trained, or cannot be compared with the others.

    All runs are checked before the first is trained, so that a mistake in the last one is found at once.
    """
    _check_corpora(runs)
    check_folders_and_devices([run for run in runs if run.result() is None], processes)
    texts = {}
    for run in runs:
        paths = run.config.paths
        require(bool(paths.held_out), "paths.held_out", "must be given: rungs are compared on it")
        prepared = prepare(run.config, processes, given=run.given)
        trained_on, held_out = prepared.train.corpus.info, Corpus(Path(str(paths.held_out))).info
        advice = "build it with --lexicon"
        reason = f"{paths.held_out} has no n-grams to compare rungs on; {advice}"
        require(held_out.num_ngrams > 0, "paths.held_out", reason)
        if run.rung == "token":
            hint = "give one made without a lexicon by --token_corpus"
            require(trained_on.num_ngrams == 0, "--token_corpus", f"{paths.corpus} has n-grams; {hint}")
        else:
            require(trained_on.num_ngrams > 0, "paths.corpus", f"{paths.corpus} has no n-grams; {advice}")
        texts[trained_on.text] = paths.corpus
        reason = f"{' and '.join(texts.values())} were made of different texts; build both of the same --input"
        require(len(texts) == 1, "--token_corpus", reason)
        reason = f"{run.folder} was evaluated on other text; choose another --output"
        require(run.is_evaluated_on_its_text(), "paths.held_out", reason)
