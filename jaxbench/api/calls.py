# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The functions of the Python API. What measures or compiles is the command line in a child process, so the caller's
own JAX is neither needed nor changed. docs/PYTHON.md has the tour."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import platform as host
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from rich.text import Text

from jaxbench import discovery, levers
from jaxbench.api import cells, process
from jaxbench.api.load import load
from jaxbench.api.results import Compared, Forecast, Machine, Run, Trial
from jaxbench.core.store import RECORDS, write_json
from jaxbench.errors import JaxbenchError, UserError
from jaxbench.features.comparison import comparison, judge
from jaxbench.records.documents import flatten
from jaxbench.records.reading import read_json

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
    return cast(Run, load(_call("run", model, words, workdir)))


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
    return cast(Forecast, load(_call("forecast", model, _words(flags, settings), workdir)))


def machine(*, preset: Folder = "auto", workdir: Folder | None = None, share_machine: bool | None = None) -> Machine:
    """Measures this machine's peaks, launch cost and links, as `jaxbench machine` does, in under three minutes.

    Later runs in folders next to `workdir` are compared with it. Raises JaxbenchError.
    """
    _require_free_accelerator()
    words = _words({"preset": preset, "share_machine": share_machine}, {})
    return cast(Machine, load(_call("machine", None, words, workdir)))


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
        return process.call([verb, *([model] if model else []), *words], title)
    with cells.written(model, folder) as (path, variables):
        return process.call([verb, str(path), *words], title, variables)


def _folder(name: str, called: dict[str, Any]) -> Path:
    """The newest folder in results/ in which this call is unfinished, or the name of a new one."""
    name = name.removesuffix("-run")
    for mark in sorted(Path("results").glob(f"{name}-*/{CALL}"), reverse=True):  # names end in the time
        with contextlib.suppress(UserError):  # a damaged mark is that of another call
            if read_json(mark, dict, "") == called:
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
        pickled = cells.Pickled(model) if model is not None else None
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
