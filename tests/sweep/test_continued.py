# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A run folder is continued on the same machine with the same software and the same model, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases
import pytest

from jaxbench import discovery
from jaxbench.core import schema
from jaxbench.core.store import MANIFEST, RunFolder
from jaxbench.errors import UserError
from jaxbench.sweep.run import begin_session

CONFIG: dict[str, Any] = {"experiment": "cnn"}
SESSION: dict[str, Any] = {
    "platform": "cpu", "device_kind": "cpu", "devices": 1, "cores": 2, "cpu_model": "AMD EPYC", "python": "3.11.7",
    "experiment_sha256": "a", "environment": {}, "versions": {"jax": "0.10.2"}, "git": {}, "source_sha256": "s",
    "started": "now", "command": ["jaxbench", "run", "cnn"], "shared_with": "",
    "identity": {"family": "25", "kernel": "6.1", "product_s": 0.001, "product_by": "numpy 2"},
}  # fmt: skip


def begin(folder: Path, **changes: Any) -> tuple[int, list[str]]:
    run = RunFolder.begin(folder, CONFIG)
    try:
        return begin_session(run, {**SESSION, **changes}), run.notes
    finally:
        run.close()


@pytest.mark.parametrize("seconds", [0.00046, 0.00122, 0.0238])
def test_the_same_machine_continues_at_another_speed_and_says_so(tmp_path: Path, seconds: float) -> None:
    """A neighbour on the physical core halves the speed of a virtual machine for minutes."""
    begin(tmp_path)
    number, (note,) = begin(tmp_path, identity={**SESSION["identity"], "product_s": seconds})
    assert number == 1 and "the same machine ran a reference product" in note and "times slower" in note
    (again,) = json.loads((tmp_path / MANIFEST).read_text())["sessions"]
    assert again["identity"]["product_s"] == seconds


def test_the_same_machine_continues(tmp_path: Path) -> None:
    near = {**SESSION["identity"], "product_s": 0.00112}
    assert [begin(tmp_path)[0], begin(tmp_path)[0], begin(tmp_path, identity=near)[0]] == [0, 1, 2]
    assert begin(tmp_path, devices=8) == (3, [])  # fake devices, created on demand


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"identity": {"family": "23"}}, "measured on another machine .processor family '25', here '23'"),
        ({"identity": {"kernel": "6.2"}}, "measured with another kernel .kernel '6.1', here '6.2'"),
        ({"cores": 4}, "usable cores 2, here 4"),
        (
            {"environment": {"MALLOC_ARENA_MAX": "1"}},
            r"measured with other environment \(MALLOC_ARENA_MAX none, now 1\)",
        ),
        ({"experiment_sha256": "b"}, r"measured with other experiment_sha256 \(a, now b\)"),
    ],
)
def test_another_machine_or_experiment_does_not(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    begin(tmp_path)
    with pytest.raises(UserError, match=said):
        begin(tmp_path, **change)


def test_another_commit_is_named_and_not_shown_as_python_does(tmp_path: Path) -> None:
    begin(tmp_path, git={"commit": "1a2b3c4d5e6f7081", "dirty": True})
    _, (note,) = begin(tmp_path)
    said = "was started with jaxbench at commit 1a2b3c4d5e6f with changes, but now it is an installed package."
    assert note == f"{tmp_path} {said}"


def test_an_old_manifest_is_continued_and_the_doubt_said(tmp_path: Path) -> None:
    begin(tmp_path)
    held = json.loads((tmp_path / MANIFEST).read_text())
    del held["identity"], held["sha256"]  # older versions wrote neither
    (tmp_path / MANIFEST).write_text(json.dumps(held))
    number, notes = begin(tmp_path)
    assert number == 1 and "another processor of the same name would not be noticed" in notes[0]


POINT, SMALLER = fabricate.point_record(), fabricate.compile_report(parameters=3_466, expected_gradient_bytes=0)


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (POINT, fabricate.point_record(compile_report=SMALLER), "parameters: 61,706 so far, 3,466 now"),
        (POINT, fabricate.point_record(global_batch=512), "global_batch: 256 so far, 512 now"),
        (fabricate_cases.record(), fabricate_cases.record(flops=1.0), "flops: 2,147,483,648 so far, 1 now"),
        (POINT, fabricate.point_record(worker="session1/w"), ""),
    ],
)
def test_another_model_of_a_point_is_not_recorded(
    tmp_path: Path, first: schema.PointRecord, then: schema.PointRecord, said: str
) -> None:
    """Two models were combined into one median, in one start and after a continuation."""
    for continued in (False, True):
        run = RunFolder.begin(tmp_path / str(continued), CONFIG)
        run.append(first)
        if continued:
            run.close()
            run = RunFolder.begin(run.path, CONFIG)
        try:
            if said:
                with pytest.raises(UserError, match=f"another model of {first.point} .*{said}"):
                    run.append(then)
            else:
                run.append(then)
            assert len(run.records()) == (1 if said else 2)
        finally:
            run.close()


EXPERIMENT = """
import helper_m
from layers_m import blocks_m
def build(config):
    from late_m import width
    import importlib
    importlib.import_module("named_m")
    return helper_m.depth + width
"""
MODULES = {
    "helper_m.py": "import json, numpy\ndepth = 2\n",
    "late_m.py": "width = 8\n",
    "named_m.py": "",
    "layers_m/__init__.py": "",
    "layers_m/blocks_m.py": "from . import norm_m\nfrom .deep_m.most_m import x\n",
    "layers_m/norm_m.py": "",
    "layers_m/deep_m/most_m.py": "x = 1\n",
    "unused_m.py": "",
}


def test_an_experiment_is_its_file_and_every_module_that_it_loads(tmp_path: Path) -> None:
    """85,002 against 3,466 parameters: the model is in a module that the experiment imports."""
    for name, text in {**MODULES, "mine.py": EXPERIMENT}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    path = str(tmp_path / "mine.py")
    before = discovery.digest(path)
    assert discovery.digest(path) == before
    for name in MODULES:
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text + "# another model\n")
        assert (discovery.digest(path) == before) == (name == "unused_m.py"), name
        (tmp_path / name).write_text(text)
    (tmp_path / "late_m.py").write_text("width = (\n")  # not loaded yet, so its error is reported later
    assert discovery.digest(path) != before


def test_an_experiment_that_takes_another_ones_model_depends_on_its_file() -> None:
    path, freeze = discovery.experiment_path("freeze"), discovery.load_experiment("freeze")
    files = discovery.sources(path, freeze, discovery.experiments())
    assert [file.name for file in files] == ["freeze.py", "gpt.py"]
