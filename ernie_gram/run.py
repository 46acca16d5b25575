"""What is settled before training starts: corpora that fit, an output folder that is ours, where to go on.

Nothing here needs Paddle, so bad input is told within a second.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ernie_gram import checkpoint
from ernie_gram.config import PretrainConfig, identity_differences, require
from ernie_gram.config_file import explained_yaml
from reader.atomic import whole_file
from reader.corpus import Corpus
from reader.errors import InputError
from reader.feeder import Feeder, Masking

IDENTITY, CONFIG = "identity.json", "config.yaml"


@dataclass(frozen=True)
class Run:
    """A run that can start.

    Attributes:
        config: its settings.
        output: its folder.
        identity: what its checkpoints must match.
        train: the training data.
        held_out: the evaluation data, if any.
        resume_from: a verified checkpoint, or None to start afresh.
    """

    config: PretrainConfig
    output: Path
    identity: dict[str, Any]
    train: Feeder
    held_out: Feeder | None
    resume_from: Path | None

    def describe(self) -> str:
        """What the run is going to do, in a few lines."""
        config, info = self.config, self.train.corpus.info
        epochs = config.trainer.max_steps * config.data.batch_size / len(self.train)
        start = f"resumes from {self.resume_from}" if self.resume_from else "starts afresh"
        return (
            f"corpus   {config.paths.corpus}: {info.tokens:,} tokens, {info.units:,} units "
            f"({info.num_tokens:,} tokens + {info.num_ngrams:,} n-grams), {len(self.train):,} sequences\n"
            f"training {config.trainer.max_steps:,} steps of {config.data.batch_size:,} sequences, "
            f"{epochs:.2f} epochs\n"
            f"output   {self.output}: {start}"
        )

    def claim_output(self) -> None:
        """Make the output folder this run's own."""
        with whole_file(self.output / IDENTITY) as partial:
            partial.write_text(json.dumps(self.identity, indent=1) + "\n")
        with whole_file(self.output / CONFIG) as partial:
            partial.write_text(explained_yaml(self.config), encoding="utf-8")


def prepare(config: PretrainConfig, world: int) -> Run:
    """Check all that a run needs; raises InputError that names the key or file at fault."""
    require(
        bool(config.paths.corpus), "paths.corpus", "must be given: a folder made by `python -m reader.build corpus`"
    )
    require(bool(config.paths.output), "paths.output", "must be given: a folder for checkpoints and logs")
    require(
        world <= config.data.batch_size,
        "data.batch_size",
        f"{world} processes, but only {config.data.batch_size} sequences in a batch; use fewer processes",
    )
    corpus = Corpus(Path(config.paths.corpus))
    require(
        config.model.vocab_size is None or config.model.vocab_size >= corpus.info.num_tokens,
        "model.vocab_size",
        f"{config.model.vocab_size} is less than the {corpus.info.num_tokens} tokens of {config.paths.corpus}",
    )
    held_out = Corpus(Path(config.paths.held_out)) if config.paths.held_out else None
    if held_out:
        for what in ("vocabulary", "lexicon"):
            if getattr(held_out.info, what) != getattr(corpus.info, what):
                raise InputError(f"paths.held_out: {held_out.path} was made with another {what} than {corpus.path}")
    identity = config.identity(corpus.info.fingerprint)
    output = Path(config.paths.output)
    _check_owner(output, identity)
    resume_from = _resume_from(output, config.trainer.resume)
    if resume_from:
        _check_identity(f"{resume_from}", checkpoint.load_state(resume_from).identity, identity)
    masking = Masking(config.objective.masking == "explicit", config.objective.mask_fraction, config.seed)
    length = config.data.max_seq_len
    return Run(
        config,
        output,
        identity,
        Feeder(corpus, length, masking),
        Feeder(held_out, length, masking) if held_out else None,
        resume_from,
    )


def _check_identity(where: str, there: dict[str, Any], here: dict[str, Any]) -> None:
    differences = identity_differences(there, here)
    if differences:
        raise InputError(
            f"{where}: belongs to another run ({'; '.join(differences)}); "
            "choose another paths.output, or set these back"
        )


def _check_owner(output: Path, identity: dict[str, Any]) -> None:
    if output.exists() and not output.is_dir():
        raise InputError(f"paths.output: {output} is a file")
    try:
        there = json.loads((output / IDENTITY).read_text())
    except FileNotFoundError:
        return
    except ValueError as error:
        raise InputError(f"{output / IDENTITY}: damaged; remove it or choose another paths.output") from error
    _check_identity(str(output), there, identity)


def _resume_from(output: Path, resume: str) -> Path | None:
    found = checkpoint.checkpoints(output)
    if resume == "never":
        if found:
            raise InputError(f"trainer.resume: never, but {output} holds {found[-1].name}; choose another paths.output")
        return None
    if resume != "auto":
        found = [Path(resume)]
    if not found:
        return None
    try:
        checkpoint.verify(found[-1])
    except InputError as error:
        whole = checkpoint.newest_whole(found[-1].parent)
        offer = (
            f"the newest whole one is {whole}: go on from it with --trainer.resume {whole}"
            if whole
            else ("no whole one is left: choose another paths.output to start afresh")
        )
        raise InputError(f"{error}; {offer}") from error
    return found[-1]
