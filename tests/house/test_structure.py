# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The structure of the package in numbers, which only go down: a change that lowers a count lowers its number here.

No test counts lines of the package or files: a limit on those makes code denser, not simpler.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from house.test_floors import import_graph
from house.tree import ROOT, parsed, python_files

Texts = dict[str, str]  # the sources of the package, by path
Function = (ast.FunctionDef, ast.AsyncFunctionDef)

# Classes with more than 15 methods, and how many. The aim is none.
LARGE_CLASSES = {
    "analysis/points.py:MeasuredPoint": 20,
    "report/run_report.py:RunReport": 28,
}
MAX_METHODS, MAX_PARAMETERS = 15, 8
MAX_FIGURE = 35  # lines of a figure's function, with its caption
WORDS = 5  # a text with as many words is a sentence or a clause of one
LIMITS = {
    "classes above each other": 3,  # the aim is 1
    "functions with more than 8 positional parameters": 0,
    "uses of Any and its aliases": 734,  # the aim was 900
    "files with a constant after the first definition": 20,
    "marks that keep the formatter away": 0,
    "figures that are no short specification": 16,  # of 54; the aim was 24
    "functions that compose English": 119,
}


def folder(path: str) -> str:
    """jaxbench/core/clock.py -> core; jaxbench/features/cards/page.py -> features/cards; jaxbench/app.py -> app."""
    parts = path.removesuffix(".py").split("/")[1:]
    return "/".join(parts[:2]) if parts[0] == "features" and len(parts) > 2 else parts[0]


def folders_both_ways(texts: Texts) -> set[tuple[str, str]]:
    """Imports inside functions and for types count. The package itself, `jaxbench/__init__.py`, is no folder."""
    arrows = {
        (folder(path), folder(other))
        for path, near in import_graph(texts).items()
        for other in near
        if other != "jaxbench/__init__.py"
    }
    return {(one, other) for one, other in arrows if one < other and (other, one) in arrows}


def classes(texts: Texts) -> Iterator[tuple[str, ast.ClassDef]]:
    for path, text in texts.items():
        for node in ast.walk(parsed(text)):
            if isinstance(node, ast.ClassDef):
                yield path, node


def large_classes(texts: Texts) -> dict[str, int]:
    sizes = {
        f"{path.removeprefix('jaxbench/')}:{node.name}": sum(isinstance(each, Function) for each in node.body)
        for path, node in classes(texts)
    }
    return {name: size for name, size in sizes.items() if size > MAX_METHODS}


def inheritance(texts: Texts) -> int:
    """The longest chain of classes of the package: 0 if none is the base of another."""
    bases = {node.name: [ast.unparse(base).split(".")[-1] for base in node.bases] for _, node in classes(texts)}

    def depth(name: str, seen: tuple[str, ...] = ()) -> int:
        above = [base for base in bases[name] if base in bases and base not in (*seen, name)]
        return max((1 + depth(base, (*seen, name)) for base in above), default=0)

    return max(map(depth, bases), default=0)


def functions(texts: Texts) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for text in texts.values() for node in ast.walk(parsed(text)) if isinstance(node, Function))


def many_parameters(texts: Texts) -> int:
    """Those that must be named do not count: a caller sees which is which."""
    return sum(len(each.args.posonlyargs + each.args.args) > MAX_PARAMETERS for each in functions(texts))


def anys(texts: Texts) -> int:
    """Uses of Any, and of names that a module gives it (`PyTree = Any`), in all files."""
    aliases = {"Any"}
    for text in texts.values():
        for node in parsed(text).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == "Any":
                aliases |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    names = (node for text in texts.values() for node in ast.walk(parsed(text)) if isinstance(node, ast.Name))
    return sum(name.id in aliases for name in names)


def late_constants(texts: Texts) -> int:
    return sum(has_late_constant(parsed(text)) for text in texts.values())


def has_late_constant(tree: ast.Module) -> bool:
    defined = False
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined = True
        elif defined and isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if all(isinstance(target, ast.Name) and target.id.isupper() for target in targets):
                return True
    return False


def unformatted(texts: Texts) -> int:
    return sum(text.count("# fmt: " + word) for text in texts.values() for word in ("skip", "off"))


def drawn_by_hand(texts: Texts) -> int:
    """Figures with a function that is long, or that does not return its figure as data (a `Chart`)."""
    figures = [
        each
        for each in functions(texts)
        if any(ast.unparse(decorator).startswith("plot(") for decorator in each.decorator_list)
    ]
    return sum(
        ast.unparse(each.returns or ast.Constant(None)).removesuffix(" | None").split(".")[-1] != "Chart"
        or (each.end_lineno or 0) - each.lineno >= MAX_FIGURE
        for each in figures
    )


