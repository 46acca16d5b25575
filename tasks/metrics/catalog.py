"""All metrics by name."""

from __future__ import annotations

from tasks.metrics import chinese_answers, entities, labels, scores, squad
from tasks.metrics.metric import Metric

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "accuracy",
            "accuracy (GLUE except CoLA and STS-B, IMDb, AG News, XNLI, LCQMC, ChnSentiCorp, classification in CLUE)",
            "labels",
            labels.accuracy,
            main="accuracy",
            unit="fraction",
        ),
        Metric(
            "accuracy_f1",
            "accuracy, and F1 of class 1 (MRPC, QQP)",
            "labels",
            labels.accuracy_f1,
            main="accuracy",
            unit="fraction",
            labels=("0", "1"),
        ),
        Metric(
            "macro_f1",
            "mean of F1 over the labels, and accuracy",
            "labels",
            labels.macro_f1,
            main="macro_f1",
            unit="fraction",
        ),
        Metric(
            "matthews",
            "Matthews correlation, and accuracy (CoLA)",
            "labels",
            labels.matthews,
            main="matthews",
            unit="fraction",
        ),
        Metric(
            "accuracy_by_id",
            "accuracy of answers found by ID (ChID, C3)",
            "labels_by_id",
            labels.accuracy_by_id,
            main="accuracy",
            unit="fraction",
        ),
        Metric(
            "race",
            "accuracy over all questions, high school, middle school (RACE)",
            "labels_by_id",
            labels.race,
            main="accuracy",
            unit="fraction",
        ),
        Metric(
            "correlation",
            "Pearson and Spearman correlation (STS-B)",
            "scores",
            scores.correlation,
            main="pearson",
            unit="fraction",
        ),
        Metric(
            "mean_squared_error",
            "mean squared error",
            "scores",
            scores.mean_squared_error,
            main="mean_squared_error",
            unit="none",
            direction="min",
        ),
        Metric("squad_v1", "exact match and F1 (SQuAD 1.1)", "texts_by_id", squad.squad_v1, main="f1", unit="percent"),
        Metric(
            "squad_v2",
            "exact match and F1 with unanswerable questions (SQuAD 2.0)",
            "texts_by_id",
            squad.squad_v2,
            main="f1",
            unit="percent",
            options=("na_prob", "threshold"),
        ),
        Metric(
            "cmrc2018",
            "exact match, F1 and their mean (CMRC 2018, DRCD)",
            "texts_by_id",
            chinese_answers.cmrc2018,
            main="average",
            unit="percent",
        ),
        Metric(
            "dureader_robust",
            "exact match and F1 (DuReader-robust)",
            "texts_by_id",
            chinese_answers.dureader_robust,
            main="f1",
            unit="percent",
        ),
        Metric(
            "conlleval",
            "entity F1 of tags (CoNLL-2003, MSRA-NER)",
            "tag_sequences",
            entities.conlleval,
            main="f1",
            unit="percent",
        ),
        Metric(
            "cluener",
            "mean of entity F1 over the types, and F1 over spans (CLUENER)",
            "spans",
            entities.cluener,
            main="f1",
            unit="fraction",
        ),
    )
}
