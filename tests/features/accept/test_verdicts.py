# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From rounds to verdicts: each planted fault is found and named, and a healthy fleet passes."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from features.accept.hosts import fleet, slow
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.features.accept import files, outcome, page, rule, sentences, verdicts
from jaxbench.features.accept.outcome import Acceptance, HostResult
from jaxbench.features.accept.reference_rates import References, asked
from jaxbench.features.accept.verdicts import Measured, Rule

PROBES = ("product_f32", "triad", "gpt", "allreduce_256", "heat", "doctor", "software")


def result_of(
    hosts: list[Measured], against: str = "", margin: float = 0.05, started: str = "2026-01-01"
) -> Acceptance:
    references = References(asked(against))
    references.refuse([kind for host in hosts for kind in host.kinds[:1]])
    cells = verdicts.judge(hosts, PROBES, Rule(margin=margin, look=1, against=references))
    by_host = verdicts.hosts_of(cells, hosts)
    results = tuple(
        HostResult(name=h.name, verdict=by_host[h.name], kinds=h.kinds, silent=h.silent, software=h.software)
        for h in hosts
    )
    return Acceptance(
        schema=outcome.SCHEMA,
        started=started,
        finished=started,
        seconds=1.0,
        verdict=rule.worst([*by_host.values()]),
        margin=margin,
        against=references.sentences,
        level=0.01,
        rounds=24,
        hosts=results,
        cells=tuple(cells),
        sentences=tuple(sentences.of(cells, results)),
    )


def test_a_healthy_fleet_passes() -> None:
    found = result_of(fleet(8))
    assert found.verdict == rule.PASS and found.exit_code == 0 and not found.sentences
    assert found.passing() == [f"h{n}" for n in range(8)] and not found.failing()


def test_a_slow_device_is_named_and_its_host_fails() -> None:
    hosts = fleet(8)
    slow(hosts[3], "product_f32", 1, 0.85)
    found = result_of(hosts)
    assert found.failing() == ["h3"] and found.exit_code == 1
    assert found.sentences[0].startswith("device 1 of h3 is slow in f32 product: 8")


def test_a_small_loss_near_the_margin_cannot_be_told() -> None:
    hosts = fleet(8, noise=0.05)
    slow(hosts[2], "triad", 0, 0.95)
    found = result_of(hosts)
    assert found.exit_code == 3 and "h2" not in found.passing() + found.failing()
    assert any("would need about" in sentence for sentence in found.sentences)
    words = r"^Rounds vary too much here for a margin of 5 %\. .* with --margin=(\d+)% these rounds would pass"
    (enough,) = re.findall(words, found.sentences[0])
    assert result_of(hosts, margin=int(enough) / 100).exit_code == 0
    assert result_of(hosts, margin=int(enough) / 100 - 0.011).exit_code == 3


def test_no_other_margin_is_named_where_something_failed() -> None:
    hosts = fleet(8, noise=0.05)
    slow(hosts[2], "triad", 0, 0.95)
    slow(hosts[3], "product_f32", 1, 0.6)
    found = result_of(hosts)
    assert found.exit_code == 1 and "--margin" not in " ".join(found.sentences)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"silent": "no answer in 60 s"}, "h1 does not answer: no answer in 60 s."),
        ({"software": {"jaxlib": "2"}}, "h1 has other software: jaxlib is 2, on most hosts 1."),
        ({"wrong": {("triad", 0): "its result has wrong bits"}}, "device 0 of h1 computes wrong bits in triad"),
        ({"findings": (("ECC", "bad", "GPU 0 has errors."),)}, "h1 is not fit: GPU 0 has errors."),
    ],
)
def test_a_fast_host_fails_for_its_facts(fault: dict[str, object], sentence: str) -> None:
    hosts = fleet(4)
    hosts[1] = dataclasses.replace(hosts[1], **fault)  # type: ignore[arg-type]
    found = result_of(hosts)
    assert found.failing() == ["h1"] and len(found.passing()) == 3
    assert found.sentences[0].startswith(sentence)


