# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A paper's command with fake runs: which runs it starts, continues and stores; its page, and the gallery."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import fabricate_papers as made
import jax
import pytest
from experiment_cases import points_of
from ml_collections import ConfigDict
from rich.console import Console
from thin import thin
from workload_cases import KEY

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.core.store import lock_folder
from jaxbench.errors import UserError
from jaxbench.suites.command import Ended
from jaxbench.suites.papers import page, session
from jaxbench.suites.papers import paper as library
from jaxbench.suites.papers.evidence import Evidence
from jaxbench.sweep import progress

ID = "shoeybi2019"
SCRIPT = "<script>alert(1)</script>"
MAKE = {"weak": made.scaling("weak", 0.95), "depth2": made.depths(14, 22)}


class Stand:
    """Replaces the start of commands: writes their folders. fails: other outcomes, by run."""

    def __init__(self, **fails: Any):
        self.asked, self.fails = list[str](), fails

    def launch(self, words: tuple[str, ...], log: Path, limit_s: float) -> Ended:
        folder = Path(words[-1].removeprefix("--workdir="))
        self.asked.append(folder.name)
        becomes = self.fails.get(folder.name, Ended(0, "fine"))
        if isinstance(becomes, KeyboardInterrupt):
            raise becomes
        if becomes.code == 0 and folder.name in MAKE:
            MAKE[folder.name](folder.parent)
        return becomes


def run(folder: Path, stand: Stand, id: str = ID, preset: str = "auto") -> tuple[bool, str]:
    console = Console(file=io.StringIO(), width=200)
    ok = session.paper(id, preset, folder, console, launch=stand.launch, clock=lambda: 0.0)
    return ok, console.file.getvalue()  # type: ignore[attr-defined]


def test_it_runs_what_is_missing_and_judges_every_claim(tmp_path: Path) -> None:
    stand = Stand()
    ok, said = run(tmp_path, stand)
    assert ok and stand.asked == ["weak", "depth2", "depth4"] and said.count("holds here") == 2
    found = page.read(tmp_path / page.DOCUMENT)
    assert [claim["verdict"] for claim in found["claims"]] == ["holds here", "holds here"]
    assert (tmp_path / "paper.html").is_file() and (tmp_path / "figures" / "paper.svg").is_file()
    again = Stand()
    assert run(tmp_path, again)[0] and not again.asked


def test_an_interrupt_leaves_a_page_and_the_same_command_continues(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Stand(depth2=KeyboardInterrupt()))
    found = page.read(tmp_path / page.DOCUMENT)
    outcomes = {name: about["outcome"] for name, about in found["runs"].items()}
    assert outcomes == {"weak": "done", "depth2": "stopped", "depth4": "not yet"}
    assert [claim["verdict"] for claim in found["claims"]] == ["holds here", "not measured yet"]
    assert "was interrupted" in found["claims"][1]["why"] and (tmp_path / "paper.html").is_file()
    more = Stand()
    assert run(tmp_path, more)[0] and more.asked == ["depth2", "depth4"]


def test_a_broken_run_is_said_escaped_and_tried_again(tmp_path: Path) -> None:
    ok, said = run(tmp_path, Stand(weak=Ended(-6, SCRIPT)))
    assert not ok and "broken" in said
    text = (tmp_path / "paper.html").read_text()
    assert SCRIPT not in text and "&lt;script&gt;" in text
    assert run(tmp_path, stand := Stand())[0] and stand.asked == ["weak"]


def test_a_run_that_this_version_lacks_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {name: path for name, path in discovery.experiments().items() if name != "time_to_target"}
    monkeypatch.setattr(discovery, "experiments", lambda: known)
    stand = Stand()
    ok, said = run(tmp_path, stand, "shallue2019")
    assert ok and not stand.asked and "no experiment 'time_to_target'" in said and "not testable here" in said


def test_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no paper 'goyal': .*goyal2017"):
        run(tmp_path, Stand(), "goyal")
    with pytest.raises(UserError, match="--preset=smoke is not a size of a paper"):
        run(tmp_path, Stand(), preset="smoke")
    (tmp_path / page.DOCUMENT).write_text("{}")
    with pytest.raises(UserError, match="not a jaxbench paper of this version"):
        run(tmp_path, Stand())
    (tmp_path / page.DOCUMENT).unlink()
    run(tmp_path, Stand())
    with pytest.raises(UserError, match="holds id 'shoeybi2019', not 'li2020'"):
        run(tmp_path, Stand(), "li2020")
    with lock_folder(tmp_path), pytest.raises(UserError):
        run(tmp_path, Stand())


def test_damaged_trainings_are_a_sentence(tmp_path: Path) -> None:
    made.trainings(made.halving)(tmp_path)
    lines = tmp_path / "targets" / "targets.jsonl"
    lines.write_text(lines.read_text().replace("accuracy", "other"))
    claim = library.load("goyal2017").claims[1]
    found = session.judged(claim, Evidence(tmp_path))
    assert "line 1 is damaged (no field 'accuracy')" in found["why"]


