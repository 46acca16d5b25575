"""What a study needs before its runs: vocabulary, lexicons and corpora, built by the reader's commands if missing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ernie_gram.config.checks import require
from ernie_gram.experiments.processes import run_module
from reader.build import build_parser
from reader.corpus.memmap import Corpus, CorpusInfo
from reader.corpus.occurrences import median_occurrences
from reader.errors import InputError
from reader.lexicon.lexicon_file import Lexicon
from reader.system.atomic_files import make_folder, write_atomically
from reader.system.untrusted_text import read_json
from reader.text.input_files import CORPUS_INFO, find_files
from reader.text.text_files import TextFiles
from reader.tokenization.vocabulary_file import FILE_NAMES, load_vocabulary, vocabulary_in
from tasks.studies.study_file import HELD_OUT_TEXT, OF_START, TRAIN_TEXT, Options, Study

# The options that give the two texts.
OPTIONS = {TRAIN_TEXT: "--input", HELD_OUT_TEXT: "--held_out"}
SEGMENT_BYTES = 1 << 26
# The options with which the vocabulary was made, beside it.
MADE_WITH = "vocab.txt.json"
VOCABULARY_OPTIONS = ("tokenizer", "size", "lowercase", "segmenter", "text_field")


@dataclass(frozen=True)
class Prepared:
    """The folder with what a study prepares.

    Attributes:
        study: the study.
        folder: has vocab.txt and its options, NAME.tsv for each lexicon, and the folder NAME for each corpus.
        texts: "train" and "held_out" -> the files, if they are given.
        start: the given model, or None.
    """

    study: Study
    folder: Path
    texts: dict[str, list[str]]
    start: Path | None

    @property
    def vocabulary(self) -> Path:
        """The file of the vocabulary."""
        if self.study.vocabulary != OF_START:
            return self.folder / "vocab.txt"
        assert self.start is not None
        found = vocabulary_in(self.start)
        if found is None:
            raise InputError(f"--start: {self.start} has no vocabulary ({' or '.join(FILE_NAMES)})")
        return found

    def lexicon(self, name: str) -> Path:
        """Return the file of a lexicon."""
        return self.folder / f"{name}.tsv"

    def corpus(self, name: str) -> Path:
        """Return the folder of a corpus."""
        return self.folder / name

    def info(self, name: str) -> CorpusInfo:
        """Return the description of a corpus; raises InputError if it is missing or damaged."""
        return Corpus(self.corpus(name)).info

    @cached_property
    def digests(self) -> dict[str, str]:
        """The digests of the given texts, by their names. All of each text is read once."""
        return {name: _digest(files, self.vocabulary) for name, files in self.texts.items() if files}

    def missing(self) -> list[tuple[Path, list[str]]]:
        """Return the missing files and folders in the order of building, each with the command that builds it.

        Raises InputError if a text that is needed is not given.
        """
        return [(path, command) for path, command in self._commands() if not self._is_there(path)]

    def check_texts(self) -> None:
        """Raise InputError if a given text does not exist, or if the two texts have a file in common."""
        train, held_out = (find_files(self.texts.get(name, [])) for name in (TRAIN_TEXT, HELD_OUT_TEXT))
        for path in held_out:
            is_both = any(path.samefile(each) for each in train)
            require(not is_both, "--held_out", f"{path} is also a text of --input; give another text")

    def _is_there(self, path: Path) -> bool:
        return path.is_file() or (path / CORPUS_INFO).is_file()

    def _commands(self) -> Iterator[tuple[Path, list[str]]]:
        study = self.study
        if study.vocabulary != OF_START:
            assert not isinstance(study.vocabulary, str)
            yield self._command("vocab", self.vocabulary, TRAIN_TEXT, _options(study.vocabulary))
        vocab = ["--vocab", str(self.vocabulary)]
        for name, options in study.lexicons.items():
            yield self._command("lexicon", self.lexicon(name), TRAIN_TEXT, [*vocab, *_options(options)])
        for name, corpus in study.corpora.items():
            lexicon = ["--lexicon", str(self.lexicon(corpus.lexicon))] if corpus.lexicon else []
            yield self._command("corpus", self.corpus(name), corpus.text, [*vocab, *lexicon])

    def _command(self, name: str, output: Path, text: str, options: Sequence[str]) -> tuple[Path, list[str]]:
        files = self.texts.get(text, [])
        if not files and not self._is_there(output):
            raise InputError(f"{OPTIONS[text]}: must be given, to build {output}")
        return output, [name, "--input", *files, *options, "--output", str(output)]

    def build(self) -> None:
        """Build what is missing, one after the other; raises InputError with the message of the command that failed."""
        missing = self.missing()
        if missing:
            make_folder(self.folder)
        for path, command in missing:
            print(f"build {path}", flush=True)
            if path == self.vocabulary:
                assert not isinstance(self.study.vocabulary, str)
                options = _parsed("vocab", self.study.vocabulary)
                made_with = {key: options[key] for key in VOCABULARY_OPTIONS}
                write_atomically(self.folder / MADE_WITH, json.dumps(made_with) + "\n")
            run_module("reader.build", *command)
        self.check()

    def check(self) -> None:
        """Raise InputError if a part was made with other settings or from another text, or if parts do not fit."""
        if not isinstance(self.study.vocabulary, str):
            self._check_vocabulary(self.study.vocabulary)
        for name, options in self.study.lexicons.items():
            made = Lexicon.load(self.lexicon(name)).info
            top = {int(order): count for order, count in made.top.items()}
            found = {"top": top, "min_count": made.min_count, "max_ngram_tokens": made.max_ngram_tokens}
            wanted = _parsed("lexicon", options)
            _check_options(f"lexicons.{name}", self.lexicon(name), {**found, "segmenter": made.han}, wanted)
        texts: dict[str, tuple[str, str]] = {}
        vocabularies: dict[str, str] = {}
        for name, corpus in self.study.corpora.items():
            info = self.info(name)
            lexicon = Lexicon.load(self.lexicon(corpus.lexicon)).fingerprint if corpus.lexicon else ""
            reason = f"{self.corpus(name)} was made with another lexicon; choose another --output"
            require(info.lexicon == lexicon, f"corpora.{name}", reason)
            first, text = texts.setdefault(corpus.text, (name, info.text))
            reason = f"was made from another text than {self.corpus(first)}; choose another --output"
            require(info.text == text, str(self.corpus(name)), reason)
            vocabularies[info.vocabulary] = name
        for name, digest in self.digests.items():
            if name in texts:
                reason = f"is not the text that {self.corpus(texts[name][0])} was made from; choose another --output"
                require(digest == texts[name][1], f"{OPTIONS[name]} {' '.join(self.texts[name])}", reason)
        require(len(vocabularies) <= 1, str(self.folder), f"{', '.join(vocabularies.values())}: vocabularies differ")

    def _check_vocabulary(self, options: Options) -> None:
        made_with, wanted = self.folder / MADE_WITH, _parsed("vocab", options)
        if made_with.is_file():
            found = read_json(made_with)
        else:
            # Of an earlier version, or the user's. A small text gives fewer tokens than were asked for.
            count = len(load_vocabulary(self.vocabulary))
            found = {"size": count} if "size" in options and count > wanted["size"] else {}
        _check_options("vocabulary", self.vocabulary, found, wanted)


def corpus_result(folder: Path) -> dict[str, float]:
    """Return the sizes of a corpus, its share of tokens in n-grams, and how often the n-grams occur in it."""
    corpus = Corpus(folder)
    info = corpus.info
    median = median_occurrences(corpus)
    sizes = {"tokens": info.tokens, "units": info.units, "ngrams": info.num_ngrams, "vocabulary": info.num_tokens}
    share = 1 - (info.units - info.ngram_units) / info.tokens
    occurrences = {} if median is None else {"median_occurrences": median}
    return {**sizes, "ngram_occurrences": info.ngram_units, "token_share": share, **occurrences}


def _options(options: Options) -> list[str]:
    """Return settings as options of a command; `true` is an option without a value."""
    given = [(key, value) for key, value in options.items() if value is not False]
    return [part for key, value in given for part in ([f"--{key}"] if value is True else [f"--{key}", str(value)])]


def _parsed(command: str, options: Options) -> dict[str, Any]:
    """Return the options of a command that makes a vocabulary or a lexicon, with the defaults of those not given."""
    needed = ["--input", "", "--output", "", *(["--vocab", ""] if command == "lexicon" else [])]
    return vars(build_parser().parse_known_args([command, *_options(options), *needed])[0])


def _check_options(where: str, path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise InputError if a file was made with other options than a study has."""
    for key, value in found.items():
        reason = f"{path} has {key} {value}, the study {wanted[key]}; choose another --output"
        require(wanted[key] == value, where, reason)


def _digest(files: list[str], vocabulary: Path) -> str:
    """Return the digest of a text as corpora store it; the vocabulary, which may be in the same folder, is no text."""
    text = TextFiles(find_files(files, [vocabulary]))
    for _ in text.segments(SEGMENT_BYTES):
        pass
    return text.digest
