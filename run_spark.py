"""`python -m reader.build` for spark-submit, which takes a file and no module: spark-submit run_spark.py lexicon ..."""

from reader.build import main
from reader.errors import one_line_errors

if __name__ == "__main__":
    one_line_errors(main)
