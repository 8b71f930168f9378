# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What needs no device works where JAX cannot be imported: each verb as a command, in a process of its own.

A test that imports modules is not enough: a verb that imports JAX on its way to a module would pass it.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import fabricate
import pytest
from doorway import ROOT, command, environment
from features.training.test_training_page import line
from rich.console import Console
from thin import thin

from jaxbench.commandline import VERBS
from jaxbench.commands import version
from jaxbench.features.launch import engines
from jaxbench.features.training import page as training
from jaxbench.features.training.trainings import LEDGER
from jaxbench.suites.papers import page, paper, session

Words = Callable[[Path], list[str]]
FIGURES = ROOT / "docs" / "figures"
BLOCKED = ("jax", "jaxlib", "flax", "optax", "orbax", "chex", "jaxtyping", "grain")
SENTENCE = "needs JAX, which cannot be imported here (RuntimeError: jaxlib is older than jax): install the packages"


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages that raise when they are imported, as those of a broken installation do."""
    folder = tmp_path_factory.mktemp("blocked")
    for name in BLOCKED:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise RuntimeError('jaxlib is older than jax')\n")
    return folder


def without_jax(blocked: Path, words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (blocked, ROOT)))
    return subprocess.run(
        command(*words), cwd=cwd, env={**environment(), "PYTHONPATH": path}, capture_output=True, text=True, timeout=120
    )


def copied(name: str, path: Path) -> Path:
    """A committed run without its figures and page, which `report` makes again."""
    return Path(shutil.copytree(FIGURES / name, path / name, ignore=shutil.ignore_patterns("figures", "report.html")))


def table(path: Path) -> str:
    (path / "table.csv").write_text("gpus,tokens/s/gpu,step time (s),tokens per step\n8,12.5,10.0,1000\n")
    return "table.csv"


def papers(path: Path) -> str:
    """The folder of a paper that has measured nothing yet."""
    asked = paper.load("li2020")
    folder = path / "papers" / asked.id
    folder.mkdir(parents=True)
    session.write(asked, folder, session.begin(asked, folder, "auto"))
    return "papers"


def cards(path: Path) -> list[str]:
    shutil.copytree(ROOT / "cards", path / "cards", ignore=shutil.ignore_patterns("*.svg", "*.pdf", "*.png"))
    return ["cards", "experiment=cnn"]


def launch(engine: str) -> list[str]:
    options = {"k8s": ["--options=image=registry/name:tag"], "mpi": ["--options=--host a:1,b:1"]}
    return [
        "launch",
        engine,
        "--dry_run",
        "--nodes=1,2",
        "--devices=cpu:1",
        *options.get(engine, []),
        "--",
        "run",
        "cnn",
    ]


def trained(path: Path) -> str:
    """The folder of a training that ended in one start."""
    folder = path / "trained"
    folder.mkdir()
    (folder / LEDGER).write_text(json.dumps(line(1, 0, 0, 10, start=10, steps=10)) + "\n")
    (folder / "config.json").write_text('{"experiment": "toy"}')
    return "trained"


def compare(path: Path, *more: str) -> list[str]:
    """B takes twice as long."""
    facts = {"devices": (1, 2), "scalings": ("strong",), "rounds": 12, "processes": 3, "noise": 0.002}
    fabricate.run_folder(path / "a", **facts)
    fabricate.run_folder(path / "b", **facts, seed=1, base_step_s=0.024)
    return ["compare", "--a=a", "--b=b", *more]


# By name: (the words of the command, its exit code, what it says, a file that it writes)
WORK: dict[str, tuple[Words, int, str, str]] = {
    "report of steps": (
        lambda path: ["report", f"--run={copied('cnn', path)}"], 0, "Page, figures", "cnn/report.html",
    ),
    "report of cases": (
        lambda path: ["report", f"--run={copied('machine/stream', path)}"], 0, "Page, figures",
        "machine/stream/report.html",
    ),
    "report of batch sizes": (
        lambda path: ["report", f"--run={copied('time_to_target', path)}"], 0, "Page, figure",
        "time_to_target/report.html",
    ),
    "report of a training": (
        lambda path: ["report", f"--run={trained(path)}"], 0, "the goodput is", f"trained/{training.PAGE}",
    ),
    "audit": (lambda path: ["audit", table(path), "--workdir=out"], 0, "1 consistent", "out/audit.html"),
    "compare": (lambda path: compare(path), 1, "slower", ""),
    "compare --workdir": (lambda path: compare(path, "--workdir=out"), 1, "slower", "out/comparison.json"),
    "card": (lambda path: ["card", f"--run={copied('cnn', path)}"], 0, "Card: cards/", ""),
    "cards": (lambda path: cards(path), 0, "rows match", "cards/cards-experiment-cnn.svg"),
    "baseline": (lambda path: ["baseline", f"--run={copied('cnn', path)}", "--name=x"], 0, "Kept as", "baselines/x"),
    "list": (lambda path: ["list"], 0, "presets", ""),
    "help": (lambda path: ["help"], 0, "Exit codes", ""),
    "version": (lambda path: ["version"], 0, f"jax {metadata.version('jax')}", ""),
    "new": (lambda path: ["new", "mine.py", "--from=linen"], 0, "Written: mine.py", "mine.py"),
    "paper list": (lambda path: ["paper", "list"], 0, "goyal2017", ""),
    "paper --dry_run": (lambda path: ["paper", "goyal2017", "--dry_run"], 0, "jaxbench run cnn", ""),
    "gallery": (lambda path: ["gallery", f"--workdir={papers(path)}"], 0, "", f"papers/{page.GALLERY}"),
    **{
        f"launch {name} --dry_run": (
            lambda path, name=name: launch(name), 0,
            "# Not checked: the settings of 'cnn', because JAX cannot be imported here", "",
        )
        for name in engines.names()
    },
    **{
        f"{name} --help": (
            lambda path, name=name: [name, "--help"], 0, "Exit codes" if name == "help" else "Examples", "",
        )
        for name in VERBS
    },
}  # fmt: skip
# The others take a path through the code that one of these takes.
QUICK = ["report of steps", "report of a training", "audit", "compare", "card", "cards", "list", "version", "new"]
QUICK += ["paper list", "gallery", "launch slurm --dry_run", "launch k8s --dry_run", "run --help"]


@pytest.mark.parametrize("name", thin([*WORK], QUICK))
def test_a_verb_works_where_jax_cannot_be_imported(blocked: Path, tmp_path: Path, name: str) -> None:
    words, code, said, file = WORK[name]
    done = without_jax(blocked, words(tmp_path), tmp_path)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stdout + done.stderr
    assert said in done.stdout
    assert not file or (tmp_path / file).exists()


NEED = [
    *(
        ["run", "mlp"],
        ["train", "mlp"],
        ["try", "mlp"],
        ["ab", "mlp", "--a=", "--b="],
        ["calibrate", "mlp"],
        ["machine"],
    ),
    *(["check", "mlp", "--name=x"], ["repro", "--card=x.json"], ["first-run", "--dry_run"], ["paper", "goyal2017"]),
    *(["forecast", "mlp", "--targets=v5e:2x2"], ["advise", "mlp", "--targets=v5e:2x2", "--tokens=1e9"]),
    ["launch", "mpi", "--devices=cpu:1", "--", "run", "cnn"],
]


@pytest.mark.parametrize("words", thin(NEED, [["run", "mlp"], ["check", "mlp", "--name=x"], NEED[-1]]))
def test_a_verb_that_needs_jax_says_so(blocked: Path, tmp_path: Path, words: list[str]) -> None:
    done = without_jax(blocked, words, tmp_path)
    assert done.returncode == (3 if VERBS[words[0]].answers else 2)
    assert SENTENCE in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not [*tmp_path.iterdir()], "nothing is begun that cannot be measured"


WRONG = [
    (["reprot", "--run=x"], "there is no verb 'reprot': did you mean 'repro'?"),
    (["run", "mlpp"], "unknown experiment 'mlpp': did you mean 'mlp'?"),
    (["report", "--run=/no/such"], "'/no/such' is not a folder"),
    (["launch", "mpi", "--dry_run", "--", "run", "cnn", "--presett=smoke"], "did you mean 'preset'?"),
    (["launch", "mpi", "--dry_run", "--", "run", "cnn", "--preset=smok"], "did you mean 'smoke'?"),
]


@pytest.mark.parametrize(("words", "sentence"), thin(WRONG, 2))
def test_a_mistake_is_said_without_jax(blocked: Path, tmp_path: Path, words: list[str], sentence: str) -> None:
    done = without_jax(blocked, words, tmp_path)
    assert done.returncode == 2 and sentence in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_results_are_loaded_and_shown_in_python_without_jax(blocked: Path, tmp_path: Path) -> None:
    code = (
        "import sys, jaxbench as jb; found = jb.load(sys.argv[1]); assert found.table.shape[0] and found.figures;"
        "assert found._repr_html_() and len(found.records); print(found.headline)"
    )
    path = os.pathsep.join(map(str, (blocked, ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", code, str(FIGURES / "cnn")], cwd=tmp_path, env={**environment(), "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and "efficiency" in done.stdout, done.stderr


def test_the_version_says_that_jax_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(version.metadata, "version", missing)
    console = Console(file=io.StringIO())
    assert version.main([], tmp_path, console) == 0
    assert console.file.getvalue().endswith("jax not installed\n")  # type: ignore[attr-defined]
