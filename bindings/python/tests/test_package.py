"""The package itself: examples in docstrings, stubs, models, and the notebook."""

import ast
import doctest
import importlib
import json
import sys
from pathlib import Path

import pytest

import srf
from conftest import ROOT
from srf import _srf

PACKAGE = Path(srf.__file__).parent


@pytest.mark.parametrize("name", ["srf", "srf._recognizer"])
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(name)
    failed, attempted = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert attempted > 0 and failed == 0


def test_everything_public_has_a_docstring():
    for name in srf.__all__:
        thing = getattr(srf, name)
        assert isinstance(thing, str) or thing.__doc__, name


def test_the_stubs_name_what_there_is():
    assert (PACKAGE / "py.typed").exists()
    tree = ast.parse((PACKAGE / "_srf.pyi").read_text())
    stubs = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    native = {name for name in dir(_srf) if not name.startswith("_")} - {"DEFAULT_MODEL"}
    assert set(stubs) == native
    for name, node in stubs.items():
        if isinstance(node, ast.ClassDef) and name not in ("Error", "Router64"):
            members = {member.name for member in node.body if isinstance(member, ast.FunctionDef)} - {"__init__"}
            found = {member for member in vars(getattr(_srf, name)) if not member.startswith("__") or member in members}
            assert members == found, name


def test_one_build_serves_all_versions_of_python():
    (wheel,) = PACKAGE.parent.glob("srf-*.dist-info/WHEEL")
    assert "Tag: cp39-abi3-" in wheel.read_text()


def test_the_models_are_those_of_the_project():
    def files(folder):
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert files(PACKAGE / "models") == files(ROOT / "models")


def test_the_notebook_runs_and_draws(monkeypatch, tmp_path):
    monkeypatch.setenv("MPLBACKEND", "agg")
    import matplotlib.pyplot as plt

    notebook = json.loads((ROOT / "bindings/python/notebooks/figures.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in cells), "clear the outputs before committing"
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(len(plt.gcf().axes)) or plt.close())
    names = {"__name__": "__main__"}
    for cell in cells:
        exec(compile("".join(cell["source"]), "figures.ipynb", "exec"), names)
    assert len(shown) >= 4 and all(shown)
