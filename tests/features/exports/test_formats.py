# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Each export as its own reader or schema reads it, with the numbers of the run."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import fabricate
import jsonschema
import pytest
from doorway import jaxbench
from house.tree import ROOT
from markdown_it import MarkdownIt
from mlperf_logging import compliance_checker
from mlperf_logging.compliance_checker import mlp_compliance, mlp_parser
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

import jaxbench as jb
from jaxbench.errors import UserError
from jaxbench.features.exports import formats, markdown, source, texts

CNN, TARGETS = ROOT / "docs" / "figures" / "cnn", ROOT / "docs" / "figures" / "time_to_target"
RULESET = "4.1.0"  # of MLPerf training: newer ones ask for the parallelism of a cluster
TRAIN = ("train", "mlp", "--config.mesh.devices=1", "--config.mesh.platform=cpu", "--config.train.epochs=1")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with intervals, without an efficiency above 1, and with more devices than cores at 8 devices."""
    path = tmp_path_factory.mktemp("run") / "run"
    return fabricate.run_folder(path, cores=4, rounds=12, processes=3, scalings=("strong",))


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("training") / "mlp"
    done = jaxbench(*TRAIN, "--config.train.target=0.5", f"--workdir={path}")
    assert done.returncode == 0, done.stderr
    return path


def row(path: Path, point: str) -> dict[str, float]:
    table = jb.load(path).table
    strategy, scaling, devices = point.split("/")
    rows = zip(table.strategy, table.scaling, table.devices, strict=True)
    return dict(table.iloc[[*rows].index((strategy, scaling, int(devices)))])


def test_bencher_takes_the_metrics_with_their_intervals(run: Path) -> None:
    found = json.loads(jb.export(run, "bmf").read_text())
    jsonschema.validate(found, json.loads(Path(__file__).with_name("bmf.schema.json").read_text()))
    assert [*found] == [f"cnn/shard_map/strong/{n}" for n in (1, 2, 4)]  # 8 devices have no core each
    asked = row(run, "shard_map/strong/2")
    latency = found["cnn/shard_map/strong/2"]["latency"]
    assert latency["value"] == pytest.approx(1e9 * asked["step_s"])
    assert latency["lower_value"] == pytest.approx(1e9 * asked["step_s_lo"])
    assert latency["lower_value"] < latency["value"] < latency["upper_value"]
    assert found["cnn/shard_map/strong/2"]["efficiency"]["value"] == pytest.approx(asked["efficiency"])
    assert found["cnn/shard_map/strong/2"]["peak-memory"] == {"value": 6_050_000}


def test_pytest_benchmark_reads_and_compares_its_json(run: Path, tmp_path: Path) -> None:
    path = jb.export(run, "pytest-benchmark", folder=tmp_path)
    compare = [sys.executable, "-m", "pytest_benchmark", "compare", str(path), f"--csv={tmp_path / 'out.csv'}"]
    done = subprocess.run(compare, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for n in (1, 2, 4):
        assert f"shard_map/strong/{n}" in done.stdout
    document = json.loads(path.read_text())
    one = document["benchmarks"][0]
    blocks = [line["block_s"] for line in map(json.loads, (run / "records.jsonl").read_text().splitlines())
              if line["kind"] == "round" and line["point"] == "shard_map/strong/1"]  # fmt: skip
    assert one["stats"]["data"] == [seconds / 20 for block in blocks for seconds in block]
    assert one["stats"]["rounds"] == 24 and one["fullname"] == "cnn/shard_map/strong/1"


def test_the_statistics_are_those_of_pytest_benchmark() -> None:
    """Compared with the statistics that it computes itself."""
    from pytest_benchmark.stats import Stats

    times = (1.0, 1.1, 1.2, 1.15, 1.05, 9.0, 1.02, 1.3)
    theirs, ours = Stats(), texts.stats(times, 1)
    for each in times:
        theirs.update(each)
    names = ("min", "max", "mean", "stddev", "rounds", "median", "total", "ops", "stddev_outliers", "iqr_outliers")
    for name in names:
        assert ours[name] == pytest.approx(getattr(theirs, name)), name


def test_prometheus_and_openmetrics_read_the_same_gauges(run: Path) -> None:
    text = jb.export(run, "openmetrics").read_text()
    new = {family.name: family for family in openmetrics.text_string_to_metric_families(text)}
    old = {family.name: family for family in parser.text_string_to_metric_families(text)}  # node exporter's format
    assert new.keys() == old.keys() and {family.type for family in new.values()} == {"gauge"}
    asked = row(run, "shard_map/strong/4")
    labels = {"experiment": "cnn", "point": "shard_map/strong/4", "devices": "4"}
    for name, column in (
        ("jaxbench_step_seconds", "step_s"),
        ("jaxbench_step_lower_seconds", "step_s_lo"),
        ("jaxbench_step_upper_seconds", "step_s_hi"),
        ("jaxbench_efficiency_ratio", "efficiency"),
    ):
        for families in (new, old):
            (value,) = [each.value for each in families[name].samples if each.labels == labels]
            assert value == pytest.approx(asked[column]), name
    # The textfile collector skips a whole file for one of these.
    assert not [sample for family in new.values() for sample in family.samples if sample.timestamp is not None]
    assert new["jaxbench_step_seconds"].unit == "seconds" and text.endswith("# EOF\n")


def test_a_hostile_name_stays_one_label(tmp_path: Path) -> None:
    path = fabricate.run_folder(tmp_path / "a", devices=(1,), experiment='x"} 1\n\\evil{a="', rounds=6, processes=3)
    text = jb.export(path, "openmetrics").read_text()
    (family,) = [f for f in openmetrics.text_string_to_metric_families(text) if f.name == "jaxbench_step_seconds"]
    assert {sample.labels["experiment"] for sample in family.samples} == {'x"} 1\n\\evil{a="'}
    for to in ("bmf", "pytest-benchmark", "summary"):
        jb.export(path, to).read_text()


@pytest.mark.parametrize("how", [dict(wrong=["shard_map/strong/2"]), dict(cores=1)])
def test_a_number_that_the_page_does_not_stand_by_is_not_exported(tmp_path: Path, how) -> None:
    path = fabricate.run_folder(tmp_path / "a", devices=(1, 2), scalings=("strong",), rounds=6, processes=3, **how)
    assert [*json.loads(jb.export(path, "bmf").read_text())] == ["cnn/shard_map/strong/1"]
    if "wrong" in how:
        assert "differ from those of one device" in jb.export(path, "summary").read_text()


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.feed(text)
        assert not self.opened, "a tag that is not closed hides what follows"

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


def test_the_summary_is_markdown_and_goes_to_the_page_of_the_job(run: Path, tmp_path: Path, monkeypatch) -> None:
    (page := tmp_path / "page.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    text = jb.export(run, "summary").read_text()
    assert page.read_text() == f"before\n{text}\n"
    assert text.startswith("## cnn: how training scales over devices\n") and jb.load(
        run
    ).headline in MarkdownIt().render(text)
    rendered = MarkdownIt("js-default", {"html": True}).render(text)
    assert rendered.count("<table>") == 1 and rendered.count("<tr>") == 1 + 4
    Tags(rendered.replace("<br>", "").replace("<hr>", ""))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    jb.export(run, "bmf")
    assert page.read_text() == f"before\n{text}\n"


def test_a_long_summary_still_fits_into_an_issue() -> None:
    sections = [(f"part {i}", ["a long sentence " * 40] * 20) for i in range(30)]
    text = markdown.document("title", ["headline"], None, sections)
    assert 60_000 < len(text) <= 65_536 and "The rest does not fit" in text
    Tags(text)
    assert markdown.limited("short") == "short"


def test_of_trainings_to_a_target(tmp_path: Path) -> None:
    found = json.loads(jb.export(TARGETS, "bmf", folder=tmp_path).read_text())
    jsonschema.validate(found, json.loads(Path(__file__).with_name("bmf.schema.json").read_text()))
    some = found["time_to_target/mlp/sqrt/batch8/1"]
    assert some["time-to-target"]["lower_value"] < some["time-to-target"]["value"] and some["steps-to-target"]
    assert "critical" in (text := jb.export(TARGETS, "summary", folder=tmp_path).read_text()) or "knee" in text
    openmetrics.text_string_to_metric_families(jb.export(TARGETS, "openmetrics", folder=tmp_path).read_text())
    with pytest.raises(jb.JaxbenchError, match="has no timed blocks"):
        jb.export(TARGETS, "pytest-benchmark", folder=tmp_path)


def test_mlperfs_checker_accepts_the_log_of_a_training(training: Path) -> None:
    folder = jb.export(training, "mlperf")
    (log,) = folder.iterdir()
    lines, errors = mlp_parser.parse_file(str(log), ruleset=RULESET)
    assert not errors and len(lines) == len(log.read_text().splitlines())
    events = {line.key: line for line in lines}
    (*_, last) = [json.loads(line) for line in (training / "metrics.jsonl").read_text().splitlines()]
    assert events["eval_accuracy"].value["value"] == last["test_accuracy"]
    seconds = (events["run_stop"].timestamp - events["run_start"].timestamp) / 1e3
    assert seconds == pytest.approx(last["elapsed_s"] - last["compile_s"], abs=2e-3)
    assert events["run_stop"].value["metadata"]["status"] == "success"
    assert events["train_samples"].value["value"] + events["eval_samples"].value["value"] == 1797
    assert complaints(log) == []


def test_mlperfs_checker_complains_of_a_log_without_its_start(training: Path, tmp_path: Path) -> None:
    (log,) = jb.export(training, "mlperf").iterdir()
    (cut := tmp_path / "cut.log").write_text("".join(
        line for line in log.read_text().splitlines(keepends=True) if "run_start" not in line
    ))  # fmt: skip
    assert any("run_start" in each for each in complaints(cut))


def complaints(log: Path) -> list[str]:
    """What MLPerf's own rules for all benchmarks say. Those for one benchmark need a model that is in MLPerf."""
    rules = Path(compliance_checker.__file__).parent / f"training_{RULESET}" / "common.yaml"
    checker = mlp_compliance.ComplianceChecker("training", RULESET, quiet=False, werror=True)
    checker.configured_checks(mlp_parser.parse_file(str(log), ruleset=RULESET)[0], rules)
    return [*checker.overwritable.values(), *checker.not_overwritable]


