# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Redraws the committed figures from the committed runs, in the committed formats; measures nothing.

Figures without committed records (papers) do not change until their runs are repeated.

Run: python -m benchmarks.redraw
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

from jaxbench.analysis import machine_profile
from jaxbench.core.store import RunFolder, write_json
from jaxbench.features.forecast import forecasts
from jaxbench.features.forecast import page as forecast_page
from jaxbench.features.forecast.figures import draw_forecast
from jaxbench.features.machine_profile import machine_command
from jaxbench.features.machine_profile import page as machine
from jaxbench.features.time_to_target import page as targets
from jaxbench.records import documents
from jaxbench.report import build
from jaxbench.report.drawing import canvas

FIGURES = Path("docs/figures")
FORECAST = FIGURES / "forecasts" / "maxtext_16b"  # its records; docs/FORECASTS.md has the command that makes them


def rebuild_card() -> None:
    """Recomputes the machine profile from its committed runs. Runs that used the old profile get the new one."""
    folder = FIGURES / "machine"
    old = (folder / machine_profile.NAME).read_bytes()
    card = machine_profile.build([RunFolder(folder / name) for name in machine_command.EXPERIMENTS])
    before = json.loads(old)
    if all(before.get(name) == value for name, value in card.items() if name not in ("made", documents.SHA256)):
        return  # otherwise each redraw would change the committed files
    for path in FIGURES.rglob(machine_profile.NAME):
        if path.read_bytes() == old:
            write_json(path, card)


def redraw_forecast() -> None:
    records = forecasts.read(FORECAST)
    files = canvas.render(functools.partial(draw_forecast, records, title=forecast_page.title(records)))
    canvas.write({suffix: files[suffix] for suffix in ("svg", "png")}, FORECAST.parent, FORECAST.name)


def main() -> None:
    rebuild_card()
    redraw_forecast()
    tracked = subprocess.run(["git", "ls-files", FIGURES], capture_output=True, text=True, check=True).stdout.split()
    pictures = [Path(file) for file in tracked if Path(file).suffix in (".svg", ".png", ".pdf")]
    for path in sorted({picture.parent.parent for picture in pictures if picture.parent.name == "figures"}):
        kept = {file: (path / file).is_file() for file in ("report.html", "summary.csv", "targets.csv", "machine.html")}
        if (path / "targets.jsonl").exists():
            targets.write(path)
        elif (path / "manifest.json").exists():
            build.write(path)
        else:
            runs = [path / name for name in machine_command.EXPERIMENTS if (path / name).is_dir()]
            machine.write(path, runs, json.loads((path / machine_profile.NAME).read_text()))
        for file, was in kept.items():
            if not was:
                (path / file).unlink(missing_ok=True)
        for drawn in (path / "figures").iterdir():
            if drawn not in pictures:
                drawn.unlink()
        print(path)
    with_links = FIGURES / "links"
    subprocess.run([sys.executable, "-m", "benchmarks.links", with_links], stdout=subprocess.DEVNULL, check=False)
    (with_links / "links.pdf").unlink(missing_ok=True)
    subprocess.run([sys.executable, "-m", "jaxbench", "cards"], stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
