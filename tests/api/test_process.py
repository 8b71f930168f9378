# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The terminal that a notebook shows."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress

from jaxbench.api.process import Screen


def written():
    """What rich writes for two lines and a bar that is drawn three times."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=60, legacy_windows=False, color_system="truecolor")
    console.print("probing", style="yellow")
    with Progress(console=console, auto_refresh=False) as bar:
        task = bar.add_task("points", total=3)
        for step in range(3):
            bar.update(task, advance=1, description=f"point {step}", refresh=True)
            console.print(f"line {step}")
    return file.getvalue()


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_live_display_leaves_its_last_state(size):
    screen, text = Screen(), written()
    for at in range(0, len(text), size):
        screen.feed(text[at : at + size])
    lines = screen.text().plain.splitlines()
    assert [line.split("━")[0].strip() for line in lines] == ["probing", "line 0", "line 1", "line 2", "point 2"]
    assert "100%" in lines[-1] and screen.text(last=2).plain.splitlines() == lines[-2:]
    assert any(span.style.color and span.style.color.number == 3 for span in screen.text().spans)
