"""How pip builds the package: copies the project's models into it, then lets maturin build it."""

import shutil
from pathlib import Path

import maturin
from maturin import get_requires_for_build_editable, get_requires_for_build_wheel, prepare_metadata_for_build_wheel

__all__ = ["build_editable", "build_wheel", "get_requires_for_build_editable", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"]

_HERE = Path(__file__).resolve().parents[1]
_MODELS = _HERE.parents[1] / "models"


def _copy_models():
    """The package's models are copies, made anew: the project has each of them once."""
    copies = _HERE / "python/srf/models"
    if not _MODELS.is_dir():
        raise FileNotFoundError(f"there is no `{_MODELS}`: install the package from a copy of the whole project")
    shutil.rmtree(copies, ignore_errors=True)
    shutil.copytree(_MODELS, copies)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _copy_models()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _copy_models()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
