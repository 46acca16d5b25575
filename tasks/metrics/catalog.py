"""All metrics by name."""

from __future__ import annotations

from tasks.metrics.chinese_answers import cmrc2018, dureader_robust
from tasks.metrics.entities import cluener, conlleval
from tasks.metrics.labels_and_scores import (
    accuracy,
    accuracy_by_id,
    accuracy_f1,
    correlation,
    macro_f1,
    matthews,
    mean_squared_error,
    multi_label_f1,
    race,
)
from tasks.metrics.metric import Metric
from tasks.metrics.squad import squad_v1, squad_v2

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(accuracy, "labels", "accuracy (most tasks of classification)", main="accuracy"),
        Metric(
            accuracy_f1,
            "labels",
            "accuracy, and F1 of class 1 (MRPC, QQP)",
            main="accuracy",
            labels=("0", "1"),
            reported=("accuracy", "f1"),
        ),
        Metric(macro_f1, "labels", "mean of F1 over the labels, and accuracy", main="macro_f1"),
        Metric(
            multi_label_f1,
            "label_sets",
            "F1 of the labels of all texts together (micro), and mean of F1 over the labels (macro)",
            main="micro_f1",
            options=("labels",),
            reported=("micro_f1", "macro_f1"),
        ),
        Metric(matthews, "labels", "Matthews correlation, and accuracy (CoLA)", main="matthews"),
        Metric(accuracy_by_id, "labels_by_id", "accuracy of answers found by ID (ChID, C3)", main="accuracy"),
        Metric(
            race,
            "labels_by_id",
            "accuracy over all questions, high school, middle school (RACE)",
            main="accuracy",
            reported=("accuracy", "high", "middle"),
        ),
        Metric(
            correlation,
            "scores",
            "Pearson and Spearman correlation (STS-B)",
            main="pearson",
            reported=("pearson", "spearman"),
        ),
        Metric(mean_squared_error, "scores", "mean squared error", "mean_squared_error", "none", direction="min"),
        Metric(
            squad_v1, "texts_by_id", "exact match and F1 (SQuAD 1.1)", "f1", "percent", reported=("exact_match", "f1")
        ),
        Metric(
            squad_v2,
            "texts_by_id",
            "exact match and F1 with unanswerable questions (SQuAD 2.0)",
            main="f1",
            unit="percent",
            options=("na_prob", "threshold"),
            reported=("exact", "f1"),
        ),
        Metric(
            cmrc2018,
            "texts_by_id",
            "exact match, F1 and their mean (CMRC 2018, DRCD)",
            main="average",
            unit="percent",
            reported=("em", "f1"),
        ),
        Metric(
            dureader_robust,
            "texts_by_id",
            "exact match and F1 (DuReader-robust)",
            main="f1",
            unit="percent",
            reported=("em", "f1"),
        ),
        Metric(conlleval, "tag_sequences", "entity F1 of tags (CoNLL-2003, MSRA-NER)", "f1", "percent"),
        Metric(cluener, "spans", "mean of entity F1 over the types, and F1 over spans (CLUENER)", main="f1"),
    )
}
