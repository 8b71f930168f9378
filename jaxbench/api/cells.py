# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A build function of a notebook becomes an experiment file, so that worker processes can load it like any other.

`written` puts three kinds of file into the run folder: NAME.py, the experiment, which calls `read`; the source of each
cell with code of the function, for error messages and for readers of the run; and NAME.pickle, the function itself.
A process unpickles a file only if its SHA-256 is the one that the calling process put into the environment, and the
file is removed when the call ends. So nothing that came from elsewhere is ever unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import linecache
import os
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import cloudpickle

from jaxbench.api import nodes
from jaxbench.errors import JaxbenchError, UserError

DIGEST = "JAXBENCH_FUNCTION_SHA256"  # the environment variable
PARTS = ("build", "get_config", "tiny", "for_training", "grow")  # what an experiment may define
_TEXT = '''"""{name}: a build function of a notebook. The cells with its code are in this folder."""

from jaxbench.api import cells

globals().update(cells.read(__file__))
# SHA-256 of the functions: {sha256}
'''


class Pickled(cloudpickle.Pickler):
    """A build function, or the functions of a module. Those of `__main__` are pickled with their code.

    name: of the experiment. data: the pickled functions. sha256: of the functions; it stays the same when their cell is
    run again, where pickle gives each class a new id. cells: the text of each cell with code, by the path of its copy,
    to which the pickled code refers. labels: what the notebook calls each of these cells, by the same path.
    """

    def __init__(self, model: Any, folder: Path = Path()):
        """folder: of the copies. Raises UserError if the model is no function, or cannot be pickled."""
        file = io.BytesIO()
        super().__init__(file)
        self._folder, self.cells, self.labels = folder, dict[str, str](), dict[str, str]()
        module = isinstance(model, ModuleType)
        # Of a module only what an experiment may define; functions bring along what they refer to.
        parts = {part: vars(model)[part] for part in PARTS if part in vars(model)} if module else {"build": model}
        if not callable(parts.get("build")):
            raise UserError(
                f"{model!r} has no build(config): give a name such as 'cnn', the path of a .py file, or a function."
            )
        name = getattr(model, "__name__", "").rpartition(".")[2]
        self.name = name if name.isidentifier() else "model"
        try:
            self.dump(parts)
        except (TypeError, pickle.PicklingError) as error:
            raise UserError(
                f"{self.name} cannot be sent to the worker processes ({error}): create what it needs inside it."
            ) from error
        self.data = file.getvalue()
        # Without the 32 hexadecimal digits of cloudpickle's ids for classes.
        self.sha256 = hashlib.sha256(re.sub(rb"[0-9a-f]{32}", b"", self.data)).hexdigest()

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, CodeType) and (text := "".join(linecache.getlines(value.co_filename))):
            copy = str(self._folder / f"cell-{hashlib.sha256(text.encode()).hexdigest()[:8]}.py")
            self.cells[copy], self.labels[copy] = text, _label(value.co_filename)
            return _in_file, (copy, self.dispatch_table[CodeType](value.replace(co_filename=copy))[1])
        if isinstance(value, ModuleType) and sys.modules.get(value.__name__) is value:
            return importlib.import_module, (value.__name__,)  # cloudpickle refuses subclasses, such as jaxbench itself
        reduced = super().reducer_override(value)
        # Of a class that is pickled by its code, JAX's registry in this process has more than the code says.
        if isinstance(value, type) and isinstance(reduced, tuple) and (how := nodes.registered(value)) is not None:
            return nodes.reduced(reduced, how)
        return reduced


def _in_file(file: str, code: tuple[Any, ...]) -> CodeType:
    return CodeType(*code).replace(co_filename=file)  # cloudpickle does not keep the name in all versions


def _label(file: str) -> str:
    """What people call the source of a cell: "Cell In[3]", or the path of a script."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    found = shell.compile.format_code_name(file) if shell is not None else None
    return " ".join(found) if found else f"'{file}'"


@contextlib.contextmanager
def written(model: Any, folder: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Writes the experiment of a function into `folder`. At the end, only the pickled function is removed.

    Gives its path, and the environment variable with which processes may unpickle it. Raises UserError as `Pickled`
    does. A JaxbenchError from the block then names the cells as the notebook does.
    """
    pickled = Pickled(model, folder.resolve())
    file = folder.resolve() / f"{pickled.name}.py"
    for path, text in pickled.cells.items():
        Path(path).write_text(text, encoding="utf-8")
    # Pickled anew without a folder, so that the hash, and with it the experiment's, does not depend on the run folder.
    file.write_text(_TEXT.format(name=pickled.name, sha256=Pickled(model).sha256), encoding="utf-8")
    # The folders of imports come first: they must be known before functions of their modules are unpickled.
    data = json.dumps([os.path.abspath(each) for each in sys.path]).encode() + b"\n" + pickled.data
    private = file.with_suffix(".pickle")
    private.unlink(missing_ok=True)  # of a call that was killed
    try:
        # Created for this user alone, and only if nobody has put a file or a link there meanwhile.
        with open(os.open(private, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as out:
            out.write(data)
        yield file, {DIGEST: hashlib.sha256(data).hexdigest()}
    except JaxbenchError as error:
        sentence = str(error)
        for path, label in pickled.labels.items():
            sentence = sentence.replace(f"'{path}'", label)
        raise JaxbenchError(sentence) from None
    finally:
        private.unlink(missing_ok=True)


def read(file: str) -> dict[str, Any]:
    """The names that an experiment file of `written` defines: its functions, and the modules that they use, so that
    those count as a part of the experiment. Raises UserError outside the call that wrote the file."""
    pickled = Path(file).with_suffix(".pickle")
    data = pickled.read_bytes() if pickled.is_file() else b""
    if hashlib.sha256(data).hexdigest() != os.environ.get(DIGEST):
        raise UserError(f"'{file}' is a build function of a notebook: call jaxbench.run() there again to measure it.")
    folders, _, functions = data.partition(b"\n")
    sys.path += [folder for folder in json.loads(folders) if folder not in sys.path]
    parts: dict[str, Any] = pickle.loads(functions)
    scope = getattr(parts["build"], "__globals__", {})
    return {**{name: value for name, value in scope.items() if isinstance(value, ModuleType)}, **parts}