def composing(texts: Texts) -> int:
    """Functions that return a sentence in their own words, instead of a row with a verdict and a reason of a table."""
    return sum(
        any(
            isinstance(text, ast.Constant)
            and isinstance(text.value, str)
            and len(re.findall(r"[A-Za-z]{2,}", text.value)) >= WORDS
            for node in ast.walk(each)
            if isinstance(node, ast.Return) and node.value is not None
            for text in ast.walk(node.value)
        )
        for each in functions(texts)
    )


COUNTS = {
    "classes above each other": inheritance,
    "functions with more than 8 positional parameters": many_parameters,
    "uses of Any and its aliases": anys,
    "files with a constant after the first definition": late_constants,
    "marks that keep the formatter away": unformatted,
    "figures that are no short specification": drawn_by_hand,
    "functions that compose English": composing,
}


def verdict(count: int, limit: int) -> str:
    """Why a count is wrong.

    A limit of 20 or more may stand up to a twentieth above its count, so that two branches that lower it can be merged.
    """
    if count > limit:
        return f"{count}, at most {limit} are allowed: this number goes down, never up"
    return f"{count}, so lower its limit of {limit}" if count < limit - limit // 20 else ""


@pytest.fixture(scope="module")
def package() -> Texts:
    return {path.as_posix(): (ROOT / path).read_text() for path in python_files("jaxbench")}


def test_no_two_folders_import_each_other(package: Texts) -> None:
    assert not folders_both_ways(package)


def test_large_classes_are_those_of_the_list_and_no_larger(package: Texts) -> None:
    assert large_classes(package) == LARGE_CLASSES, "a class has at most 15 methods; those of the list only shrink"


@pytest.mark.parametrize("name", COUNTS)
def test_no_count_is_above_its_limit_nor_far_below(name: str, package: Texts) -> None:
    assert not (said := verdict(COUNTS[name](package), LIMITS[name])), f"{name}: {said}"


def test_planted_faults_are_counted() -> None:
    one, two = "jaxbench/measure/one.py", "jaxbench/sweep/two.py"
    both = {one: "from jaxbench.sweep import two", two: "def f():\n    from jaxbench.measure.one import x"}
    assert folders_both_ways(both) == {("measure", "sweep")}
    assert not folders_both_ways({**both, two: "import jax"})
    parts = {
        f"jaxbench/features/{name}/page.py": f"import jaxbench.features.{name[::-1]}.page" for name in ("ab", "ba")
    }
    assert folders_both_ways(parts) == {("features/ab", "features/ba")}
    assert not folders_both_ways(
        {one: "from jaxbench.measure import two", "jaxbench/measure/two.py": "from . import one"}
    )
    methods = "".join(f"    def m{number}(self): ...\n" for number in range(16))
    assert large_classes({one: f"class A:\n{methods}"}) == {"measure/one.py:A": 16}
    assert not large_classes({one: f"class A:\n{methods.replace('def m15(self): ...', 'x = 1')}"})
    assert inheritance({one: "class A(dict): ...\nclass B(A): ...", two: "class C(one.B): ..."}) == 2
    assert (
        many_parameters({one: "def f(a, b, c, d, e, f, g, h, i): ...\ndef g(a, b, c, d, *, e, f, g, h, i): ..."}) == 1
    )
    assert anys({one: "PyTree = Any\ndef f(x: Any) -> PyTree: ...", two: "x: PyTree = dict[str, Any]"}) == 6
    assert late_constants({one: "A = 1\ndef f(): ...\nB: int = 2", two: "A = 1\ndef f(): ...\nx = 2"}) == 1
    chart = "@plot('a')\ndef f(run) -> Chart | None:\n    'x'\n"
    assert drawn_by_hand({one: chart, two: chart.replace("Chart", "shapes.Chart")}) == 0
    assert drawn_by_hand({one: chart.replace("Chart", "Figure"), two: chart + "    x = 1\n" * MAX_FIGURE}) == 2
    assert composing({one: "def f(x):\n    return f'it took {x} s of the time of a step'"}) == 1
    assert (
        composing({one: "def f(x):\n    return TOOK.format(x=x)", two: "def g():\n    return 'four words at most'"})
        == 0
    )
    assert unformatted({one: "x = [  # fmt: " + "skip\n]\n# fmt: " + "off\n"}) == 2


def test_a_count_above_its_limit_or_far_below_is_told() -> None:
    assert "never up" in verdict(4, 3) and not verdict(3, 3) and "lower its limit of 3" in verdict(2, 3)
    assert not verdict(95, 100) and "lower" in verdict(94, 100) and "never up" in verdict(101, 100)
