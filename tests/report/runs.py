# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One small fabricated run for each view, with every feature that its figures can show."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fabricate_cases as fab
import pytest
from fabricate_cases import Made
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.report import build, page, run_report
from jaxbench.report.drawing import canvas
from jaxbench.report.run_report import RunReport

GPU: dict[str, Any] = dict(platform="gpu", device_kind="NVIDIA H200")
GPU_MANIFEST: dict[str, Any] = dict(platform="gpu", device_kind="NVIDIA H200", devices=8)
WRONG = schema.Verdict(name="result", ok=False, reason="3 values are wrong", value=3.0, limit=0.0)


SVG = b'<svg width="504pt" height="200pt" viewBox="0 0 504 200" xmlns="x"><path d="M0 0h504v200z"/></svg>\n'


@contextmanager
def blank() -> Iterator[None]:
    """Figures written inside are made, with their captions and files, but neither laid out nor rendered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "lay_out", lambda figure: None)
        patch.setattr(Figure, "savefig", lambda figure, file, **about: file.write(SVG))
        yield


@contextmanager
def undrawn() -> Iterator[None]:
    """Reports written inside have no figures: drawing dominates a report's time, and other tests cover it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "pictures", lambda run: [])
        yield


def drawn(draw: Callable[[RunReport], Figure | None], found: RunReport) -> Figure:
    with canvas.style():
        figure = draw(found)
    assert figure is not None
    return figure


