# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A floor imports only floors below it, core imports no feature, and what needs no jax imports none."""

from __future__ import annotations

import ast
import subprocess
import sys

from house.tree import ROOT, findings, parsed, python_files

# Lowest first. A room may import the rooms of lower floors and itself. A room is a first-level folder or file of the
# package, or the folder of a feature.
FLOORS = (
    {"errors", "digits", "interrupts", "native_log", "texts"},
    {"records"},
    {"catalog", "lever"},
    {"discovery", "levers", "jax_import", "ranges"},
    {"command_form"},
    {"machine"},
    {"environments"},
    {"core"},
    {"hlo"},
    {"config_values"},
    {"config"},
    {"processes"},
    {"workloads"},
    {"parallel"},
    {"measure"},
    {"cases"},
    {"features"},  # `features/__init__.py`, which finds files of features by name
    {"sweep"},
)
CORE_LINES = 1500  # of the package, that importing a file of core may load
RECORDS = {"records", "core"}  # of core, what needs no jax: test_analysis_and_report_work_without_jax imports them
# The right wing meets the left one only in files.
WINGS = {
    "statistics": {"errors", "digits", *RECORDS},
    "analysis": {"errors", "digits", "catalog", "hlo", "levers", "statistics", *RECORDS},
    "report": {
        *("errors", "digits", "texts", "command_form", "catalog", "levers", "statistics", "analysis", "features"),
        *RECORDS,
    },
}
# A feature imports all floors and wings. The features that it also imports, each with the reason:
FEATURES: dict[str, set[str]] = {
    "accept": {"doctor"},  # what the doctor finds on a host decides with its speed
    "ablations": set(),
    "audit": set(),
    "bisect": {"comparison"},  # each step of a bisection is a comparison
    "cards": {"comparison"},  # a rerun of a card is judged as any comparison of two runs
    "decode": set(),
    "comparison": {"ablations", "training"},  # two runs are compared by their waterfalls, two trainings by their curves
    "doctor": set(),
    "exports": {"comparison", "time_to_target", "training"},  # what it exports
    "fixture": {"comparison", "exports"},  # its verdicts are those of `ab`, and its file is read by other programs
    "forecast": set(),
    "launch": set(),
    "machine_profile": set(),
    "own_step": {"ablations"},  # the recipe of its ablations
    "power_limits": set(),
    "profile": set(),
    "time_to_target": {"training"},  # it runs trainings and reads their curves
    "training": set(),
    "try_model": set(),
}
# The files of features that work without jax: those with these names, and
CONCLUDING = {"analysis", "figures", "page", "sentences"}
WITHOUT_JAX = {
    "accept": {"files", "outcome", "probe", "probes", "reference_rates", "rule", "verdicts"},
    "audit": {"checks", "table", "work"},
    "cards": {"card", "gallery"},
    "comparison": {"calibration", "claims", "comparable", "comparison", "judge", "phases", "ratio", "sequential"},
    "exports": {"formats", "markdown", "measure", "mlperf", "quantities", "source", "texts", "trackers"},
    "fixture": {"measured", "plugin", "table"},
    "forecast": {"advice", "estimate", "forecasts", "network", "power", "schedule", "work"},
    "training": {"costs", "trainings"},
}
# Above the features, lowest first.
ROOF = ({"worker"}, {"suites"}, {"verbs"}, {"commandline"}, {"commands"}, {"app"}, {"api", "__main__"})
OUTSIDE = {
    "experiments": {"errors", "discovery", "workloads"},
    "configs": {"errors"},
    "templates": {"workloads", "OwnStep", "StepWorkload"},  # the last two are names of the package itself
}
NO_JAX = {
    *("errors", "digits", "interrupts", "native_log", "command_form", "discovery", "lever", "levers", "jax_import"),
    "catalog",
    *("hlo", "records", "configs", "environments", "features", *WINGS),
}
CORE_WITHOUT_JAX = {"point", "schema", "same_model", "store"}
SHAPES = "jaxtyping"  # of arrays of NumPy, too, but only type checkers may need it where jax may be missing
JAX = {"jax", "jaxlib", "flax", "optax", "orbax", SHAPES, "chex"}


def room_of(path: str) -> str:
    """jaxbench/measure/check.py -> measure; jaxbench/features/audit/x.py -> features/audit; configs/x.py -> configs."""
    parts = path.removesuffix(".py").split("/")
    return _room(parts[1:]) if parts[0] == "jaxbench" else parts[0]


def _room(parts: list[str]) -> str:
    if parts[0] == "features" and len(parts) > 1 and parts[1] != "__init__":
        return f"features/{parts[1]}"
    return parts[0]


