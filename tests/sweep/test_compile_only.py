# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Runs that compile for absent hardware: requests, records and display. tests/machine/test_afresh.py uses the real
compilers, if they are installed."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pandas as pd
import pytest
from experiment_cases import composed
from rich.console import Console

from jaxbench.analysis import compiled
from jaxbench.catalog import targets
from jaxbench.core.schema import Collective, CompiledRecord, FailureRecord, Verdict
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.machine import start as start_lib
from jaxbench.processes.client import WorkerError
from jaxbench.processes.messages import Recorded
from jaxbench.report import build
from jaxbench.sweep import compile_only

SUM = Collective(
    kind="all-reduce", count=1, bytes=408, elements=100, scalar_bytes=8, axis="data", group=2, scalars=2, wire_bytes=408
)


class FakeWorker:
    """Stands in for a compiler: pmap ends its process, zero1 is out of memory, fsdp sends too much."""

    started = 0

    def __init__(self, setup, log):
        FakeWorker.started += 1
        self.setup = setup

    def ask(self, request, limit_s):
        point = request.point
        if point["strategy"] == "pmap":
            raise WorkerError("the worker process was ended by SIGSEGV", stage="compile", alive=False)
        if point["strategy"] == "zero1":
            raise WorkerError("JaxRuntimeError: RESOURCE_EXHAUSTED: Used 18.84G of 15.75G hbm.", stage="compile")
        right = point["strategy"] != "fsdp"
        record = CompiledRecord(
            point=point["point"], experiment="mlp", devices=point["devices"], platform="tpu", device_kind="TPU v5 lite",
            mesh={"data": point["devices"]}, compile_s=1.5, collectives=(SUM,), peak_bytes=10**6,
            compiler_peak_bytes=9 * 10**5, temp_bytes=100, flops=1e6, product_flops=1e6, strategy=point["strategy"],
            checks=(Verdict(name="collectives", ok=right, reason="the compiled step moves <b>something</b>"),),
        )  # fmt: skip
        return Recorded(record=record)

    def close(self):
        pass

    kill = close


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Compiles with the fake for v5e:1x2, and returns (run folder, terminal output)."""
    FakeWorker.started = 0
    monkeypatch.setattr(compile_only, "Worker", FakeWorker)
    monkeypatch.setattr(start_lib, "require_target", lambda target: None)
    config = composed("mlp", **{"mesh.devices": "2", "scaling": "weak"})
    console = Console(file=io.StringIO(), width=120)

    def again() -> tuple[RunFolder, str]:
        compile_only.run("mlp", config, "v5e:1x2", tmp_path / "run", console)
        outcome = build.write(tmp_path / "run", console=console)
        assert not outcome.ok
        return RunFolder(tmp_path / "run"), console.file.getvalue()

    return again


def test_any_message_of_the_compiler_is_recorded_and_said_once(run):
    folder, shown = run()
    rows = {row.point["strategy"]: row for row in compiled.rows(folder)}
    assert rows["jit_auto"].status == "compiled" and rows["jit_auto"].fits and rows["jit_auto"].right
    assert rows["fsdp"].right is False
    assert (rows["zero1"].status, rows["zero1"].fits) == ("too large", False)
    assert rows["pmap"].status == "failed" and "SIGSEGV" in rows["pmap"].why
    assert FakeWorker.started == 2  # the process that ended, and the one that continued
    assert "5 of 7 points compile, 5 fit into a device's memory, 4 of 5 communicate exactly" in " ".join(shown.split())
    twice = [dataclasses.replace(row, record=None, reason="no such thing") for row in rows.values()]
    assert len(compiled.problems(twice)) == 1
    kinds = [type(record) for record in folder.records()]
    assert kinds.count(CompiledRecord) == 5 and kinds.count(FailureRecord) == 2


def test_a_second_start_compiles_nothing_again(run):
    run()
    FakeWorker.started = 0
    folder, _ = run()
    assert FakeWorker.started == 0
    assert len(folder.records()) == 7


def test_the_page_and_the_table_mark_every_row_and_escape_what_compilers_say(run):
    folder, _ = run()
    page = (folder.path / "report.html").read_text()
    assert "compiled, not run" in page and "&lt;b&gt;something" in page and "<b>something" not in page
    table = pd.read_csv(folder.path / "summary.csv")
    assert ",".join(table.columns) == (
        "point,target,experiment,strategy,scaling,devices,global_batch,mesh,status,reason,peak_bytes,"
        "compiler_peak_bytes,device_memory_bytes,fits,collectives,bytes,wire_bytes,closed_form,closed_form_reason,"
        "parameters,flops,product_flops,compile_s,note"
    )
    assert set(table["note"]) == {"compiled, not run"} and "step_s" not in table
    assert (folder.path / "figures" / "compiled.svg").exists()


@pytest.mark.parametrize(("strategy", "excused"), [("all", True), ("jit_auto,jit_explicit", False)])
def test_a_strategy_that_cannot_take_the_model_is_amiss_only_where_it_was_named(
    monkeypatch, tmp_path, strategy, excused
):
    class Refusing(FakeWorker):
        def ask(self, request, limit_s):
            if request.point["strategy"] != "jit_auto":
                raise WorkerError("'mine.py', line 7: write this.", stage="compile", unsupported=True)
            return super().ask(request, limit_s)

    monkeypatch.setattr(compile_only, "Worker", Refusing)
    monkeypatch.setattr(start_lib, "require_target", lambda target: None)
    config = composed("mlp", **{"mesh.devices": "2", "scaling": "weak", "strategy": strategy})
    compile_only.run("mlp", config, "v5e:1x2", tmp_path / "run", Console(file=io.StringIO()))
    assert build.write(tmp_path / "run").ok is excused
    status = {row.point["strategy"]: row.status for row in compiled.rows(RunFolder(tmp_path / "run"))}
    assert (status["jit_auto"], status["jit_explicit"]) == ("compiled", "unsupported")


def test_a_platform_that_is_not_the_targets_and_copies_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(start_lib, "require_target", lambda target: None)
    config = composed("mlp", **{"mesh.platform": "cpu"})
    with pytest.raises(UserError, match="platform=cpu .* --target=h100:8"):
        compile_only.run("mlp", config, "h100:8", tmp_path / "run", Console(file=io.StringIO()))
    with pytest.raises(UserError, match="'transfer' has nothing to compile"):
        compile_only.run("transfer", composed("transfer"), "h100:2", tmp_path / "run", Console(file=io.StringIO()))


def test_a_compiler_that_is_missing_says_what_to_install(monkeypatch):
    monkeypatch.setattr(start_lib, "_installed", lambda module: False)
    for text, extra in [("v5e:2x4", "target-tpu"), ("h100:8", "target-cuda")]:
        with pytest.raises(UserError, match=rf"--target={text} needs XLA's compiler .*\[{extra}\]"):
            start_lib.require_target(targets.parse(text))
