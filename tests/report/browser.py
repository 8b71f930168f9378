# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Pages in a real browser: measurements by a script at several widths, with one start of Chromium."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
COMMAND = shutil.which(next((name for name in NAMES if shutil.which(name)), "")) or ""
needed = pytest.mark.skipif(not COMMAND, reason="no Chromium here: pages were not laid out")

# Runs in the frame's parent, because pages forbid scripts. All details are opened first.
_MEASURE = """
onload = () => {
  const found = [...document.querySelectorAll('iframe')].map(frame => {
    const page = frame.contentDocument;
    page.querySelectorAll('details').forEach(fold => fold.open = true);
    const named = element => `${element.tagName} ${element.textContent.trim().slice(0, 60)}`;
    const wide = element => element.scrollWidth > element.clientWidth;
    const figures = [...page.querySelectorAll('.figures figure')].map(figure => figure.getBoundingClientRect());
    return {
      width: page.documentElement.scrollWidth,
      room: page.documentElement.clientWidth,
      cut: [...page.querySelectorAll('.wide, pre')].filter(wide).map(e => `${named(e)}: ${e.scrollWidth}`),
      figures: figures.map(box => [box.left, box.top, box.width]),
      lost: [...page.querySelectorAll('a[href^="#"]')].filter(a => !page.querySelector(a.hash)).map(named),
      ground: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
      ink: frame.contentWindow.getComputedStyle(page.body).color,
    };
  });
  document.body.textContent = JSON.stringify(found);
}
"""


def laid_out(pages: Mapping[str, str], width: int, folder: Path, options: Sequence[str] = ()) -> dict[str, Any]:
    """The measurements of HTML pages, by name, in a frame of `width` pixels."""
    frames = "".join(
        f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{escape(page)}"></iframe>'
        for page in pages.values()
    )
    file = folder / "frames.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{frames}<script>{_MEASURE}</script></body>")
    settings = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command = [COMMAND, *settings, *options, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    body = re.search(r"<body>(\[.*\])</body>", done.stdout, flags=re.DOTALL)
    assert body is not None, done.stderr[-2000:]
    return dict(zip(pages, json.loads(unescape(body[1])), strict=True))