def concludes(path: str) -> bool:
    """Whether a file of a feature works without jax."""
    stem = path.removesuffix(".py").rpartition("/")[2]
    return stem in CONCLUDING | WITHOUT_JAX.get(path.split("/")[2], set())


def without_jax(path: str) -> bool:
    room = room_of(path)
    if room == "core":
        return path.removesuffix(".py").rpartition("/")[2] in CORE_WITHOUT_JAX
    return concludes(path) if room.startswith("features/") else room in NO_JAX


def imports(path: str, text: str) -> list[str]:
    """Every module the file imports, anywhere in it, as absolute names; `from a import b` gives a.b."""
    package = path.removesuffix(".py").split("/")[:-1]
    names: list[str] = []
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            names += [".".join([*base, *([node.module] if node.module else []), a.name]) for a in node.names]
    return names


def for_type_checkers(text: str) -> list[str]:
    """The modules that no run imports: those below `if TYPE_CHECKING`."""
    ifs = (node for node in ast.walk(parsed(text)) if isinstance(node, ast.If))
    blocks = [ast.unparse(node) for node in ifs if ast.unparse(node.test) == "TYPE_CHECKING"]
    return [name for block in blocks for name in imports("", block)]


def allowed_rooms(path: str) -> set[str] | None:
    """The rooms that a file may import; None for a file of a room that is in no list."""
    room, below = room_of(path), set[str]()
    for floor in FLOORS:
        if room in floor:
            return below | {room}
        below |= floor
    if room in WINGS:
        return WINGS[room] | {room}
    if room.startswith("features/"):
        name = room.removeprefix("features/")
        if name not in FEATURES:
            return None
        known = WINGS["report"] | {"report", "hlo"} if concludes(path) else below | {*WINGS}
        return known | {room} | {f"features/{other}" for other in FEATURES[name]}
    below |= {*WINGS} | {f"features/{name}" for name in FEATURES}
    for floor in ROOF:
        if room in floor:
            return below | {room}
        below |= floor
    return OUTSIDE.get(room, set() if room == "__init__" else None)


def wrong_imports(path: str, text: str) -> list[str]:
    room, allowed = room_of(path), allowed_rooms(path)
    if allowed is None:
        return [f"{path}: room '{room}' has no floor: give it one in {__name__}.FLOORS or FEATURES"]
    wrong = []
    for name in imports(path, text):
        top, *rest = name.split(".")
        if top == "jaxbench" and rest and not rest[0].startswith("__version") and _room(rest) not in allowed:
            wrong.append(f"{path}: '{room}' must not import '{name}'")
        if rest[:1] == ["core"] and without_jax(path) and not {*rest[1:2]} <= CORE_WITHOUT_JAX:
            wrong.append(f"{path}: it does without jax and imports '{name}'")
        if top in JAX and without_jax(path) and not (top == SHAPES and name in for_type_checkers(text)):
            wrong.append(f"{path}: it does without jax and imports '{name}'")
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


def mutual_imports(texts: dict[str, str]) -> list[str]:
    """The pairs of rooms that import each other."""
    edges = {(room_of(path), room_of(other)) for path, near in import_graph(texts).items() for other in near}
    return sorted(f"{a} and {b} import each other" for a, b in edges if a < b and (b, a) in edges)


def lines_loaded(path: str, texts: dict[str, str], graph: dict[str, set[str]]) -> int:
    """The lines of the package that importing a file loads, its own included."""
    loaded, ahead = {path}, [path]
    while ahead:
        new = graph[ahead.pop()] - loaded
        loaded |= new
        ahead += new
    return sum(len(texts[each].splitlines()) for each in loaded)


def package_texts() -> dict[str, str]:
    return {path.as_posix(): (ROOT / path).read_text() for path in python_files("jaxbench")}


def test_no_two_folders_import_each_other() -> None:
    assert not mutual_imports(package_texts())


def test_a_file_of_core_loads_little_of_the_package() -> None:
    texts = package_texts()
    graph = import_graph(texts)
    loaded = {path: lines_loaded(path, texts, graph) for path in texts if room_of(path) == "core"}
    assert len(loaded) > 5
    assert not {path: lines for path, lines in loaded.items() if lines > CORE_LINES}


def test_planted_pairs_and_closures_are_found() -> None:
    clock, store, check = "jaxbench/core/clock.py", "jaxbench/core/store.py", "jaxbench/measure/check.py"
    late = "def f():\n    from jaxbench.measure import check\n"
    texts = {clock: "", store: late, check: "from jaxbench.core import clock\n"}
    assert not import_circles(texts)  # the two folders import each other, and no two files do
    assert mutual_imports(texts) == ["core and measure import each other"]
    assert not mutual_imports({clock: "", check: texts[check]})
    assert lines_loaded(store, texts, import_graph(texts)) == 3


