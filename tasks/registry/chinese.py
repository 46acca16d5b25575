"""The Chinese tasks of the paper, as their authors distribute them and as upstream's task package does."""

from __future__ import annotations

from functools import partial

from tasks.kinds.task import Task, files
from tasks.layouts.questions import DuReaderDocuments, Squad
from tasks.layouts.tables import Tsv

# XNLI's own download: one dev and one test file for 15 languages, and a train file with other columns.
XNLI_COLUMNS = {"text_a": "sentence1", "text_b": "sentence2", "label": "gold_label"}
XNLI_OFFICIAL = Tsv(XNLI_COLUMNS, where={"language": "zh"})
XNLI_OFFICIAL_TRAIN = Tsv({"text_a": "premise", "text_b": "hypo", "label": "label"})
XNLI_FOLDERS, MULTINLI = ("XNLI-1.0", "XNLI-MT-1.0"), "multinli/multinli.train.zh.tsv"
PAIRS = {"text_a": "text_a", "text_b": "text_b", "label": "label"}
TSV_FILES = {name: files(f"{name}.tsv") for name in ("train", "dev", "test")}

classification = partial(Task, language="zh", kind="classification", metric="accuracy")
# Upstream's task package has DuReader in SQuAD's format; DuReader's own preprocessed files hold the same spans.
span = partial(Task, language="zh", kind="span", layout=Squad())

CHINESE = (
    classification(
        name="xnli",
        title="XNLI (zh)",
        layout=Tsv(PAIRS),
        splits={
            "train": files("train.tsv") | files("multinli.train.zh.tsv", MULTINLI, layout=XNLI_OFFICIAL_TRAIN),
            **{
                name: files(f"{name}.tsv") | files(f"xnli.{name}.tsv", layout=XNLI_OFFICIAL) for name in ("dev", "test")
            },
        },
        folders=(*XNLI_FOLDERS, "xnli", *(f"xnli/{name}" for name in XNLI_FOLDERS)),
        labels=("contradiction", "entailment", "neutral"),
        # The official train file says "contradictory", dev and test say "contradiction".
        label_aliases={"contradictory": "contradiction"},
        omitted_labels=("-",),
    ),
    classification(
        name="lcqmc",
        title="LCQMC",
        # The original has no header; upstream's copy has.
        layout=Tsv(PAIRS, header="auto", names=("text_a", "text_b", "label")),
        splits={name: files(f"{name}.tsv", f"{name}.txt") for name in ("train", "dev", "test")},
        folders=("lcqmc",),
        labels=("0", "1"),
    ),
    span(
        name="drcd",
        title="DRCD",
        metric="cmrc2018",
        splits={
            "train": files("DRCD_training.json", "train.json"),
            "dev": files("DRCD_dev.json", "dev.json"),
            "test": files("DRCD_test.json", "test.json"),
        },
        folders=("drcd",),
    ),
    span(
        name="cmrc2018",
        title="CMRC 2018",
        metric="cmrc2018",
        splits={
            "train": files("cmrc2018_train.json", "train.json", "cmrc2018_trial.json"),
            "dev": files("cmrc2018_dev.json", "dev.json"),
            "test": files("cmrc2018_test.json", "test.json", labelled=False),
        },
        folders=("cmrc2018", "cmrc2018_public", "clue/cmrc2018"),
        submission="json_object",
    ),
    span(
        name="dureader_robust",
        title="DuReader-robust",
        metric="dureader_robust",
        splits={
            "train": files("train.json"),
            "dev": files("dev.json"),
            "test": files("test.json", "test1.json", labelled=False),
        },
        folders=("dureader_robust", "dureader_robust-data"),
        submission="squad",
    ),
    span(
        name="dureader",
        title="DuReader, single document",
        metric="dureader_robust",
        splits={
            name: files(f"{name}.json")
            | files((f"{folder}/search.{name}.json", f"{folder}/zhidao.{name}.json"), layout=DuReaderDocuments())
            for name, folder in (("train", "trainset"), ("dev", "devset"))
        },
        folders=("dureader", "preprocessed", "dureader/preprocessed"),
    ),
    Task(
        name="msra_ner",
        title="MSRA-NER",
        language="zh",
        kind="tagging",
        metric="conlleval",
        # Characters and tags are each joined in one field.
        layout=Tsv({"tokens": "text_a", "tags": "label"}, list_separator="\x02"),
        splits=TSV_FILES,
        folders=("msra_ner",),
        labels=("PER", "ORG", "LOC"),
    ),
    classification(
        name="chnsenticorp",
        title="ChnSentiCorp",
        layout=Tsv({"text_a": "text_a", "label": "label"}),
        splits=TSV_FILES,
        folders=("chnsenticorp",),
        labels=("0", "1"),
    ),
)