def test_two_hosts_with_different_software_have_no_majority() -> None:
    hosts = fleet(2)
    hosts[1] = dataclasses.replace(hosts[1], software={"jaxlib": "2"})
    found = result_of(hosts)
    assert found.exit_code == 3 and "jaxlib is 2, on as many hosts 1" in " ".join(found.sentences)


def test_a_device_that_heats_up_is_named() -> None:
    hosts = fleet(3)
    for number, seconds in hosts[0].seconds["gpt"].items():
        hosts[0].seconds["gpt"][number] = (seconds[0] * (1.3 if number >= 16 else 1.0), seconds[1])
    found = result_of(hosts)
    assert "device 0 of h0 became slower under load" in " ".join(found.sentences) and found.exit_code == 1


def test_a_card_judges_a_machine_that_is_slow_as_a_whole(tmp_path: Path) -> None:
    """A fleet cannot see that all of it is slow."""
    files.begin(tmp_path)
    files.write(tmp_path, result_of(fleet(2)))
    card = f"card:{tmp_path / outcome.FILE}"
    hosts = fleet(2, seed=1)
    assert result_of(hosts, card).exit_code == 0
    for host in hosts:
        for unit in (0, 1):
            slow(host, "product_f32", unit, 0.8)
    assert result_of(hosts, "fleet").exit_code == 0
    found = result_of(hosts, card)
    assert found.exit_code == 1 and found.failing() == ["h0", "h1"] and card.partition(":")[2] in found.sentences[0]
    other = [dataclasses.replace(host, kinds=("another chip",)) for host in hosts]
    with pytest.raises(UserError, match="is of chip, and this machine has another chip"):
        result_of(other, card)


def test_one_device_without_a_reference_cannot_be_told() -> None:
    found = result_of(fleet(1, devices=1))
    assert found.exit_code == 3 and "nothing could be judged" in found.sentences[-1]
    assert {cell.verdict for cell in found.cells if cell.probe == "triad"} == {rule.NOT_JUDGED}


def test_files_and_page_say_the_same(tmp_path: Path) -> None:
    hosts = fleet(4)
    hosts[2].wrong["triad", 1] = "its result has wrong bits"
    hosts[3].name = "n<3>/1"
    first = result_of(fleet(4), started="2025-12-31T10:00:00+00:00")
    files.begin(tmp_path)
    files.write(tmp_path, first)
    files.begin(tmp_path)
    assert not (tmp_path / files.FAILING).exists(), "an interrupted test must not leave the lists of an earlier one"
    found = result_of(hosts)
    files.write(tmp_path, found)
    page.write(tmp_path, found, Console(file=io.StringIO(), width=100))
    assert (tmp_path / files.FAILING).read_text() == "h2\n"
    assert (tmp_path / files.PASSING).read_text() == "h0\nh1\nn<3>\n"
    document = json.loads((tmp_path / outcome.FILE).read_text())
    assert document["verdict"] == "fail" and document["exit_code"] == 1 and document["failing"] == ["h2"]
    assert outcome.read(tmp_path / outcome.FILE) == found
    (suite,) = ElementTree.parse(tmp_path / files.JUNIT).getroot()
    assert suite.get("failures") == "1" and len(suite.findall("testcase")) == len(found.cells)
    lines = (tmp_path / files.METRICS).read_text().splitlines()
    assert lines[-1] == "# EOF" and 'jaxbench_accept_host_passed{host="h2"} 0' in lines
    assert "jaxbench_accept_exit_code 1" in lines
    text = (tmp_path / files.PAGE).read_text()
    assert "device 1 of h2 computes wrong bits in triad" in text and "n&lt;3&gt;/1" in text
    assert "h0, 2025-12-31T10:00:00+00:00: pass" in text, "the history"