def unscripted(html: str) -> str:
    """A page without the one script that its policy allows, by its hash."""
    script = Path(page.__file__).with_name("page.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    tag = f"<script>{script}</script>"
    assert html.count(tag) == 1 and f"script-src 'sha256-{digest}';" in html
    return html.replace(tag, "")


def texts(of: Figure | Axes) -> str:
    return "\n".join(text.get_text() for text in of.findobj(Text))


def bars_of(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def removed(made: Made) -> Made:
    """The same case with a loop that lost its work: a gate refuses it."""
    return dataclasses.replace(made, loop_s=made.call_s / 1000)


def wrong(made: Made) -> Made:
    """The same case with three wrong values."""
    return dataclasses.replace(made, record=dataclasses.replace(made.record, wrong=3, checks=(WRONG,)))


def curves() -> list[Made]:
    """numpy is faster up to 1,000, jit from 10,000 on; jit's largest size is refused, numpy's is wrong."""
    sizes = (1, 100, 1000, 10_000, 10**6, 10**7)
    made = []
    for n in sizes:
        made.append(fab.kernel("gelu", n, impl="numpy", call_s=1e-6 + n * 4e-9, loop_s=None))
        made.append(fab.kernel("gelu", n, impl="jit", call_s=9e-6 + n * 1e-9))
    return [*made[:-2], wrong(made[-2]), removed(made[-1])]


def both() -> list[Made]:
    """The same kernel on the CPU and, ten times as fast, on a GPU."""
    made = []
    for n in (10**4, 10**6):
        made.append(fab.kernel("gelu", n, call_s=n * 1e-8, point=f"gelu/float32/{n}/jit@cpu"))
        made.append(fab.kernel("gelu", n, call_s=n * 1e-9, **GPU))
    return made


def matmul() -> list[Made]:
    """Squares near the profile's 100 GFLOP/s of one core, and more other shapes than a figure has bars."""
    made = [fab.matmul(n, call_s=2 * n**3 / 9e10) for n in (256, 512, 1024)]
    for i in range(20):
        m = 128 * (i + 1)
        facts = dict(shape=f"{m}x64x64", elements=m, flops=2.0 * m * 64 * 64, bytes_moved=4.0 * (2 * m * 64 + 64 * 64))
        made.append(fab.made(call_s=2 * m * 64 * 64 / (5e10 + 1e9 * i), **facts))
    batch = dict(shape="64x32x32x32", elements=128, flops=2.0 * 64 * 32**3, bytes_moved=12.0 * 64 * 32 * 32)
    return [*made, fab.made(call_s=2 * 64 * 32**3 / 2e10, **batch)]


def stream() -> list[Made]:
    """50 GB/s from the cache, 9 GB/s from memory; the last-level cache is 32 MiB."""
    sizes = [2**e for e in (10, 16, 20, 24, 26)]
    rate = {n: 5e10 if 12 * n < 32 * 2**20 else 9e9 for n in sizes}
    return [fab.stream(op, n, bytes_per_s=rate[n]) for op in ("copy", "triad") for n in sizes]


def dispatch(*, slowest_s: float = 3e-5) -> list[Made]:
    facts: dict[str, Any] = dict(flops=None, bytes_moved=None, experiment="dispatch")
    calls = (("empty", "pipelined", 8e-6), ("empty", "sync", 1e-5), ("tiny", "sync", slowest_s))
    return [fab.kernel(op, 1, impl=impl, call_s=call_s, **facts) for op, impl, call_s in calls]


def fusion() -> list[Made]:
    """Fused is four times as fast as op by op and moves an eighth of the bytes."""
    facts: dict[str, Any] = dict(experiment="fusion", flops=None)
    made = []
    for n in (10**5, 10**6):
        for impl, slower, arrays in (("op_by_op", 4, 16), ("barriers", 3, 16), ("fused", 1, 2)):
            moved = 4.0 * arrays * n
            made.append(fab.kernel("chain", n, impl=impl, call_s=slower * n * 1e-9, bytes_moved=moved, **facts))
    return made


def linalg() -> list[Made]:
    """NumPy takes twice as long as jit."""
    made = []
    for op in ("lu", "qr", "cholesky", "svd", "eigh"):
        for n in (64, 128, 256):
            facts: dict[str, Any] = dict(shape=f"{n}x{n}", flops=float(n**3), bytes_moved=8.0 * n * n)
            made.append(fab.kernel(op, n, impl="jit", call_s=n**3 * 1e-10, **facts))
            made.append(fab.kernel(op, n, impl="numpy", call_s=n**3 * 2e-10, loop_s=None, **facts))
    return made


def versus() -> list[Made]:
    """Plain Python is 1,000 times slower than NumPy with one row; jit is 4 times faster with 4,096.

    A call with copies is 40 % transfer with one row, with no measurable transfer with 4,096. XLA trains twice as fast.
    """
    facts: dict[str, Any] = dict(shape="", flops=None, bytes_moved=None)
    times = {
        1: {"python": 1e-2, "numpy": 1e-5, "jit": 2e-5, "jit+copies": 1e-4, "waited": 6e-5, "start": 1e-5},
        4096: {"numpy": 8e-3, "jit": 2e-3, "jit+copies": 3e-3, "waited": 3e-3, "start": 1e-5},
    }
    return [
        *(versus_call(rows, impl, call_s, **facts) for rows, each in times.items() for impl, call_s in each.items()),
        *(training(seed, impl, call_s * 2**seed) for seed in range(3) for impl, call_s in (("numpy", 1), ("jit", 0.5))),
    ]


def versus_call(rows: int, impl: str, call_s: float, **facts: Any) -> Made:
    part = dict(shape="1 row" if rows == 1 else f"{rows} rows") if impl in ("waited", "start") else {}
    loop_s = call_s if impl == "jit" else None
    return fab.kernel("mlp", 0 if part else rows, impl=impl, call_s=call_s, loop_s=loop_s, **{**facts, **part})


def training(seed: int, impl: str, call_s: float, **changes: Any) -> Made:
    """A training of 40 steps with the first seed, 80 with the second and 160 with the third."""
    facts: dict[str, Any] = dict(shape=f"seed {seed}", flops=None, bytes_moved=None, experiment="versus")
    facts["outcome"] = {"steps": 40.0 * 2**seed, "final_accuracy": 0.96}
    return fab.kernel("train_mlp", 0, impl=impl, call_s=call_s, loop_s=None, **{**facts, **changes})


def collectives() -> list[Made]:
    """On two cores: 2 devices, 8 oversubscribed devices; one device, which has no bus; sub-groups of a 2-D mesh."""
    sizes = [2**e for e in (10, 14, 18, 22)]
    made = []
    for op in ("all_reduce", "all_gather"):
        made += fab.alpha_beta(op, 1, sizes, alpha_s=1e-5, beta=4e9)
        made += fab.alpha_beta(op, 2, sizes, alpha_s=2e-5, beta=2e9)
        made += fab.alpha_beta(op, 8, sizes, alpha_s=9e-5, beta=5e8, oversubscribed=True)
        made += fab.alpha_beta(op, 2, sizes, alpha_s=3e-5, beta=1e9, mesh="2x4", axis="x", oversubscribed=True)
    return made


def transfer(devices: int = 4) -> list[Made]:
    """25 GB/s from the host, 300 GB/s between devices, but a third of that from 1 to 3."""
    made = []
    for payload in (2**10, 2**20, 2**28):
        for a in range(devices):
            device = f"gpu:{a}"
            made.append(fab.transfer("host_to_device", payload, "host", device, call_s=1e-5 + payload / 2.5e10, **GPU))
            made.append(fab.transfer("device_to_host", payload, device, "host", call_s=1e-5 + payload / 2.0e10, **GPU))
            for b in range(devices):
                rate = 1e11 if (a, b) == (1, 3) else 3e11
                if a != b:
                    call_s = 1e-5 + payload / rate
                    made.append(fab.transfer("device_to_device", payload, device, f"gpu:{b}", call_s=call_s, **GPU))
    return made


VIEWS: dict[str, Callable[[], list[Made]]] = {
    "curves": curves,
    "matmul": matmul,
    "stream": stream,
    "dispatch": dispatch,
    "fusion": fusion,
    "linalg": linalg,
    "versus": versus,
    "transfer": transfer,
    "collectives": collectives,
}
FACTS: dict[str, dict[str, Any]] = {"transfer": dict(manifest=GPU_MANIFEST)}


def folder(path: Path, view: str, made: Sequence[Made] | None = None, **facts: Any) -> Path:
    """A run folder of the view, with its own cases or the given ones."""
    cases = VIEWS[view]() if made is None else made
    return fab.case_folder(path, cases, **{"view": view, "machine": None, **FACTS.get(view, {}), **facts})


def findings(path: Path, view: str, made: Sequence[Made] | None = None, **facts: Any) -> RunReport:
    return run_report.find(RunFolder(folder(path, view, made, **facts)))
