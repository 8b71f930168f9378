# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Loads experiments and presets by name or path, and lists their source files. A file's name is its only registration.

An *experiment* defines ``build(config)`` and, if it has settings, ``get_config()``. A *preset* defines
``get_config(experiment_config)``. This file imports no jax.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from jaxbench.errors import Raised, UserError, did_you_mean, present

_PREFIXES = ("jaxbench_experiment_", "jaxbench_preset_")  # the names of loaded modules start with these
_MAX_REASON = 400  # characters kept of another library's message, because some fill a page
_MAX_ANNOUNCED = 1200  # Flax lists five ways to register a list of modules

# Functions that end or replace this process without an exception, so with whatever exit code they are given
_ENDS: dict[str, Callable[..., Any]] = {"_exit": os._exit, "execv": os.execv, "execve": os.execve}
# The source files of an experiment: its own, and every module that it loads and that is not installed. Imports are read
# from the source and resolved without running anything; what a file obtains in another way, by its namespace.
_BY_NAME = ("import_module", "__import__", "load_experiment")  # functions that load a module by a name in a string
_LIBRARIES = tuple({Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_PACKAGE = Path(__file__).resolve().parent


def experiments() -> dict[str, Path]:
    """The suite's experiments by name. Files that start with an underscore are helpers."""
    return _files("experiments")


def presets() -> dict[str, Path]:
    """The suite's presets by name."""
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
    """The result of the experiment's ``build(config)``. Raises UserError, also for any exception of `build`."""
    module = load_experiment(name_or_path)
    with _LinesNamed(experiment_path(name_or_path)):
        return module.build(config)


def changed(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """A `get_config` or `tiny` based on another experiment's, with these config settings changed, by group."""
    if "batch" in settings:  # a changed batch holds on every platform
        settings.setdefault("accelerator_batch", 0)

    def get_config(*config: Any) -> Any:
        made = function(*config)
        made.update(settings)
        return made

    return get_config


def naming_lines_of(module: ModuleType) -> AbstractContextManager[None]:
    """A context in which any exception from the module's file becomes a UserError that names the line."""
    return _LinesNamed(Path(getattr(module, "__file__", None) or str(module)))


def naming_lines(
    otherwise: str = "", hint: Callable[[Exception], str] = lambda error: ""
) -> AbstractContextManager[None]:
    """A context in which an exception that passed through a line of the user's files becomes a UserError naming it.

    otherwise: the place to name if the exception passed through no such line. With "", such an exception and every
      UserError pass unchanged.
    hint: exception -> a sentence to append; "": none.
    """
    return _LinesNamed(None, otherwise, hint)


def line_of(error: BaseException) -> tuple[str, int] | None:
    """(file, line) of the last line of the user's files that an error or its cause passed through; None: none."""
    seen: BaseException | None = error
    while seen is not None:
        lines = [(f.filename, f.lineno) for f in traceback.extract_tb(seen.__traceback__) if is_theirs(f.filename)]
        if lines and lines[-1][1]:
            return lines[-1][0], lines[-1][1]
        # The exception that a traceback would show next.
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return None


def is_theirs(file: str) -> bool:
    """Whether a file is the user's: a loaded experiment, or a file below its folder that is in no library."""
    loaded = [m.__file__ for name, m in sys.modules.items() if name.startswith(_PREFIXES) and m.__file__]
    if file in loaded:
        return True
    path, libraries = Path(file), (Path(__file__).parent, Path(sys.prefix), Path(sys.base_prefix))
    if "site-packages" in path.parts or any(path.is_relative_to(folder) for folder in libraries):
        return False
    return any(path.is_relative_to(Path(module).parent) for module in loaded)


def experiment_path(name_or_path: str) -> Path:
    """The file of an experiment. Raises UserError if there is none."""
    return _find("experiment", name_or_path, experiments())


def preset_path(name_or_path: str) -> Path:
    """The file of a preset. Raises UserError if there is none."""
    return _find("preset", name_or_path, presets())


def source_files(name_or_path: str) -> list[Path]:
    """The experiment's file and every module that it loads and that is not installed. Raises UserError."""
    path = experiment_path(name_or_path)
    module = load_experiment(name_or_path)
    with _siblings_importable(path):
        return sources(path, module, experiments())


def digest(name_or_path: str) -> str:
    """The sha256 of the experiment's file. If it loads modules that are not installed, the sha256 of all their hashes.

    So an imported model counts as a part of the experiment. `sources` finds the modules. jaxbench's own
    modules are in the manifest's `source_sha256`. Raises UserError.
    """
    files = source_files(name_or_path)
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def load_preset(name_or_path: str) -> ModuleType:
    """Loads a preset by its name or from a ``.py`` file.

    Raises:
      UserError: no such preset or file, the file cannot be imported, or it defines no ``get_config``.
    """
    path = preset_path(name_or_path)
    module = _load("preset", path)
    _require(module, path, "get_config", "get_config(experiment_config)", "preset")
    return module


def describe(path: Path) -> str:
    """The first line of the file's docstring, read without running the file; "" if there is none."""
    try:
        docstring = ast.get_docstring(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError) as error:
        return f"(cannot be read: {error})"
    return docstring.splitlines()[0] if docstring else ""


def _files(kind: str) -> dict[str, Path]:
    """The Python files of a folder of the suite by name, without helpers."""
    # An installed wheel has the folders inside the package; a checkout has them next to it.
    package = Path(__file__).resolve().parent
    bundled = package / "_bundled" / kind
    folder = bundled if bundled.is_dir() else package.parent / kind
    return {path.stem: path for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")}


def _find(what: str, name_or_path: str, known: dict[str, Path]) -> Path:
    """The file that a name or a path means. Raises UserError with similar names."""
    if name_or_path in known:
        return known[name_or_path]
    path = Path(name_or_path).expanduser()
    if path.suffix != ".py" and len(path.parts) <= 1:  # a name; anything with a slash was meant as a path
        raise UserError(f"unknown {what} '{name_or_path}': {did_you_mean(name_or_path, known)}")
    if path.is_dir() or path.suffix != ".py":
        raise UserError(f"'{name_or_path}' is not a Python file: name a known {what}, or the path of a .py file.")
    if not path.is_file():
        raise UserError(f"there is no file '{name_or_path}' (relative paths start at '{Path.cwd()}').")
    return path.resolve()


def _load(what: str, path: Path) -> ModuleType:
    """Runs the file as a new module. The module's name is the same in every process of a run."""
    _guard_exits()
    name = f"jaxbench_{what}_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = present(importlib.util.spec_from_file_location(name, path))  # only None for a suffix that is not .py
    loader = present(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up here
    try:
        with _siblings_importable(path), _LinesNamed(path):
            loader.exec_module(module)
    except UserError:
        del sys.modules[name]
        raise
    return module


_guarded_pid = 0


def _guard_exits() -> None:
    """Makes `os._exit` and `os.exec*` of this process raise UserError if the user's code or a thread calls them.

    They skip every handler, so a command would end in the middle with exit code 0. Forked children may end as they
    like, and so may libraries and jaxbench itself, which replaces its process to get more threads.
    """
    global _guarded_pid
    if _guarded_pid:
        _guarded_pid = os.getpid()
        return
    _guarded_pid = os.getpid()
    for name, end in _ENDS.items():
        guarded = functools.wraps(end)(functools.partial(_end, name, end))
        for module in filter(None, (os, sys.modules.get("posix"))):
            setattr(module, name, guarded)


def _end(name: str, end: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Ends the process, unless the user's code or a thread asks for it."""
    caller = sys._getframe(1)
    while caller.f_back is not None and caller.f_globals.get("__name__") == "os":  # execvp is Python code around execv
        caller = caller.f_back
    file = caller.f_code.co_filename
    thread = caller.f_globals.get("__name__") == "threading"  # os._exit is the target of a thread
    if os.getpid() == _guarded_pid and (is_theirs(file) or thread):
        raise UserError(
            f"'{file}', line {caller.f_lineno}: os.{name} would end jaxbench in the middle of its work: raise an "
            "exception instead."
        )
    return end(*arguments, **named)


@contextmanager
def _siblings_importable(file: Path) -> Iterator[None]:
    """Lets a file import files in its folder while it loads, as a script can.

    The folder of the suite's own files goes last, so that they never hide another module, such as `profile`. That of a
    person's file goes before the installed libraries, but after the standard library: a library that the file imports
    may need `queue`, and not the file of that name in the folder.
    """
    folder = file.parent
    ours = file in (*experiments().values(), *presets().values())
    installed = (i for i, each in enumerate(sys.path) if Path(each).name in ("site-packages", "dist-packages"))
    last = len(sys.path)
    sys.path.insert(last if ours else next(installed, last), str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:  # the file may have removed it
            sys.path.remove(str(folder))


class _LinesNamed(AbstractContextManager[None]):
    """Turns any exception from the user's file into a UserError that names the line. It suppresses no exception."""

    def __init__(self, path: Path | None, otherwise: str = "", hint: Callable[[Exception], str] = lambda error: ""):
        """path: the file to name if no line is known; None: name `otherwise`, or if "" keep the exception."""
        self.otherwise = f"'{path}'" if path is not None else otherwise
        self.lines = path is None and bool(otherwise)  # a UserError raised inside a user's function gets the line, too
        self.hint = hint

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, UserError) and self.lines and (found := line_of(error)):
            raise UserError(f"'{found[0]}', line {found[1]}: {error}") from error
        if isinstance(error, (Exception, SystemExit)):
            located = with_user_line(error, self.otherwise, self.hint)
            if located is not error:
                raise located


def with_user_line(
    error: BaseException, otherwise: str = "", hint: Callable[[Exception], str] = lambda error: ""
) -> BaseException:
    """A UserError with the line of the user's files that an error passed through. Without one: `naming_lines`."""
    if isinstance(error, UserError):
        return error
    found = line_of(error)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        found = error.filename, error.lineno
    where = f"'{found[0]}', line {found[1]}" if found else otherwise
    if not where:
        return error
    more = hint(error) if isinstance(error, Exception) else ""
    message = f"{where}: {type(error).__name__}: {_reason(error)}"
    located = Raised(f"{message.rstrip('.')}. {more}" if more else message)
    located.__cause__ = error
    return located


def _reason(error: BaseException) -> str:
    """The first paragraph of an error's message, as one line, and the others if it announces them by a colon."""
    whole = error.msg if isinstance(error, SyntaxError) else str(error).strip()
    first = " ".join(whole.split("\n\n")[0].split())
    text, limit = (" ".join(whole.split()), _MAX_ANNOUNCED) if first.endswith(":") else (first, _MAX_REASON)
    return text if len(text) <= limit else f"{text[:limit]} ..."


def _require(module: ModuleType, path: Path, name: str, signature: str, what: str) -> None:
    """Raises UserError unless a loaded file defines the function `name`."""
    value = getattr(module, name, None)
    if value is None:
        raise UserError(f"'{path}' defines no {signature}: every {what} file needs one.")
    if not callable(value):
        raise UserError(f"'{path}': {name} must be a function, {signature}, but it is {type(value).__name__}.")


def sources(path: Path, module: ModuleType, experiments: Mapping[str, Path]) -> list[Path]:
    """The experiment's file, then the other files in order of their path relative to it.

    module: the loaded file. experiments: the files that `load_experiment` finds by name. Call it while files in the
    experiment's folder can be imported.
    """
    importlib.invalidate_caches()  # files may have been written since the folders were listed
    _resolved_file.cache_clear()
    found: set[Path] = set()
    ahead = [path.resolve(), *_holds(module)]
    while ahead:
        file = ahead.pop()
        if file not in found and not _installed(file):
            found.add(file)
            ahead += _imports(file, experiments)
            made = [each for each in [*sys.modules.values()] if _file_of(each) == file]
            ahead += [other for known in made for other in _holds(known)]
    others = sorted(found - {path.resolve()}, key=lambda file: os.path.relpath(file, path.parent))
    return [path.resolve(), *others]


def _installed(file: Path) -> bool:
    """Whether a file belongs to Python, to an installed library, or to jaxbench other than its experiments."""
    if file.is_relative_to(_PACKAGE):
        return not file.is_relative_to(_PACKAGE / "_bundled")
    libraries = any(file.is_relative_to(folder) for folder in _LIBRARIES)
    return libraries or bool({"site-packages", "dist-packages"} & {*file.parts})


def _file_of(module: object) -> Path | None:
    name = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return _resolved_file(name) if isinstance(name, str) else None


@functools.cache  # cleared by each call of `sources`, which looks up about a thousand modules many times
def _resolved_file(name: str) -> Path | None:
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
    # Not importlib.util.find_spec, which raises an error for a loaded module without a spec, such as __main__.
    specs = (finder.find_spec(name, None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)
