# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench machine` from the command line, and the use of its profile in later runs."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fabricate_cases as fab
import pytest
from doorway import jaxbench
from fabricate_cases import Made
from report import runs
from report.runs import unscripted
from rich.console import Console
from thin import thin

from jaxbench.analysis import machine_profile
from jaxbench.core.store import MANIFEST, RunFolder, write_json
from jaxbench.errors import UserError
from jaxbench.features.machine_profile import machine_command
from jaxbench.features.machine_profile import page as machine
from jaxbench.records import documents
from jaxbench.report import build

CPU = ("--config.mesh.platform=cpu", "--config.measure.rounds=1", "--config.measure.block_s=0.001")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds a smoke run of `machine`."""
    folder = tmp_path_factory.mktemp("results")
    done = jaxbench("machine", "--preset=smoke", f"--workdir={folder / 'machine'}")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.full
def test_every_part_is_a_run_folder_and_the_page_links_to_them(measured: Path) -> None:
    page = (measured / "machine" / "machine.html").read_text()
    for name in machine_command.EXPERIMENTS:
        assert (measured / "machine" / name / "summary.csv").exists()
        assert f'href="{name}/report.html"' in page
        assert (measured / "machine" / name / "machine.json").exists()  # the peaks used for its own gates
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.full
def test_the_card_holds_peaks_launches_links_and_transfers(measured: Path) -> None:
    card = json.loads((measured / "machine" / "machine.json").read_text())
    assert {peak["quantity"] for peak in card["peaks"]} == {"flop_per_s", "bytes_per_s"}
    assert card["launch"] and card["transfers"]
    assert card["machine"]["cores"] >= 1
    assert not (measured / "machine.json").exists()  # later runs are not compared with a smoke test


@pytest.mark.full
def test_a_later_run_uses_the_card_next_to_it_and_no_other_machines(measured: Path) -> None:
    shutil.copy(measured / "machine" / "machine.json", measured / "machine.json")
    done = jaxbench("run", "dispatch", *CPU, f"--workdir={measured / 'own'}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (measured / "own" / "machine.json").read_bytes() == (measured / "machine.json").read_bytes()

    card = json.loads((measured / "machine.json").read_text())
    card["machine"]["cpu_model"] = "another"
    card["made_of"], card["sha256"] = [], documents.digest({**card, "made_of": []})
    (measured / "machine.json").write_text(json.dumps(card))
    (measured / "own" / "machine.json").unlink()
    said = Console(record=True, width=200)
    machine_command.adopt(measured / "own", said)
    assert not (measured / "own" / "machine.json").exists()
    assert "is not used" in said.export_text()


def test_a_damaged_card_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "machine.json").write_text("{")
    with pytest.raises(UserError, match="machine.json"):
        machine_command.adopt(tmp_path / "own", Console(quiet=True))


SIZES = [4**k for k in range(5, 12)]


def links(folder: Path, alpha_s: float, **of: int) -> Path:
    made = fab.alpha_beta("all_reduce", 2, SIZES, alpha_s=alpha_s, beta=1e9, cores=2, **of)
    fab.case_folder(folder, made, view="collectives", rounds=5)
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, "started": folder.name}))  # each its own, as runs have
    machine_command.add_links(folder, Console(quiet=True))
    return folder.parent / "machine.json"


def test_links_between_processes_are_added_to_the_card_next_to_a_run(tmp_path: Path) -> None:
    card = links(tmp_path / "inside", 1e-5)
    assert not card.exists()  # `jaxbench machine` makes a profile with one process
    links(tmp_path / "processes", 1e-4, group_processes=2)
    before = json.loads(card.read_text())
    before["links"].append({name: value for name, value in before["links"][0].items() if "group" not in name})
    before["made_of"] += ["a run that is elsewhere"]
    card.write_text(json.dumps({**before, documents.SHA256: documents.digest(before)}))
    links(tmp_path / "hosts", 1e-3, group_processes=2, group_hosts=2)
    links(tmp_path / "again", 2e-4, group_processes=2)
    found = json.loads(card.read_text())["links"]
    seen = {(link.get("group_processes"), link.get("group_hosts")): link["alpha_s"] for link in found}
    assert len(found) == 3
    assert seen == pytest.approx({(None, None): 1e-4, (2, 2): 1e-3, (2, 1): 2e-4}, rel=0.1)


def test_a_card_with_links_of_several_runs_agrees_with_them(tmp_path: Path) -> None:
    for name, alpha_s, of in (("first", 1e-4, {}), ("hosts", 1e-3, {"group_hosts": 2}), ("again", 2e-4, {})):
        card = links(tmp_path / name, alpha_s, group_processes=2, **of)
    held = json.loads(card.read_text())
    assert held == machine_profile.read(card) and len(held["links"]) == 2 and len(held["made_of"]) == 3
    held["links"][0]["alpha_s"] /= 2
    card.write_text(json.dumps(held))
    with pytest.raises(UserError, match="is damaged"):
        machine_profile.read(card)


def test_another_machines_card_keeps_its_own_links(tmp_path: Path) -> None:
    card = links(tmp_path / "one", 1e-4, group_processes=2)
    other = json.loads(card.read_text())
    other["machine"]["cores"] = other["machine"].get("cores", 2) + 1
    other["made_of"] = ["a run that is elsewhere"]
    card.write_text(text := json.dumps({**other, documents.SHA256: documents.digest(other)}))
    links(tmp_path / "other", 1e-3, group_processes=2)
    assert card.read_text() == text


WRONG = [
    (("machine", "--config.batch=3"), "jaxbench machine takes no --config settings"),
    (("machine", "cnn"), "unexpected argument 'cnn'"),
    (("train", "matmul"), "'matmul' is not a model"),
    (("run", "activation", "--config.ops=gellu"), "--config.ops=gellu is unknown: did you mean 'gelu'?"),
    (("run", "matmul", *CPU, "--config.dtypes=float8_e4m3fn"), "float8_e4m3fn: a cpu does not compute"),
    (("run", "matmul", *CPU, "--config.dtypes=float33"), "--config.dtypes=float33 is unknown: did you mean"),
    (("run", "stream", *CPU, "--config.sizes=1e12"), "would hold 8 TB"),
    (("run", "stream", "--config.sizes=1k,lots"), "'lots' is not a size: write 1024, 1e6, 64Ki or 16Mi, for example"),
    (("run", "collectives", *CPU, "--config.mesh.shape=3x2"), "3x2 needs 6 devices, but there are 8: use 2x4"),
    (("run", "collectives", *CPU, "--config.sizes_from=matmul"), "matmul is not a training experiment"),
    (("run", "stream", "--config.cores=some"), "--config.cores=some is unknown"),
]


@pytest.mark.parametrize(("words", "sentence"), thin(WRONG, 2))
def test_bad_input_is_one_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    done = jaxbench(*words, f"--workdir={tmp_path / 'run'}")
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split()) and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


# The page of a machine: its profile, the figures of its runs, links to them, and their errors.


HOSTILE = "<b>cpu</b>&{{ 1 }}"


ALL = ("dispatch", "stream", "matmul", "collectives")


def made(
    folder: Path, changes: dict[str, Sequence[Made]] | None = None, *, views: Sequence[str] = ("dispatch", "matmul"),
    reports: bool = False, **facts: Any
) -> tuple[list[Path], dict[str, Any]]:  # fmt: skip
    """Runs of `jaxbench machine`: each with the profile and, if requested, its report."""
    found = []
    for view in views:
        cases = (changes or {}).get(view, runs.VIEWS[view]())
        named = [dataclasses.replace(m, record=dataclasses.replace(m.record, experiment=view)) for m in cases]
        found.append(runs.folder(folder / view, view, named, rounds=4, **facts))
    card = machine_profile.build([RunFolder(path) for path in found])
    for path in found:
        write_json(path / "machine.json", card)
        if reports:
            build.write(path)
    return found, card


@pytest.mark.full
def test_everything_is_on_one_page(tmp_path: Path) -> None:
    folders, card = made(tmp_path, views=ALL, reports=True)
    outcome = machine.write(tmp_path, folders, card)
    assert outcome.ok and outcome.sentences == []
    text = (tmp_path / "machine.html").read_text()
    assert "Fabricated CPU, 2 cores: machine profile" in text
    for said in ("Matrix products on 1 core: float32 ", "from memory, ", "empty program ", "2 devices: all-reduce "):
        assert said in text
    figures = re.findall(r'aria-label="(\S+) figure"', text)
    named = ["stream-stream", "matmul-matmul", "dispatch-dispatch", "collectives-busbw", "collectives-alpha_beta"]
    wide, phone = figures[::2], figures[1::2]
    assert wide == ["roofline", *named] and phone == [f"{name}-narrow" for name in wide]
    assert (tmp_path / "figures/roofline.svg").is_file()
    for peak in card["peaks"]:
        assert f"{peak['value'] / 1e9:.3g}"[:3] in text
    links = re.findall(r'<a href="([^#"]+)"', text)
    assert links == [f"{path.name}/report.html" for path in folders]
    assert all((tmp_path / link).is_file() for link in links)


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    folders, card = made(tmp_path, views=("dispatch",), reports=True)
    pages = []
    for _ in range(2):
        machine.write(tmp_path, folders, card)
        pages.append((tmp_path / "machine.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_problem_of_any_run_is_shown_here(tmp_path: Path) -> None:
    bad = [runs.removed(fab.matmul(320, call_s=0.01)), runs.wrong(fab.matmul(512, call_s=0.01))]
    bad.append(dataclasses.replace(fab.matmul(1024, call_s=0.02), rounds=0, failure="out of memory"))
    folders, card = made(tmp_path, {"matmul": [*runs.matmul(), *bad[:1], *bad[2:]]})
    outcome = machine.write(tmp_path, folders, card)
    assert not outcome.ok
    said = "matmul: matmul/float32/1024x1024x1024/jit is recorded as failed: measure: out of memory."
    assert outcome.sentences == [said]
    text = (tmp_path / "machine.html").read_text()
    assert "matmul float32 320x320x320 jit did not pass &#34;two clocks agree&#34;" in text
    assert "Incomplete or failed" in text


def test_no_run_is_not_ok_and_a_folder_that_is_none_one_sentence(tmp_path: Path) -> None:
    _, card = made(tmp_path)
    assert machine.write(tmp_path, [], card).sentences == ["No run was measured."]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="not a run folder"):
        machine.write(tmp_path, [tmp_path / "empty"], fab.card())


def test_the_card_is_printed_at_100_columns(tmp_path: Path) -> None:
    folders, card = made(tmp_path, views=ALL)
    with open(tmp_path / "out.txt", "w") as file:
        machine.write(tmp_path, folders[:1], card, Console(width=100, file=file))
    text = (tmp_path / "out.txt").read_text()
    assert max(map(len, text.splitlines())) <= 100
    for said in ("streaming, memory", "matrix product", "empty program", "µs + S / (", "2 devices° along x of 2x4"):
        assert said in text


def test_of_many_copies_the_terminal_shows_the_ends_and_the_page_all(tmp_path: Path) -> None:
    card = fab.card()
    copy = {"op": "d2d", "source": "a", "payload_bytes": 2**20, "lo": None, "hi": None}
    card["transfers"] = [{**copy, "target": f"b{i}", "value": 1e9 * i} for i in range(1, 9)]
    assert len([number for number in machine.numbers(card) if number.what == "d2d"]) == 8
    assert len(machine.brief(card).lines) == len(card["peaks"]) + 2


def test_hostile_names_are_escaped_and_a_link_of_an_odd_folder_is_an_address(tmp_path: Path) -> None:
    folders, card = made(tmp_path, manifest={"cpu_model": HOSTILE})
    machine.write(tmp_path, folders, card)
    text = unscripted((tmp_path / "machine.html").read_text())
    assert "<b>" not in text and "&lt;b&gt;cpu" in text
    assert "default-src 'none'" in text and not re.search(r"https?://|<script|<img|<image", text)
    folder = tmp_path / 'a "b" #c'
    folders, card = made(folder)
    machine.write(tmp_path, folders, card)
    text = (tmp_path / "machine.html").read_text()
    assert 'href="a%20%22b%22%20%23c/matmul/report.html"' in text
