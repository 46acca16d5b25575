"""Package metadata. The settings of development tools are in pyproject.toml."""

from pathlib import Path
from runpy import run_path

from setuptools import find_packages, setup

setup(
    name="ernie-gram",
    version=run_path(str(Path(__file__).with_name("reader") / "__init__.py"))["__version__"],
    description="ERNIE-Gram: pre-training with explicitly n-gram masked language modelling, on PaddlePaddle",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    # The upper bound is that of Paddle's wheels.
    python_requires=">=3.10,<3.14",
    packages=[*find_packages(include=["reader*", "ernie_gram*", "tasks*"]), "ernie_gram.conf"],
    # In a wheel, the settings are inside of a package (see reader/system/installation.py).
    package_dir={"ernie_gram.conf": "conf"},
    package_data={
        "ernie_gram.conf": ["*/*.yaml"],
        "ernie_gram.formats": ["templates/*"],
        "ernie_gram.reporting": ["templates/*"],
    },
    entry_points={"console_scripts": ["ernie-gram = reader.console_script:main"]},
    install_requires=[
        "docstring-parser>=0.16,<1",
        "jinja2>=3.1,<4",
        "jsonargparse>=4.40,<5",
        "matplotlib>=3.8,<4",
        "numba>=0.60,<1",
        "nltk>=3.8,<4",
        "numpy>=1.26,<3",
        "PyYAML>=6,<7",
        "rjieba>=0.2,<1",
        "safetensors>=0.5,<1",
        "scikit-learn>=1.5,<2",
        "scipy>=1.11,<2",
        "sentencepiece>=0.2,<0.3",
        "tokenizers>=0.20,<1",
        "tqdm>=4.66,<5",
        "visualdl>=2.5.3,<3",
    ],
    extras_require={
        # Install exactly one of these two. Paddle's GPU packages are in Paddle's own index (see docs/cluster.md).
        # It imports setuptools, which its wheels for Python 3.10 and 3.11 do not ask for.
        "cpu": ["paddlepaddle>=3.3.1,<3.4", "setuptools>=70.1"],
        "gpu": ["paddlepaddle-gpu>=3.3.1,<3.4", "setuptools>=70.1"],
        # It needs one of Paddle's packages as well.
        "onnx": ["onnx>=1.17,<2", "paddle2onnx>=2.1,<3"],
        # Java 17 is needed as well.
        "spark": ["pyspark>=3.5,<5"],
        # The real PaddleNLP, for `make hub-test`, in an environment of its own because it needs numpy 1. It cannot be
        # imported with later versions of its requirements. Model cards name these too (formats/paddlenlp.py).
        "hub": [
            *("aistudio-sdk==0.2.6", "datasets==2.21.0", "huggingface_hub==0.25.2", "pyarrow==17.0.0"),
            *("paddlenlp==3.0.0b4", "paddlepaddle>=3.3.1,<3.4", "setuptools>=70.1"),
        ],
        "test": [
            # The reference for Chinese words.
            "jieba>=0.42.1,<1",
            "mypy>=1.13,<3",
            # Models in ONNX are converted and run.
            *("onnx>=1.17,<2", "onnxruntime>=1.22,<2", "paddle2onnx>=2.1,<3"),
            "pre-commit>=4,<5",
            "pytest>=8,<10",
            "pytest-timeout>=2.3,<3",
            "pytest-xdist>=3.6,<4",
            "ruff>=0.8,<1",
            # Its bdist_wheel makes the wheel of a test without the network.
            "setuptools>=70.1",
            "types-PyYAML>=6,<7",
            "types-tqdm>=4.66,<5",
        ],
    },
)
