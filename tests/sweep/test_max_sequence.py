# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The longest sequence that fits: found to an eighth from the compiler's memory, once; refusals are one sentence."""

from __future__ import annotations

import pytest
from rich.console import Console

from jaxbench.analysis import studies as reader
from jaxbench.core.point import Point
from jaxbench.errors import UserError
from jaxbench.processes.messages import Compile, Compiled
from jaxbench.sweep import studies
from jaxbench.sweep.studies import MemoryLimit, Study

COUNTS = (1, 2, 4)


class Compiler:
    """Stands in for a worker process: memory grows with the square of the length over the devices, plus a constant."""

    asked = 0

    def __init__(self, setup, log):
        self.length, self.devices = setup.config["model"]["context"], setup.devices

    def ask(self, request):
        Compiler.asked += 1
        assert isinstance(request, Compile)
        return Compiled(compile_s=1.0, flops=1.0, peak_bytes=peak(self.length, self.devices), temp_bytes=0)

    def close(self):
        pass


def peak(length, devices):
    return 10_000 + length**2 // devices


def search(folder, monkeypatch, *, limit, model=None, sharpness=8):
    monkeypatch.setattr(studies, "Worker", Compiler)
    points = [
        Point(point=f"context/strong/{n}", strategy="context", scaling="strong", devices=n, global_batch=4,
              oversubscribed=False, platform="cpu")
        for n in COUNTS
    ]  # fmt: skip
    config = {"search": "context", "depths": "", "model": {"context": 64} if model is None else model}
    config["search_sharpness"] = sharpness
    about = {"experiment": "context_parallel", "config": config, "folder": folder, "console": Console(quiet=True)}
    studies.run(Study(points=points, limit=MemoryLimit(bytes=limit, source="a test"), **about))
    return reader.read_longest(folder)


def test_it_is_exact_to_an_eighth_and_in_few_compilations(tmp_path, monkeypatch):
    Compiler.asked, limit = 0, 10_000_000
    found = search(tmp_path, monkeypatch, limit=limit)
    assert [row.devices for row in found.rows] == list(COUNTS)
    for row in found.rows:
        fits, n = row.longest, row.devices
        assert peak(fits, n) <= limit < peak(round(fits * (1 + 1 / found.sharpness)) + 2 * n, n)
        assert dict(row.tried)[fits] == peak(fits, n)
    assert Compiler.asked <= 12 + 8 * (len(COUNTS) - 1)


def test_a_blunt_search_only_doubles_and_says_so(tmp_path, monkeypatch):
    Compiler.asked, limit = 0, 10_000_000
    found = search(tmp_path, monkeypatch, limit=limit, sharpness=1)
    assert found.sharpness == 1
    begins = 64
    for row in found.rows:
        assert peak(row.longest, row.devices) <= limit < peak(2 * row.longest, row.devices)
        assert [length for length, _ in row.tried] == [begins * 2**k for k in range(len(row.tried))]
        begins = row.longest  # what fits on fewer devices fits on more
    assert Compiler.asked == sum(len(row.tried) for row in found.rows)


def test_a_second_start_searches_nothing(tmp_path, monkeypatch):
    first = search(tmp_path, monkeypatch, limit=10_000_000)
    Compiler.asked = 0
    assert search(tmp_path, monkeypatch, limit=20_000_000) == first
    assert not Compiler.asked


def test_an_impossible_search_is_refused(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"a sequence of 64 on 1 device needs 14,096 bytes .*search_bytes=28192"):
        search(tmp_path, monkeypatch, limit=100)
    with pytest.raises(UserError, match=r"no config.model.context of its own; gpt has"):
        search(tmp_path, monkeypatch, limit=100, model={"context": 0})
    assert reader.read_longest(tmp_path / "nowhere") is None
