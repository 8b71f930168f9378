# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The functions of the Python API. What measures or compiles is the command line in a child process, so the caller's
own JAX is neither needed nor changed. docs/PYTHON.md has the tour.

A build function of a notebook becomes an experiment file, so that worker processes can load it like any other.

`written` puts three kinds of file into the run folder: NAME.py, the experiment, which calls `read`; the source of each
cell with code of the function, for error messages and for readers of the run; and NAME.pickle, the function itself. A
process unpickles a file only if its SHA-256 is the one that the calling process put into the environment, and the file
is removed when the call ends. So nothing that came from elsewhere is ever unpickled.

Both sides of the child process are here. It writes as to a terminal. A notebook shows the last lines of that terminal
while the child runs, and folds them when it ends. Anywhere else, what the child writes goes to sys.stdout. The child
stops, as at Ctrl-C, when its stdin ends: when the caller is interrupted, and also when it is killed. So no measurement
outlives its notebook.
"""

from __future__ import annotations

import codecs
import contextlib
import datetime
import hashlib
import html
import importlib
import io
import json
import linecache
import os
import pickle
import platform as host
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, cast

import cloudpickle
from rich.console import Console
from rich.text import Text

from jaxbench import discovery, levers
from jaxbench.api import results
from jaxbench.api.results import Compared, Forecast, Machine, Run, Trial
from jaxbench.command_form import FORM
from jaxbench.core.store import RECORDS, write_json
from jaxbench.errors import JaxbenchError, UserError
from jaxbench.features.comparison import comparison, judge
from jaxbench.records.documents import flatten

_REFUSED = 2  # the exit code after bad input
_CRASHED = 70  # after an exception that the command line does not explain; EX_SOFTWARE of sysexits.h
_EVERY_S = 0.5  # between two updates of a notebook's display: they take time on a core that may be measured
_LINES, _WIDTH = 30, 100  # of the terminal that the child writes to
_STOP_S = 60.0  # how long an interrupted child may take to stop
_TOKEN = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])|(\n)|\r|([^\x1b\n\r]+)")


def call(words: Sequence[str], title: str, variables: Mapping[str, str] | None = None) -> tuple[int, Text]:
    """Runs `jaxbench WORDS` in a child process and shows its progress. Returns its exit code, 0 or 1, and its output.

    title: of the folded progress in a notebook. variables: more environment variables.

    Raises:
      JaxbenchError: the command refused its input, with the sentence that the command line prints, or it crashed.
      KeyboardInterrupt: this process was interrupted. The child has stopped and kept what it measured.
    """
    notebook = Console().is_jupyter
    # The child writes lines of _WIDTH. A narrower terminal would wrap them, and its cursor movements would go wrong.
    live = notebook or (sys.stdout.isatty() and shutil.get_terminal_size().columns >= _WIDTH)
    colours = {"FORCE_COLOR": "1", "TERM": "xterm-256color"} if live else {}
    unset = (FORM, "MPLBACKEND")  # messages in the form of this API; a kernel's backend draws into the notebook
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"PYTHONUTF8": "1", "COLUMNS": str(_WIDTH), "LINES": str(_LINES), **colours, **(variables or {})}
    view = _View(title, notebook=notebook)
    with tempfile.TemporaryFile() as errors:  # not a pipe, which would fill up and block the child
        child = subprocess.Popen(
            # -P: the caller's folder may hold a file named like a module of ours.
            [sys.executable, "-P", "-m", "jaxbench.api.calls", *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment,
            start_new_session=True,  # an interrupt of the kernel's process group must reach it once, and through stdin
        )  # fmt: skip
        assert child.stdin is not None and child.stdout is not None
        try:
            # Incremental, because a read may end within a character.
            decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
            while data := os.read(child.stdout.fileno(), 1 << 16):
                view.write(decode(data))
            code = child.wait()
        except KeyboardInterrupt:
            child.stdin.close()  # which stops the child as Ctrl-C would, so that it keeps what it measured
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_STOP_S)
            raise
        finally:
            child.kill()  # no effect if it has ended
            child.wait()
            child.stdin.close()
            child.stdout.close()
            view.end()
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    if code == _REFUSED and (sentences := re.findall("^jaxbench: (.*)", said, re.MULTILINE)):
        raise JaxbenchError(sentences[-1])
    if code not in (0, 1):
        raise JaxbenchError(f"jaxbench {words[0]} ended with exit code {code}. {said[-4000:]}".strip())
    return code, view.screen.text()


class Screen:
    """The lines of a terminal, from the text that a program with a live display writes to it."""

    def __init__(self) -> None:
        self._lines, self._row, self._rest = [""], 0, ""

    def feed(self, text: str) -> None:
        """Takes text with the escape sequences that rich writes: colours, cursor up, erase line."""
        text = self._rest + text
        cut = text.rfind("\x1b")  # a read may end within an escape sequence, which then waits for the rest
        self._rest = text[cut:] if cut >= 0 and not _TOKEN.match(text, cut) else ""
        for match in _TOKEN.finditer(text.removesuffix(self._rest)):
            number, command, newline, written = match.groups()
            if newline:
                self._row += 1
                self._lines += [""] * (self._row == len(self._lines))
            elif command == "A":
                self._row = max(0, self._row - int(number or 1))
            elif command == "K":
                self._lines[self._row] = ""
            elif written or command == "m":
                self._lines[self._row] += match[0]

    def text(self, last: int = 0) -> Text:
        """What the terminal shows. last: only this number of lines, from the last one that is not empty."""
        lines = "\n".join(self._lines).rstrip().split("\n")
        return Text.from_ansi("\n".join(lines[-last:]), no_wrap=True)


class _View:
    """Shows a screen in the output of the notebook's cell. Elsewhere, what is written goes to sys.stdout."""

    def __init__(self, title: str, *, notebook: bool) -> None:
        self.screen, self._title, self._handle, self._folded = Screen(), title, None, False
        self._begun, self._shown = time.monotonic(), 0.0
        if notebook:
            from IPython.display import display

            self._handle = display(self, display_id=True)

    def write(self, text: str) -> None:
        self.screen.feed(text)
        if self._handle is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        elif time.monotonic() - self._shown >= _EVERY_S:
            self._shown = time.monotonic()
            self._handle.update(self)

    def end(self) -> None:
        if self._handle is not None:
            self._title, self._folded = f"{self._title}: {time.monotonic() - self._begun:.0f} s", True
            self._handle.update(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The last lines of the screen; in the end, the title, which unfolds to all of them."""
        if not self._folded:
            return self.screen.text(last=_LINES)._repr_mimebundle_((), ())
        text, title = self.screen.text()._repr_mimebundle_((), ())["text/html"], html.escape(self._title)
        return {"text/html": f"<details><summary>{title}</summary>{text}</details>", "text/plain": self._title}


def _stop_with_caller() -> None:
    while os.read(0, 1):  # not sys.stdin: its lock would be held when the interpreter shuts down
        pass
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    traceback.print_exception(kind, error, trace)
    sys.stderr.flush()
    os._exit(_CRASHED)  # Python's own code, 1, means that points failed


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a caller in the background may ignore it
    sys.excepthook = _crash
    threading.Thread(target=_stop_with_caller, daemon=True).start()
    from jaxbench import app

    app.main()


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
        return super().reducer_override(value)


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


Model = str | os.PathLike[str] | ModuleType | Callable[[Any], Any]
Names = str | int | Sequence[str | int] | None
Folder = str | os.PathLike[str]
CALL = ".call.json"  # in a folder while its call is unfinished: what was called


def run(
    model: Model,
    *,
    preset: Folder = "auto",
    strategy: Names = None,
    devices: Names = None,
    scaling: Names = None,
    workdir: Folder | None = None,
    **settings: Any,
) -> Run:
    """Measures how an experiment scales, and checks every result, as `jaxbench run` does.

    Interrupting it loses nothing: the same call continues, with what is missing. A finished call measures anew, unless
    `workdir` names its folder.

    Args:
      model: the name of an experiment ("cnn"), the path of a .py file, a module, or a function build(config).
      preset: how much to measure: auto, smoke, paper, or the path of a .py file.
      strategy: one or several strategies, such as ["jit_auto", "fsdp"]; "all".
      devices: device counts, such as [1, 2]; "auto:4" for at most 4.
      scaling: "strong" (the global batch stays the same), "weak" (the per-device batch stays the same), or both.
      workdir: the run folder; None: a new one in results/.
      settings: fields of the config, in groups: batch=64, measure={"rounds": 10}, lever={"precision": "bfloat16"}. A
        list has several values. share_machine=True measures although another measurement runs.

    Returns:
      The run, even if some of its points failed: see `Run.ok` and `Run.shortfalls`.

    Raises:
      JaxbenchError: bad input, with the sentence of the command line, or this process holds the accelerator.
    """
    flags = {"preset": preset, "share_machine": settings.pop("share_machine", None)}  # a flag, and no field of a config
    words = _words(flags, {"strategy": strategy, "mesh.devices": devices, "scaling": scaling, **settings})
    _require_free_accelerator(words)
    return cast(Run, results.load(_call("run", model, words, workdir)))


def compare(
    a: Run | Folder, b: Run | Folder, *, metric: str = "step_s", margin: float = 0.02, across: Sequence[str] = ()
) -> Compared:
    """Judges run `b` against run `a`, as `jaxbench compare` does.

    Args:
      metric: step_s (seconds per step) or throughput (examples per second).
      margin: the relative difference that counts as none, between 0 and 1.
      across: the fields of the config that may differ, such as ["strategy"].

    Raises JaxbenchError: the runs are not comparable, or a value is illegal.
    """
    left, right = (Path(cast(Folder, each.path if isinstance(each, Run) else each)) for each in (a, b))
    by, margin = judge.metric_named(metric), judge.margin_of(margin)
    return Compared(comparison.compare(left, right, by, margin=margin, across=across))


def try_model(model: Model, *, preset: Folder = "auto", **settings: Any) -> Trial:
    """Describes a model and checks which strategies train it correctly, without timing, as `jaxbench try` does.

    It uses fake CPU devices, so it works while this process holds an accelerator. model, settings: as for `run`.
    Raises JaxbenchError for bad input.
    """
    with tempfile.TemporaryDirectory() as folder:
        code, text = _done("try", _file_of(model), _words({"preset": preset}, settings), Path(folder))
    return Trial(code == 0, text)


def forecast(
    model: Model,
    targets: str | Sequence[str] | None = None,
    *,
    source: Run | Folder | None = None,
    preset: Folder = "auto",
    workdir: Folder | None = None,
    **settings: Any,
) -> Forecast:
    """The memory of a step and a range of its time on absent hardware, as `jaxbench forecast` tells. Runs no step.

    Args:
      model, preset, workdir, settings: as for `run`. Also counts=[1, 8, 64] or "1..1024", device counts to extrapolate
        to; depths=[2, 4], numbers of blocks to compile; link="1gbit", between hosts; card, the machine.json of a
        machine with measured links.
      targets: such as "v5e:16x16" or ["h100:8", "v5e:4x4"]. Their compilers are the extras target-tpu and target-cuda.
      source: instead of targets, a measured run to start from, with counts and a link or a card.

    Raises:
      JaxbenchError: bad input, or a compiler is not installed.
    """
    flags = {name: settings.pop(name, None) for name in ("counts", "depths", "link", "card")}
    flags |= {"preset": preset, "targets": targets, "from": source.path if isinstance(source, Run) else source}
    return cast(Forecast, results.load(_call("forecast", model, _words(flags, settings), workdir)))


def machine(*, preset: Folder = "auto", workdir: Folder | None = None, share_machine: bool | None = None) -> Machine:
    """Measures this machine's peaks, launch cost and links, as `jaxbench machine` does, in under three minutes.

    Later runs in folders next to `workdir` are compared with it. Raises JaxbenchError.
    """
    _require_free_accelerator()
    words = _words({"preset": preset, "share_machine": share_machine}, {})
    return cast(Machine, results.load(_call("machine", None, words, workdir)))


def _call(verb: str, model: Model | None, words: list[str], workdir: Folder | None) -> Path:
    """Runs a verb that leaves a folder. Returns the folder. Raises JaxbenchError, and then leaves no folder in which
    nothing was measured; KeyboardInterrupt, saying how to continue."""
    model = _file_of(model)
    name, sha256 = _identity(model)
    # The same words and source on the same host are the same call, which continues its unfinished folder.
    called = {"verb": verb, "words": words, "model": sha256, "host": host.node()}
    folder = Path(workdir) if workdir is not None else _folder("-".join(filter(None, (name, verb))), called)
    fresh = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if workdir is None:  # a folder with a name is found by its name
        write_json(folder / CALL, called)
    try:
        _done(verb, model, [f"--workdir={folder}", *words], folder)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Finished measurements are kept in '{folder}': the same call continues.") from None
    except JaxbenchError:
        if fresh and not any(folder.rglob(RECORDS)):  # such as after a misspelled setting
            shutil.rmtree(folder)
        raise
    (folder / CALL).unlink(missing_ok=True)
    return folder


def _done(verb: str, model: Model | None, words: list[str], folder: Path) -> tuple[int, Text]:
    """Runs a command. A function's experiment file is written into `folder`."""
    title = " ".join(filter(None, ("jaxbench", verb, _identity(model)[0])))
    if model is None or isinstance(model, str):
        return call([verb, *([model] if model else []), *words], title)
    with written(model, folder) as (path, variables):
        return call([verb, str(path), *words], title, variables)


def _folder(name: str, called: dict[str, Any]) -> Path:
    """The newest folder in results/ in which this call is unfinished, or the name of a new one."""
    name = name.removesuffix("-run")
    for mark in sorted(Path("results").glob(f"{name}-*/{CALL}"), reverse=True):  # names end in the time
        if json.loads(mark.read_text()) == called:
            return mark.parent
    return Path("results") / f"{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def _file_of(model: Model | None) -> Model | None:
    """The name or path of a model that has one, as for the command line; other models unchanged."""
    file = getattr(model, "__file__", None)
    if isinstance(model, os.PathLike) or (isinstance(model, ModuleType) and file and "." not in model.__name__):
        return os.fspath(file or model)
    return model


def _identity(model: Model | None) -> tuple[str, str]:
    """(the name of the experiment, the SHA-256 of its source); "" where there is none."""
    if not isinstance(model, str):
        pickled = Pickled(model) if model is not None else None
        return (pickled.name, pickled.sha256) if pickled else ("", "")
    path = discovery.experiments().get(model, Path(model))
    return path.stem, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _words(flags: dict[str, Any], settings: dict[str, Any]) -> list[str]:
    """The flags and --config settings of a command. None: not given. A list has several values."""
    given = {f"--{name}": value for name, value in flags.items()}
    given |= {f"--config.{name}": value for name, value in flatten(settings).items()}
    separators = {f"--config.lever.{name}": lever.separator for name, lever in levers.LEVERS.items()}
    words = []
    for name, value in given.items():
        several = isinstance(value, list | tuple | range)
        text = separators.get(name, ",").join(map(str, value)) if several else str(value)
        words += [] if value is None else [f"{name}={text.lower() if isinstance(value, bool) else text}"]
    return words


def _require_free_accelerator(words: Sequence[str] = ()) -> None:
    """Raises JaxbenchError if the JAX of this process has started an accelerator, so that workers cannot use it."""
    # Not imported here: the caller may never use JAX, and asking JAX for its devices would start them.
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or "--config.mesh.platform=cpu" in words or not bridge.backends_are_initialized():
        return
    if held := [name for name in bridge.backends() if name not in ("cpu", "interpreter")]:
        raise JaxbenchError(
            f"this process already holds the {held[0]}, because JAX has started it here: restart the kernel, and call "
            "jaxbench before JAX computes, or first call jax.config.update('jax_platforms', 'cpu')."
        )
