# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A floor imports only floors below it, and what needs no jax imports none."""

from __future__ import annotations

import ast
import subprocess
import sys

from house.tree import ROOT, findings, python_files

# Lowest first. A room may import the rooms that stand before it in this list, and itself.
FLOORS = (
    {"errors", "digits", "native_log"},
    {"catalog", "records"},
    {"hlo"},
    {"imported"},
    {"discovery", "levers"},
    {"command_form"},
    {"config_fields"},
    {"config_targets"},
    {"config"},
    {"machine"},
    {"processes"},
    {"workloads"},
    {"parallel"},
    {"input"},
    {"measure"},
    {"runner"},
    {"training"},
)
# The right wing meets the left one only in files.
WINGS = {
    "statistics": {"errors", "digits", "records"},
    "analysis": {"errors", "digits", "catalog", "records", "levers", "statistics"},
    # What a program compiled elsewhere would do: it reads the compiled text, and times that were measured.
    "forecast": {"errors", "digits", "catalog", "records", "statistics", "analysis", "hlo"},
    "verdicts": {"errors", "catalog", "records", "statistics", "analysis"},
    "report": {
        "errors",
        "digits",
        "command_form",
        "catalog",
        "records",
        "levers",
        "statistics",
        "analysis",
        "verdicts",
    },
    # A card is read by the right wing and measured again by the left one.
    "cards": {
        "errors",
        "catalog",
        "records",
        "discovery",
        "config",
        "machine",
        "runner",
        "statistics",
        "analysis",
        "verdicts",
        "report",
    },
    # It starts the same command elsewhere, and knows nothing of what that measures.
    "launch": {"errors", "command_form", "records", "machine"},
    # It examines the machine, and nothing is built on it.
    "doctor": {
        "errors",
        "digits",
        "command_form",
        "records",
        "machine",
        "statistics",
        "analysis",
        "report",
    },
}
ROOF = {
    "app",
    "ab",
    "advise_command",
    "commandline",
    "commands",
    "forecast_command",
    "forecast_memory",
    "machine_command",
    "other_commit",
    "suites",
    "__main__",
}
OUTSIDE = {
    "experiments": {"errors", "discovery", "workloads"},
    "configs": {"errors"},
    "templates": {"workloads", "OwnStep", "StepWorkload"},  # the last two are names of the package itself
}
NO_JAX = {
    "errors",
    "catalog",
    "records",
    "discovery",
    "levers",
    "statistics",
    "analysis",
    "verdicts",
    "report",
    "configs",
}
NO_JAX |= {"hlo", "imported", "forecast", "digits", "command_form"}
JAX = {"jax", "jaxlib", "flax", "optax", "orbax", "jaxtyping", "chex"}


def room_of(path: str) -> str:
    """jaxbench/measure/clock.py -> measure; jaxbench/errors.py -> errors; configs/auto.py -> configs."""
    parts = path.removesuffix(".py").split("/")
    return parts[1] if parts[0] == "jaxbench" else parts[0]


def imports(path: str, text: str) -> list[str]:
    """Every module the file imports, anywhere in it, as absolute names; `from a import b` gives a.b."""
    package = path.removesuffix(".py").split("/")[:-1]
    names: list[str] = []
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            names += [".".join([*base, *([node.module] if node.module else []), a.name]) for a in node.names]
    return names


def allowed_rooms(room: str) -> set[str] | None:
    """The rooms this one may import; None for a room that is in no list."""
    below: set[str] = set()
    for floor in FLOORS:
        if room in floor:
            return below | {room}
        below |= floor
    if room in WINGS:
        return WINGS[room] | {room}
    if room in ROOF:
        return below | set(WINGS) | ROOF
    return OUTSIDE.get(room, set() if room == "__init__" else None)


