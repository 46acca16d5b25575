"""The plan of an ablation: its rungs, its runs, and the checks that keep the runs comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ernie_gram.config.checks import require
from ernie_gram.config.loading import load_config
from ernie_gram.pretraining.config import PretrainConfig, term_weights
from ernie_gram.pretraining.prepare import HELD_OUT, prepare
from ernie_gram.run.many_runs import check_devices
from ernie_gram.run.run_folder import CONFIG, check_output
from ernie_gram.run.run_log import last_evaluation, read_log
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
class AblationRun:
    """One rung with one seed: the options of its command, its settings, and the keys of the settings that are given."""

    rung: str
    seed: int
    options: list[str]
    config: PretrainConfig
    given: set[str]

    @property
    def output(self) -> Path:
        return Path(self.config.paths.output)

    @property
    def name(self) -> str:
        return self.output.name

    @property
    def progress(self) -> float:
        """The fraction of its steps that is in its log."""
        return max((record["step"] for record in read_log(self.output)), default=0) / self.config.trainer.max_steps

    @property
    def done(self) -> bool:
        """Whether its last evaluation is in its log."""
        last = last_evaluation(self.output)
        return last is not None and last["step"] == self.config.trainer.max_steps


def parts_of(config: PretrainConfig) -> dict[str, object]:
    """Return the settings in which rungs differ, by key."""
    objective = config.objective
    return {
        "objective.masking": objective.masking,
        **{f"objective.{key}": getattr(objective, key) > 0 for key in term_weights()},
        "model.use_relative_position": config.model.use_relative_position,
    }


def shared_settings(config: PretrainConfig) -> dict[str, object]:
    """Return the settings in which rungs must not differ, by name."""
    objective = config.objective
    return {
        "model": replace(config.model, use_relative_position=False),
        "data": config.data,
        "objective": (objective.mask_fraction, objective.output_bias, objective.ngram_start),
        "generator": config.generator,
        "optimizer": config.optimizer,
        "trainer": config.trainer,
    } | {f"objective.{key}": getattr(objective, key) for key in term_weights() if getattr(objective, key)}


def _load(options: list[str]) -> tuple[PretrainConfig, set[str]]:
    return load_config(PretrainConfig, options, "run_ablation", "", {})


def plan(
    output: Path, rungs: list[str], seeds: Sequence[int], token_corpus: str | None, overrides: list[str]
) -> list[AblationRun]:
    """Return the runs of an ablation.

    Raises InputError for an unknown option, for an option that would turn one rung into another, and if the rungs
    differ in other settings.
    """
    for own in ("--config", "--print_config", "--seed", "--paths.output"):
        if any(option.partition("=")[0] == own for option in overrides):
            raise InputError(f"{own}: not for the ablation, which sets it for every run")
    own_parts = {rung: parts_of(_load(["--config", str(CONFIGS / f"{rung}.yaml")])[0]) for rung in rungs}
    jobs = []
    for seed in dict.fromkeys(seeds):
        for rung in dict.fromkeys(rungs):
            options = ["--config", str(CONFIGS / f"{rung}.yaml"), *overrides, f"--seed={seed}"]
            options.append(f"--paths.output={output / f'{rung}_{seed}'}")
            if rung == "token" and token_corpus:
                options.append(f"--paths.corpus={token_corpus}")
            config, given = _load(options)
            for key, value in parts_of(config).items():
                require(value == own_parts[rung][key], key, f"makes {rung} another rung; leave it out")
            jobs.append(AblationRun(rung, seed, options, config, given))
    shared: dict[str, object] = {}
    for job in jobs:
        for what, value in shared_settings(job.config).items():
            if shared.setdefault(what, value) != value:
                raise InputError(f"{CONFIGS / job.rung}.yaml: its {what} differs from that of the other rungs")
    return jobs


COMMANDS = (
    "vocab --input TEXT --output vocab.txt",
    "lexicon --input TEXT --vocab vocab.txt --output lexicon.tsv",
    "corpus --input TEXT --vocab vocab.txt --lexicon lexicon.tsv --output {corpus}",
    "corpus --input TEXT --vocab vocab.txt --output {token_corpus}",
    "corpus --input HELD_OUT --vocab vocab.txt --lexicon lexicon.tsv --output {held_out}",
)


def _check_corpora(jobs: list[AblationRun]) -> None:
    """Raise InputError that names the missing corpora, what they are for, and the commands that build them."""
    needed = {"corpus": "", "token_corpus": "", "held_out": ""}
    for job in jobs:
        needed["token_corpus" if job.rung == "token" else "corpus"] = job.config.paths.corpus
        needed["held_out"] = str(job.config.paths.held_out or "")
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


def check(jobs: list[AblationRun], processes: int) -> None:
    """Raise InputError if any run cannot be trained, or cannot be compared with the others.

    All runs are checked before the first is trained, so that a mistake in the last one is found at once.
    """
    _check_corpora(jobs)
    unfinished = [job.config for job in jobs if not job.done]
    for output in (Path(config.paths.output) for config in unfinished):
        if output.exists():
            check_output(output)
    asked = ((each.trainer.device, each.optimizer.precision, each.model.attention) for each in unfinished)
    check_devices(asked, processes)
    texts = {}
    for job in jobs:
        paths, trainer = job.config.paths, job.config.trainer
        require(bool(paths.held_out), "paths.held_out", "must be given: rungs are compared on it")
        run = prepare(job.config, processes, given=job.given)
        trained_on, held_out = run.train.corpus.info, Corpus(Path(str(paths.held_out))).info
        advice = "build it with --lexicon"
        reason = f"{paths.held_out} has no n-grams to compare rungs on; {advice}"
        require(held_out.num_ngrams > 0, "paths.held_out", reason)
        if job.rung == "token":
            hint = "give one made without a lexicon by --token_corpus"
            require(trained_on.num_ngrams == 0, "--token_corpus", f"{paths.corpus} has n-grams; {hint}")
        else:
            require(trained_on.num_ngrams > 0, "paths.corpus", f"{paths.corpus} has no n-grams; {advice}")
        texts[trained_on.text] = paths.corpus
        reason = f"{' and '.join(texts.values())} were made of different texts; build both of the same --input"
        require(len(texts) == 1, "--token_corpus", reason)
        before = job.output / CONFIG
        if before.is_file():
            old, _ = _load(["--config", str(before)])
            same = (old.paths.held_out, old.trainer.eval_sequences) == (paths.held_out, trainer.eval_sequences)
            then, now = job.output / HELD_OUT, Path(str(paths.held_out)) / CORPUS_INFO
            same = same and not (then.is_file() and then.read_bytes() != now.read_bytes())
            require(same, "paths.held_out", f"{job.output} was evaluated on other text; choose another --output")
