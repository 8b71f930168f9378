# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two releases of JAX with `jaxbench ab`: the cnn, the gpt, and the example of an own step, on one device.

Run: python -m benchmarks.releases FOLDER [--a=jax==0.10.0] [--b=jax==0.12.0.1] [--budget_s=230] [--only=cnn,gpt]
Each experiment has a folder there, and the same command continues. Its comparison is FOLDER/EXPERIMENT.json, and
FOLDER/releases.svg (.png, .pdf) shows all of them. `--draw` only draws: the committed results are in
docs/figures/releases.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from jaxbench.report.drawing import canvas, marks, shapes
from jaxbench.report.drawing.canvas import plot
from jaxbench.statistics.bootstrap import Estimate

EXPERIMENTS = ("cnn", "gpt", "own_step")
PHASES = {"trace_s": "trace", "lower_s": "lower", "compile_s": "compile", "first_run_s": "first run", "step_s": "step"}
SETTINGS = ("--config.mesh.devices=1", "--config.mesh.platform=cpu", "--config.measure.rounds=4", "--share_machine")
MORE = {"own_step": ()}
STRATEGY = "--config.strategy=jit_auto"


def measure(experiment: str, asked: argparse.Namespace, folder: Path) -> int:
    name = experiment
    if experiment == "own_step":  # the example of docs/OWN_STEP.md
        name = str(folder / "own_step.py")
        if not Path(name).is_file():
            subprocess.run([sys.executable, "-m", "jaxbench", "new", name, "--from=step"], check=True)
    arms = [f"--a={asked.a}", f"--b={asked.b}", f"--budget_s={asked.budget_s}", f"--workdir={folder / experiment}"]
    words = ["ab", name, *arms, *SETTINGS, *MORE.get(experiment, (STRATEGY,))]
    return subprocess.run([sys.executable, "-m", "jaxbench", *words]).returncode


@plot("releases")
def draw_releases(found: dict[str, dict[str, object]], *, title: str) -> shapes.Chart | None:
    """The newer release over the older one, for each phase before the first step and for the step. Right of the dashed
    line the newer release is slower. Intervals are those of the last look of jaxbench ab, without one for phases of a
    few pairs."""
    names, made = [], []
    for number, document in enumerate(found.values()):
        lines = [*document["phases"], {"name": "step_s", "ratio": document["overall"]["ratio"]}]
        for line in lines:
            name = PHASES[line["name"]]
            if name not in names:
                names.append(name)
            ratio = Estimate(**{key: value for key, value in line["ratio"].items() if value is not None})
            at = names.index(name) + (number - (len(found) - 1) / 2) * 0.25
            made.append(marks.Mark(at=at, value=ratio, style=number))
    layers, axes = [shapes.on(marks.dots, made)], [shapes.Log("x")]
    panel = shapes.Panel(x="newer over older release", layers=layers, axes=axes, level=1)
    handles = [marks.handle(number, name, between="none") for number, name in enumerate(found)]
    notes = ["left of 1: the newer release takes less time; a mark without an interval: fewer than six pairs"]
    return shapes.rows(names, [panel], title=title, handles=handles, remarks=notes) if made else None


def read(folder: Path) -> dict[str, dict[str, object]]:
    """The comparisons of a folder, as `jaxbench ab` writes them, by experiment."""
    files = {name.replace("_", " "): folder / f"{name}.json" for name in EXPERIMENTS}
    return {name: json.loads(file.read_text()) for name, file in files.items() if file.is_file()}


def title(found: dict[str, dict[str, object]]) -> str:
    """ "jax 0.10.0 to 0.12.0.1": the releases of the arms."""
    arms = {(str(each["a"]), str(each["b"])) for each in found.values()}
    (a, b), *others = arms
    if others:
        raise SystemExit(f"the comparisons are of several pairs of releases ({arms}): use a folder for each pair.")
    return f"Time with {_release(b)} over time with {_release(a)}"


def _release(arm: str) -> str:
    """ "B (jax==0.12.0.1)" -> "jax 0.12.0.1"."""
    return arm.partition("(")[2].rstrip(")").replace("==", " ")


def draw(folder: Path) -> None:
    """Writes releases.svg, .png and .pdf."""
    if found := read(folder):
        canvas.write(canvas.render(lambda: draw_releases(found, title=title(found))), folder, "releases")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--a", default="jax==0.10.0")
    parser.add_argument("--b", default="jax==0.12.0.1")
    parser.add_argument("--budget_s", type=float, default=230.0)
    parser.add_argument("--only", default=",".join(EXPERIMENTS))
    parser.add_argument("--draw", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    code = 0
    for experiment in [] if asked.draw else asked.only.split(","):
        code = max(code, measure(experiment, asked, asked.folder))
        made = asked.folder / experiment / "comparison.json"
        if made.is_file():
            shutil.copy(made, asked.folder / f"{experiment}.json")
    draw(asked.folder)
    return code


if __name__ == "__main__":
    sys.exit(main())
