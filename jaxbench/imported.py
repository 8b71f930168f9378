# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The source files of an experiment: its own file and every module that it loads and that is not installed. No jax.

Imports, including those inside functions, are read from the source and resolved without running anything. Modules that
a file obtains in another way are found by the functions and classes in its namespace.
"""

from __future__ import annotations

import ast
import functools
import importlib
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_BY_NAME = ("import_module", "__import__", "load_experiment")  # functions that load a module by a name in a string
_LIBRARIES = tuple({Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_PACKAGE = Path(__file__).resolve().parent


def sources(path: Path, module: ModuleType, experiments: Mapping[str, Path]) -> list[Path]:
    """The experiment's file, then the other files in order of their path relative to it.

    module: the loaded file. experiments: the files that `load_experiment` finds by name. Call it while files in the
    experiment's folder can be imported.
    """
    importlib.invalidate_caches()
    _real.cache_clear()
    found: set[Path] = set()
    ahead = [path.resolve(), *_holds(module)]
    while ahead:
        file = ahead.pop()
        if file not in found and not _installed(file):
            found.add(file)
            ahead += _imports(file, experiments)
            ahead += [other for known in _loaded(file) for other in _holds(known)]
    others = sorted(found - {path.resolve()}, key=lambda file: os.path.relpath(file, path.parent))
    return [path.resolve(), *others]


def _installed(file: Path) -> bool:
    """Whether a file belongs to Python, to an installed library, or to jaxbench other than its experiments."""
    if file.is_relative_to(_PACKAGE):
        return not file.is_relative_to(_PACKAGE / "_bundled")
    libraries = any(file.is_relative_to(folder) for folder in _LIBRARIES)
    return libraries or bool({"site-packages", "dist-packages"} & {*file.parts})


def _loaded(file: Path) -> list[ModuleType]:
    """The modules of this process that were made from a file."""
    return [module for module in [*sys.modules.values()] if _file_of(module) == file]


def _file_of(module: object) -> Path | None:
    name = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return _real(name) if isinstance(name, str) else None


@functools.cache  # cleared by each call of `sources`, which looks up about a thousand modules many times
def _real(name: str) -> Path | None:
    return Path(name).resolve() if Path(name).is_file() else None


def _holds(module: ModuleType) -> list[Path]:
    """The files that define the modules, functions and classes in a module's namespace."""
    owners = (
        value if isinstance(value, ModuleType) else sys.modules.get(str(getattr(value, "__module__", "")))
        for value in [*vars(module).values()]
    )
    return [file for owner in owners if (file := _file_of(owner)) is not None]


def _imports(file: Path, experiments: Mapping[str, Path]) -> Iterator[Path]:
    """The files of all modules that a source file imports, including parent packages."""
    try:
        tree = ast.parse(file.read_bytes() if file.suffix == ".py" else b"")
    except (SyntaxError, ValueError):  # the file itself counts, but its imports are unknown
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _resolved(alias.name.split("."), None)
        elif isinstance(node, ast.ImportFrom):
            folder = [str(file.parents[node.level - 1])] if node.level else None
            base = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from _resolved([*base, alias.name], folder)
            if node.level and (package := file.parents[node.level - 1] / "__init__.py").is_file():
                yield package.resolve()
        elif isinstance(node, ast.Call) and (name := _named(node)):
            yield from [experiments[name].resolve()] if name in experiments else _resolved(name.split("."), None)


def _named(call: ast.Call) -> str:
    """The module name in a call such as import_module("name"); "" for any other call."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    first = call.args[0] if call.args else None
    named = isinstance(first, ast.Constant) and isinstance(first.value, str) and function in _BY_NAME
    return str(first.value) if named and isinstance(first, ast.Constant) else ""


def _resolved(parts: Sequence[str], folder: list[str] | None) -> Iterator[Path]:
    """The files of a, a.b and a.b.c for the name a.b.c, as far as they are modules. folder: where to find a; None:
    anywhere."""
    for part in parts:
        spec = _spec(part, folder)
        if spec is None:
            return
        if spec.origin and Path(spec.origin).is_file():
            if _installed(Path(spec.origin).resolve()):
                return
            yield Path(spec.origin).resolve()
        if spec.submodule_search_locations is None:
            return
        folder = [*spec.submodule_search_locations]


def _spec(name: str, folder: list[str] | None) -> ModuleSpec | None:
    """The spec of a module. folder: the folders of its package, in which only files are searched; None: anywhere."""
    if folder is not None:
        return PathFinder.find_spec(name, folder)
    specs = (finder.find_spec(name, None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)
