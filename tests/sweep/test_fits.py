# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""An accelerator's compiler refuses a step that is out of memory instead of reporting its size: that is an answer."""

from __future__ import annotations

import json
import types

import pytest
from rich.console import Console
from sweep.test_max_batch import point

from jaxbench.errors import UserError
from jaxbench.hlo.out_of_memory import needed_bytes
from jaxbench.processes.client import WorkerError
from jaxbench.processes.messages import Compiled, Ran, RunWithin
from jaxbench.sweep import run, studies
from jaxbench.sweep.studies import MemoryLimit, Study

GIB, SHARPNESS = 2**30, 8
HAS, EACH, FIXED = int(15.75 * GIB), GIB // 10, GIB  # a device's memory, the memory of an example, and the rest
SENTENCE = (
    "JaxRuntimeError: RESOURCE_EXHAUSTED: TPU backend error. Ran out of memory in memory space hbm. Used {used:.2f}G "
    "of 15.75G hbm. Exceeded hbm capacity by {over:.2f}G."
)
SILENT = "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes."


class Compiler:
    """Stands in for a worker process on an accelerator. `measured`: the device's peak memory in a proof, or None."""

    says, measured, asked = SENTENCE, None, 0

    def __init__(self, setup, log):
        self.size = setup.config.get("model", {}).get("context") or setup.config.get("model", {}).get("layers")

    def ask(self, request):
        Compiler.asked += 1
        size = self.size or request.point["global_batch"]
        needs = FIXED + EACH * size
        if needs > HAS:
            reason = self.says.format(used=needs / GIB, over=(needs - HAS) / GIB)
            raise WorkerError(reason, stage="compile")
        if isinstance(request, RunWithin):
            held = None if self.measured is None else round(self.measured * needs)
            return Ran(peak_bytes=needs, measured_bytes=held)
        return Compiled(peak_bytes=needs, temp_bytes=needs, compile_s=1.0, flops=1.0)

    def close(self):
        pass


@pytest.fixture(autouse=True)
def compiler(monkeypatch):
    monkeypatch.setattr(studies, "Worker", Compiler)
    monkeypatch.setattr(Compiler, "asked", 0)
    return monkeypatch


def find(folder, file, *, limit_bytes=HAS, search="", depths="", **model):
    """The output of the requested study."""
    config, limit = (
        {"search": search, "search_sharpness": SHARPNESS, "depths": depths, "model": model},
        MemoryLimit(bytes=limit_bytes, source="a test"),
    )
    about = {"experiment": "e", "config": config, "folder": folder, "console": Console(quiet=True)}
    studies.run(Study(points=[point(platform="tpu")], limit=limit, **about))
    return json.loads((folder / file).read_text())


def largest(folder, limit_bytes=HAS):
    return find(folder, "search.json", limit_bytes=limit_bytes, search="max")


@pytest.mark.parametrize("says", [SENTENCE, SILENT])
def test_a_refusal_is_an_answer_in_the_search_for_a_batch(tmp_path, compiler, says):
    compiler.setattr(Compiler, "says", says)
    found = largest(tmp_path)
    assert found["predicted"] == found["largest"] == (HAS - FIXED) // EACH
    tried = {row["batch"]: row for row in found["tried"]}
    refused = tried[max(tried)]
    assert "RESOURCE_EXHAUSTED" in refused["refused"] and refused["peak_bytes"] > HAS
    if says == SENTENCE:
        assert refused["peak_bytes"] == pytest.approx(FIXED + EACH * max(tried), rel=1e-3)
    assert not tried[found["predicted"]]["refused"]
    assert Compiler.asked < 30  # if the message has no bytes, the gap is still halved


@pytest.mark.parametrize("measured", [None, 1.0, 1.3])
def test_a_proof_that_held_more_than_the_limit_does_not_fit(tmp_path, compiler, measured):
    compiler.setattr(Compiler, "measured", measured)
    limit = 8 * GIB
    found = largest(tmp_path, limit)
    factor = measured or 1.0
    assert found["largest"] == (limit / factor - FIXED) // EACH
    above = [proof for proof in found["proven"] if not proof["ok"]]
    assert above and all("more than the limit of 8,589,934,592" in proof["reason"] for proof in above)
    assert all(factor * proof["peak_bytes"] > limit for proof in above)
    assert measured is None or found["error"] == pytest.approx(1 / factor - 1)


def test_no_fitting_batch_is_a_sentence_from_the_compiler(tmp_path, compiler):
    compiler.setattr(Compiler, "ask", refuse(SENTENCE.format(used=18.84, over=3.09)))
    with pytest.raises(UserError, match=r"a batch of 1 does not fit .*Used 18.84G of 15.75G.*remat=block"):
        largest(tmp_path)


def test_another_error_is_no_answer(tmp_path, compiler):
    vmem = "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 17M of 16M vmem."
    for reason in ("ValueError: no", vmem):
        compiler.setattr(Compiler, "ask", refuse(reason))
        with pytest.raises(UserError, match="a step of the search for the largest batch cannot be compiled"):
            largest(tmp_path)
        with pytest.raises(UserError, match="cannot be compiled"):
            find(tmp_path, "remat_law.json", depths="8", layers=4)
    assert not studies.out_of_memory(WorkerError(SILENT, stage="measure"))


def refuse(reason):
    def ask(self, request):
        raise WorkerError(reason, stage="compile")

    return ask


@pytest.mark.parametrize("says", [SENTENCE, SILENT])
def test_a_refusal_is_an_answer_in_the_search_for_a_length(tmp_path, compiler, says):
    compiler.setattr(Compiler, "says", says)
    (row,) = find(tmp_path, "longest.json", search="context", context=16)["rows"]
    most = (HAS - FIXED) // EACH
    assert most / (1 + 1 / SHARPNESS) - 2 <= row["longest"] <= most
    assert Compiler.asked < 12
    (tmp_path / "longest.json").unlink()
    with pytest.raises(UserError, match=r"a sequence of 512 .* does not fit .*EXHAUSTED.*config.model.context"):
        find(tmp_path, "longest.json", search="context", context=512)


def test_a_depth_that_is_refused_has_no_scratch_memory(tmp_path):
    rows = find(tmp_path, "remat_law.json", depths="4,512", layers=4)["rows"]
    assert [(row["blocks"], row["temp_bytes"]) for row in rows] == [(4, FIXED + 4 * EACH), (512, None)]


def test_a_dry_run_says_that_a_point_does_not_fit():
    asked = types.SimpleNamespace(settings=None, machine={"cores": 1})
    for says, bytes_ in ((SENTENCE.format(used=18.84, over=3.09), "20229.3 MB"), (SILENT, "unknown")):
        workers = types.SimpleNamespace(ask=lambda name, request, says=says: refuse(says)(None, request))
        assert run._dry_point(point(platform="tpu"), workers, asked, every=False) == (
            ["does not fit the device", bytes_],
            None,
        )


@pytest.mark.parametrize(
    ("says", "bytes_"),
    [
        ("Ran out of memory in memory space hbm. Used 18.84G of 15.75G hbm.", round(18.84 * GIB)),
        ("the total memory required for HLO temporaries (8.80G) exceeds available HBM (1.00M).", round(8.8 * GIB)),
        ("Out of memory while trying to allocate 4294967296 bytes.", None),
        ("Ran out of memory in memory space vmem. Used 17M of 16M vmem.", None),
    ],
)
def test_a_refusal_often_says_how_much_it_needs(says, bytes_):
    assert needed_bytes(f"RESOURCE_EXHAUSTED: {says}") == bytes_