def test_a_training_that_missed_its_target_has_no_time_to_it(tmp_path: Path) -> None:
    done = jaxbench(*TRAIN, "--config.train.target=0.9999", f"--workdir={tmp_path / 'a'}")
    assert done.returncode == 1
    (log,) = jb.export(tmp_path / "a", "mlperf").iterdir()
    assert '"status": "aborted"' in log.read_text()
    assert json.loads(jb.export(tmp_path / "a", "bmf").read_text()) == {}
    assert "was not reached" in jb.export(tmp_path / "a", "summary").read_text()


def test_a_comparison_exports_its_ratio_and_the_numbers_of_b(run: Path, tmp_path: Path) -> None:
    other = fabricate.run_folder(
        tmp_path / "b", cores=4, rounds=12, processes=3, scalings=("strong",), base_step_s=0.02
    )
    compared = jb.compare(run, other)
    found = json.loads(jb.export(compared, "bmf", folder=tmp_path / "out").read_text())
    table = compared.table.set_index("point")
    name = "shard_map/strong/2"
    ratio = found[f"cnn/{name}"]["ratio"]
    assert ratio["value"] == pytest.approx(table.ratio[name]) and ratio["value"] > 1.3
    assert (ratio["lower_value"], ratio["upper_value"]) == (table.ratio_lo[name], table.ratio_hi[name])
    assert found[f"cnn/{name}"]["latency"]["value"] == pytest.approx(1e9 * row(other, name)["step_s"])
    assert found["cnn/overall"].keys() == {"ratio"}
    assert "Slower" in jb.export(compared, "summary", folder=tmp_path / "out").read_text()
    with pytest.raises(jb.JaxbenchError, match="folder='results/compared'"):
        jb.export(compared, "bmf")


@pytest.mark.parametrize(
    ("to", "says"),
    [("bmff", "did you mean 'bmf'"), ("mlperf", "trained nothing to a target, which --export=mlperf logs")],
)
def test_what_cannot_be_exported_is_one_sentence(run: Path, to: str, says: str) -> None:
    with pytest.raises(jb.JaxbenchError, match=says):
        jb.export(run, to)


def test_names_are_checked_before_anything_is_written(run: Path, tmp_path: Path) -> None:
    assert formats.parse("bmf, summary,bmf") == ("bmf", "summary")
    with pytest.raises(UserError, match="names the unknown format ''"):
        formats.parse("bmf,")
    asked = source.find(run)
    asked.folder = tmp_path
    with pytest.raises(UserError):
        formats.write(asked, ["bmf", "mlperf"])
    assert not [*tmp_path.iterdir()]


def test_no_number_is_nan(run: Path) -> None:
    numbers = [each.value.value for each in source.find(run).measures()]
    assert numbers and all(map(math.isfinite, numbers))
