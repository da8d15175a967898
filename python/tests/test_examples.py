"""The examples run, and the docstrings say what happens."""

import doctest
import importlib
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example, tmp_path):
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_there_are_three():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("module", ["a2lp", "a2lp.estimator", "a2lp.graph", "a2lp.result", "a2lp.pseudo_labeller"])
def test_docstrings(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0 and result.failed == 0