def test_the_gallery_has_every_paper_and_escapes_what_runs_say(tmp_path: Path, every_format: None) -> None:
    folder, docs = tmp_path / "papers", tmp_path / "docs"
    docs.mkdir()
    run(folder / ID, Stand())
    run(folder / "li2020", Stand(buckets=Ended(-6, SCRIPT), overlap=Ended(-6, SCRIPT)), "li2020")
    console = Console(file=io.StringIO(), width=200)
    page.gallery(folder, console, docs)
    text = (folder / page.GALLERY).read_text()
    assert (
        all(f'id="{id}"' in text for id in (ID, "li2020"))
        and SCRIPT not in text
        and "http:" not in text
        and "https:" not in text
    )
    text = (docs / page.MARKDOWN).read_text()
    assert (
        f"jaxbench paper {ID}" in text
        and "2 hold here" in text
        and f"| {ID} |" in text
        and "what two cores can show" in text
    )
    assert (docs / page.GALLERY_FIGURES / f"{ID}.png").is_file()


def test_the_gallery_leaves_the_documentation_alone_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every_format: None
) -> None:
    """Files in results/ must not overwrite a tracked file."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / page.MARKDOWN).write_text("kept\n")
    monkeypatch.chdir(tmp_path)
    folder = Path("results") / "papers"
    run(folder / ID, Stand())
    page.gallery(folder, Console(file=io.StringIO()))
    assert (tmp_path / "docs" / page.MARKDOWN).read_text() == "kept\n"
    assert (folder / page.MARKDOWN).is_file() and (folder / page.GALLERY_FIGURES / f"{ID}.png").is_file()


def test_a_log_says_which_run_is_under_way_and_what_it_said_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 0.02)
    console = Console(file=io.StringIO(), width=200)

    def launch(words: tuple[str, ...], log: Path, limit_s: float) -> Ended:
        log.parent.mkdir(exist_ok=True)
        log.write_text("jit/strong/2: prepared in 3 s, about 40 s left\n")
        until = time.monotonic() + 10
        while f"{log.stem}: jit/strong/2: prepared" not in console.file.getvalue():  # type: ignore[attr-defined]
            assert time.monotonic() < until
            time.sleep(0.01)
        return Ended(1, "fine")

    session.paper(ID, "auto", tmp_path, console, launch=launch)
    assert "run 1 of 3, weak: jit/strong/2: prepared in 3 s, about 40 s left" in console.file.getvalue()  # type: ignore[attr-defined]


def test_no_gallery_without_papers(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no paper yet"):
        page.gallery(tmp_path, Console(file=io.StringIO()))


SIZES = [(id, size) for size in session.PRESETS for id in library.names()]


@pytest.mark.parametrize(("id", "size"), thin(SIZES, [each for each in SIZES if each[1] == "auto"]))
def test_every_command_of_a_paper_is_one_of_the_suite(id: str, size: str) -> None:
    """The experiment, the preset and every setting exist, the points can be planned, and the model can be built."""
    paper = library.load(id)
    assert paper.id == id and len({run.name for run in paper.runs}) == len(paper.runs)
    for words in {run.at(size) for run in paper.runs}:
        if words == ("machine",) or words[1] not in discovery.experiments():
            assert words in (("machine",), ("run", "time_to_target"))
            continue
        preset = next((word.partition("=")[2] for word in words if word.startswith("--preset=")), "auto")
        config = config_lib.compose(words[1], discovery.load_experiment(words[1]), discovery.load_preset(preset))
        config_lib.check_overrides([word for word in words if word.startswith("--config.")], config)
        if "measures" in config:
            continue
        pairs = (word.removeprefix("--config.").partition("=") for word in words if word.startswith("--config."))
        with config.unlocked():
            config.update_from_flattened_dict({name: literal(config, name, text) for name, _, text in pairs})
        assert points_of(config)
        jax.eval_shape(discovery.build(words[1], config).init, KEY)


def literal(config: ConfigDict, name: str, text: str) -> Any:
    """The value that the command line parses from a setting's text."""
    group, _, last = name.rpartition(".")
    kind = (config[group] if group else config).get_type(last)
    return kind(json.loads(text.lower())) if kind in (int, float, bool) else text


def test_the_document_is_strict_json(tmp_path: Path) -> None:
    made.scaling("weak", 0.95, rounds=2)(tmp_path)  # too few for an efficiency
    claim = library.load(ID).claims[0]
    found = session.judged(claim, Evidence(tmp_path))
    assert json.loads(json.dumps(found, allow_nan=False))["verdict"] == "not testable here" and found["lo"] is None
