# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Two releases of JAX with `jaxbench ab`: the cnn, the gpt, and the example of an own step, on one device.

Run: python -m benchmarks.releases FOLDER [--a=jax==0.10.0] [--b=jax==0.12.0.1] [--budget_s=70] [--only=cnn,gpt]
Each experiment has a folder there, and the same command continues. Then it draws figures/releases from all of them:
    python -m benchmarks.releases FOLDER --draw
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from matplotlib.figure import Figure

from jaxbench.report.drawing import canvas, marks, shapes
from jaxbench.report.drawing.canvas import plot
from jaxbench.statistics.bootstrap import Estimate

EXPERIMENTS = ("cnn", "gpt", "own_step")
PHASES = {"trace_s": "trace", "lower_s": "lower", "compile_s": "compile", "first_run_s": "first run", "step_s": "step"}
SETTINGS = ("--config.mesh.devices=1", "--config.mesh.platform=cpu", "--share_machine")
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
def draw_releases(found: dict[str, dict[str, object]], *, title: str) -> Figure | None:
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
            made.append(marks.Mark(at=at, value=ratio, style=number, text=f"{ratio.value:.2f}"))
    panel = shapes.Panel(x="newer over older release", made=made, axis=shapes.log("x"), level=1)
    handles = [marks.handle(number, name, between="none") for number, name in enumerate(found)]
    return shapes.rows(title, names, [panel], handles=handles) if made else None


def draw(asked: argparse.Namespace, folder: Path) -> None:
    found = {}
    for experiment in EXPERIMENTS:
        file = folder / experiment / "comparison.json"
        if file.is_file():
            found[experiment.replace("_", " ")] = json.loads(file.read_text())
            if asked.keep:
                shutil.copy(file, folder / f"{experiment}.json")
    files = canvas.render(lambda: draw_releases(found, title=f"{asked.a} to {asked.b}"))
    canvas.write(files, folder / "figures", "releases")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--a", default="jax==0.10.0")
    parser.add_argument("--b", default="jax==0.12.0.1")
    parser.add_argument("--budget_s", type=float, default=70.0)
    parser.add_argument("--only", default=",".join(EXPERIMENTS))
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--keep", action="store_true")
    asked = parser.parse_args()
    folder = Path(asked.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if asked.draw:
        draw(asked, folder)
        return 0
    return max(measure(experiment, asked, folder) for experiment in asked.only.split(","))


if __name__ == "__main__":
    sys.exit(main())