def test_no_import_goes_round_in_a_circle() -> None:
    """Neither inside a room nor between rooms, imports inside functions among them."""
    assert not import_circles(package_texts())


def test_planted_circles_are_found() -> None:
    one, two, three = (f"jaxbench/attic/{name}.py" for name in ("one", "two", "three"))
    late = "def f():\n    from jaxbench.attic import one"
    assert len(import_circles({one: "from jaxbench.attic.two import x", two: late})) == 2
    assert len(import_circles({one: "from . import two", two: "from jaxbench.attic import three", three: late})) == 3
    assert not import_circles({one: "from jaxbench.attic import two, three", two: "import jax", three: "import jax"})


def test_floors_import_only_what_is_below() -> None:
    assert not findings(wrong_imports, python_files("jaxbench", "experiments", "configs"))


def test_planted_violations_are_found() -> None:
    assert wrong_imports("jaxbench/core/clock.py", "from jaxbench.sweep import sweep")
    assert wrong_imports("jaxbench/core/clock.py", "def f():\n    from jaxbench import sweep")
    assert wrong_imports("jaxbench/measure/deep/clock.py", "from ...sweep import sweep")
    assert wrong_imports("jaxbench/core/store.py", "import jax.numpy as jnp")
    assert wrong_imports("jaxbench/core/store.py", "from jaxbench.hlo import module")
    assert wrong_imports("jaxbench/core/clock.py", "from jaxbench.processes import group")
    assert wrong_imports("jaxbench/commandline.py", "from jaxbench.commands import run")
    assert wrong_imports("jaxbench/core/program.py", "from jaxbench.measure import bench")
    assert wrong_imports("jaxbench/measure/bench.py", "from jaxbench.features.ablations import bench")
    assert wrong_imports("jaxbench/measure/bench.py", "from jaxbench.features import ablations")
    assert wrong_imports("jaxbench/sweep/run.py", "from jaxbench.features.profile import profile")
    assert wrong_imports("jaxbench/features/training/run.py", "from jaxbench.features.time_to_target import targets")
    assert wrong_imports("jaxbench/features/training/page.py", "from jaxbench.sweep import run")
    assert wrong_imports("jaxbench/features/training/page.py", "import jax")
    assert wrong_imports("jaxbench/features/attic/x.py", "")
    assert wrong_imports("jaxbench/report/html.py", "from jaxbench.core import clock")
    assert wrong_imports("jaxbench/report/html.py", "from jaxbench.measure import check")
    assert wrong_imports("jaxbench/report/html.py", "from jaxbench.features.training import page")
    assert wrong_imports("jaxbench/analysis/scaling_laws.py", "import optax")
    shapes = "from jaxtyping import Float"
    assert wrong_imports("jaxbench/statistics/turns.py", shapes)
    assert not wrong_imports("jaxbench/statistics/turns.py", f"if TYPE_CHECKING:\n    {shapes}")
    assert wrong_imports("jaxbench/statistics/turns.py", "if TYPE_CHECKING:\n    import jax")
    assert wrong_imports("jaxbench/sweep/sweep.py", "from jaxbench.report import html")
    assert wrong_imports("experiments/cnn.py", "from jaxbench.parallel.strategies import pmap")
    assert wrong_imports("jaxbench/attic/x.py", "")
    assert not wrong_imports("jaxbench/sweep/sweep.py", "import jax\nfrom jaxbench.measure import check")
    assert not wrong_imports("jaxbench/measure/check.py", "from .proof import now\nfrom jaxbench import __version__")
    assert not wrong_imports("jaxbench/parallel/axes.py", "from jaxbench.core import program")
    assert not wrong_imports("jaxbench/features/training/run.py", "import jax\nfrom jaxbench.report import page")
    assert not wrong_imports("jaxbench/features/cards/repro.py", "from jaxbench.features.comparison import judge")


def test_analysis_and_report_work_without_jax() -> None:
    """The proof by running it: every module that does without jax is imported, and jax is not there afterwards."""
    modules = [p.with_suffix("").as_posix() for p in python_files("jaxbench") if without_jax(p.as_posix())]
    names = [m.replace("/", ".").removesuffix(".__init__") for m in modules]
    code = f"import sys, importlib\nfor n in {names}: importlib.import_module(n)\nprint({JAX} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "set()"
