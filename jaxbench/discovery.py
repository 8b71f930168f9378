# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From a name, or a path to a person's own file, to a loaded module. A file's name is its only registration. No jax.

An *experiment* defines ``build(config)`` and, if it has settings, ``get_config()``. A *preset* defines
``get_config(experiment_config)``.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from jaxbench.errors import UserError, did_you_mean


def experiments() -> dict[str, Path]:
    """The experiments that come with the suite, by name. Files that begin with an underscore are helpers."""
    return _files("experiments")


def presets() -> dict[str, Path]:
    """The presets that come with the suite, by name."""
    return _files("configs")


def load_experiment(name_or_path: str) -> ModuleType:
    """Loads an experiment by its name or from a ``.py`` file.

    Raises:
      UserError: no such experiment or file, the file cannot be imported, or it defines no ``build(config)``.
    """
    path = experiment_path(name_or_path)
    module = _load("experiment", path)
    _require(module, path, "build", "build(config)", "experiment")
    if hasattr(module, "get_config"):
        _require(module, path, "get_config", "get_config()", "experiment")
    return module


def build(name_or_path: str, config: Any) -> Any:
    """What the experiment's ``build(config)`` returns. Raises UserError, also for whatever it raises."""
    module = load_experiment(name_or_path)
    with _Explained(experiment_path(name_or_path)):
        return module.build(config)


def explained(module: ModuleType) -> AbstractContextManager[None]:
    """A context in which whatever the module's file raises becomes a UserError that says where."""
    return _Explained(Path(getattr(module, "__file__", None) or str(module)))


def experiment_path(name_or_path: str) -> Path:
    """The file of an experiment. Raises UserError when there is none."""
    return _find("experiment", name_or_path, experiments())


def digest(name_or_path: str) -> str:
    """sha256 of the experiment's file, and of the one whose ``build`` it uses. Raises UserError."""
    path = experiment_path(name_or_path)
    build = load_experiment(name_or_path).build
    base = Path(build.__code__.co_filename) if hasattr(build, "__code__") else path
    files = [path] if base == path or not base.is_file() else [path, base]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def load_preset(name_or_path: str) -> ModuleType:
    """Loads a preset by its name or from a ``.py`` file.

    Raises:
      UserError: no such preset or file, the file cannot be imported, or it defines no ``get_config``.
    """
    path = _find("preset", name_or_path, presets())
    module = _load("preset", path)
    _require(module, path, "get_config", "get_config(experiment_config)", "preset")
    return module


def describe(path: Path) -> str:
    """The first line of the file's docstring, read without running the file; empty when there is none."""
    try:
        docstring = ast.get_docstring(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError) as error:
        return f"(cannot be read: {error})"
    return docstring.splitlines()[0] if docstring else ""


def _files(kind: str) -> dict[str, Path]:
    # An installed wheel carries the folders inside the package; a checkout has them beside it.
    package = Path(__file__).resolve().parent
    bundled = package / "_bundled" / kind
    folder = bundled if bundled.is_dir() else package.parent / kind
    return {path.stem: path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")}


def _find(what: str, name_or_path: str, known: dict[str, Path]) -> Path:
    if name_or_path in known:
        return known[name_or_path]
    path = Path(name_or_path).expanduser()
    if path.suffix != ".py" and len(path.parts) <= 1:
        raise UserError(f"unknown {what} '{name_or_path}': {did_you_mean(name_or_path, known)}")
    if path.is_dir() or path.suffix != ".py":
        raise UserError(f"'{name_or_path}' is not a Python file: give the name of a {what} or the path of a .py file.")
    if not path.is_file():
        raise UserError(f"there is no file '{name_or_path}' (the folder of this run is '{Path.cwd()}').")
    return path.resolve()


def _load(what: str, path: Path) -> ModuleType:
    """Runs the file as a new module, under a name that is the same in every process of a run."""
    name = f"jaxbench_{what}_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # only None for a suffix that is not .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up here
    try:
        with _siblings_importable(path), _Explained(path):
            spec.loader.exec_module(module)
    except UserError:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _siblings_importable(file: Path) -> Iterator[None]:
    """As for a script: a file can import the files beside it while it loads. Our own never hide another module's name,
    such as `profile`."""
    folder = file.parent
    ours = file in (*experiments().values(), *presets().values())
    sys.path.insert(len(sys.path) if ours else 0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:  # the file may have taken it out itself
            sys.path.remove(str(folder))


class _Explained(AbstractContextManager[None]):
    """Turns whatever a person's file raises, of any type, into a UserError that says where. Swallows nothing."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, (Exception, SystemExit)) or isinstance(error, UserError):
            return
        file, line = self.path, None
        if isinstance(error, SyntaxError):
            file, line = Path(error.filename or self.path), error.lineno
        else:
            lines = [f.lineno for f in traceback.extract_tb(trace) if f.filename == str(self.path)]
            line = lines[-1] if lines else None
        where = f"'{file}', line {line}" if line else f"'{file}'"
        reason = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
        raise UserError(f"{where}: {type(error).__name__}: {reason}") from error


def _require(module: ModuleType, path: Path, name: str, signature: str, what: str) -> None:
    value = getattr(module, name, None)
    if value is None:
        raise UserError(f"'{path}' defines no {signature}: every {what} file needs one.")
    if not callable(value):
        raise UserError(f"'{path}': {name} must be a function, {signature}, and is {type(value).__name__}.")