def wrong_imports(path: str, text: str) -> list[str]:
    room = room_of(path)
    allowed = allowed_rooms(room)
    if allowed is None:
        return [f"{path}: room '{room}' has no floor: give it one in {__name__}.FLOORS"]
    wrong = []
    for name in imports(path, text):
        top, *rest = name.split(".")
        if top == "jaxbench" and rest and not rest[0].startswith("__version") and rest[0] not in allowed:
            wrong.append(f"{path}: '{room}' must not import '{name}'")
        if top in JAX and room in NO_JAX:
            wrong.append(f"{path}: '{room}' does without jax and imports '{name}'")
    return wrong


def import_graph(texts: dict[str, str]) -> dict[str, set[str]]:
    """By path of a file, the paths of the files of `texts` that it imports, at its top or inside a function."""
    paths = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in texts}
    graph: dict[str, set[str]] = {}
    for path, text in texts.items():
        graph[path] = set()
        for name in imports(path, text):  # of a.b.c the module is a.b.c, or a.b that defines c
            known = next((paths[n] for n in (name, name.rpartition(".")[0]) if n in paths), path)
            graph[path] |= {known} - {path}
    return graph


def import_circles(texts: dict[str, str]) -> list[str]:
    """One sentence for each import that lies on a circle: the module that it names imports its importer again."""
    graph = import_graph(texts)
    reached: dict[str, set[str]] = {path: set() for path in graph}
    for path, found in reached.items():
        ahead = [path]
        while ahead:
            new = graph[ahead.pop()] - found
            found |= new
            ahead += new
    return [
        f"{path} imports {other}, which imports it again"
        for path, near in sorted(graph.items())
        for other in sorted(near)
        if path in reached[other]
    ]


def test_no_import_goes_round_in_a_circle() -> None:
    """Neither inside a room nor between rooms, imports inside functions among them."""
    assert not import_circles({path.as_posix(): (ROOT / path).read_text() for path in python_files("jaxbench")})


def test_planted_circles_are_found() -> None:
    one, two, three = (f"jaxbench/attic/{name}.py" for name in ("one", "two", "three"))
    late = "def f():\n    from jaxbench.attic import one"
    assert len(import_circles({one: "from jaxbench.attic.two import x", two: late})) == 2
    assert len(import_circles({one: "from . import two", two: "from jaxbench.attic import three", three: late})) == 3
    assert not import_circles({one: "from jaxbench.attic import two, three", two: "import jax", three: "import jax"})


def test_floors_import_only_what_is_below() -> None:
    assert not findings(wrong_imports, python_files("jaxbench", "experiments", "configs"))


def test_planted_violations_are_found() -> None:
    assert wrong_imports("jaxbench/measure/clock.py", "from jaxbench.runner import sweep")
    assert wrong_imports("jaxbench/measure/clock.py", "def f():\n    from jaxbench import runner")
    assert wrong_imports("jaxbench/measure/deep/clock.py", "from ...runner import sweep")
    assert wrong_imports("jaxbench/records/store.py", "import jax.numpy as jnp")
    assert wrong_imports("jaxbench/records/store.py", "from jaxbench.catalog import hardware")
    assert wrong_imports("jaxbench/report/html.py", "from jaxbench.measure import clock")
    assert wrong_imports("jaxbench/analysis/scaling_laws.py", "import optax")
    assert wrong_imports("jaxbench/runner/sweep.py", "from jaxbench.report import html")
    assert wrong_imports("experiments/cnn.py", "from jaxbench.parallel.strategies import pmap")
    assert wrong_imports("jaxbench/attic/x.py", "")
    assert not wrong_imports("jaxbench/runner/sweep.py", "import jax\nfrom jaxbench.measure import clock")
    assert not wrong_imports("jaxbench/measure/check.py", "from .clock import now\nfrom jaxbench import __version__")


def test_analysis_and_report_work_without_jax() -> None:
    """The proof by running it: every module of the jax-free rooms is imported, and jax is not there afterwards."""
    rooms = sorted(NO_JAX - {"configs"})
    modules = [p.with_suffix("").as_posix() for p in python_files("jaxbench") if room_of(p.as_posix()) in rooms]
    names = [m.replace("/", ".").removesuffix(".__init__") for m in modules]
    code = f"import sys, importlib\nfor n in {names}: importlib.import_module(n)\nprint({JAX} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "set()"
