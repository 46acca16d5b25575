"""The rungs of the ablation, from the baselines to the full objective (section 4.7), each a file of conf/ablation."""

from __future__ import annotations

from reader.system.installation import CONF

CONFIGS = CONF / "ablation"
# The rows of table 12 are "explicit" (#5), "cnp" (#4), "enrm" (#3), "both" (#2) and "full" (#1). Those of
# table 5, which has no relative position, are one number lower and begin with "both".
RUNGS = ("token", "contiguous", "explicit", "cnp", "enrm", "both", "full")
