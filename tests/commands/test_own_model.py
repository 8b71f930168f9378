# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A user's model, from the example that `jaxbench new` writes and docs/OWN_MODEL.md shows."""

import csv
import re

import jax
import pytest
from doorway import QUICK, ROOT, jaxbench
from thin import thin
from workload_cases import KEY, experiment_workload, one_device

from jaxbench import parallel, workloads
from jaxbench.commands import new
from jaxbench.errors import UserError
from jaxbench.measure import check

DOCUMENTATION = (ROOT / "docs" / "OWN_MODEL.md").read_text()
STYLES = [style for style in new.TEMPLATES if style not in ("step", "sums")]  # not models: test_own_step, test_sums


def test_the_documentation_shows_what_is_written(tmp_path):
    new.write(tmp_path / "mine.py", "nnx")
    assert re.findall(r"```python\n(.*?)```", DOCUMENTATION, re.DOTALL)[0] == (tmp_path / "mine.py").read_text()


def test_the_losses_that_the_documentation_names_are_there():
    (named,) = re.findall(r"^(`\w+`(?:, `\w+`)*) and others are in `jaxbench.workloads`", DOCUMENTATION, re.MULTILINE)
    assert set(re.findall(r"\w+", named)) <= set(workloads.__all__)


def test_there_is_one_for_each_adapter():
    assert list(new.TEMPLATES) == ["equinox", "functions", "haiku", "linen", "nnx", "step", "sums"]


@pytest.mark.full
@pytest.mark.parametrize("style", thin(["nnx", "haiku"], 1))
def test_new_then_run(tmp_path, style):
    done = jaxbench("new", "mine.py", f"--from={style}", cwd=tmp_path)
    assert done.returncode == 0 and "jaxbench run mine.py" in done.stdout, done.stdout + done.stderr
    done = jaxbench("run", "mine.py", "--workdir=out", *QUICK, "--config.model.dropout=0.0", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = list(csv.DictReader((tmp_path / "out" / "summary.csv").read_text().splitlines()))
    assert [(row["devices"], row["check_ok"], row["throughput_unit"]) for row in rows] == [
        ("1", "true", "rows/s"),
        ("2", "true", "rows/s"),
    ]


@pytest.mark.parametrize("style", thin(STYLES, 1))
def test_strategies_agree_with_one_device_and_the_dropout_is_there(tmp_path, style):
    path = tmp_path / "mine.py"
    new.write(path, style)
    mine = experiment_workload(str(path), **{"model.width": 16, "model.dropout": 0.0})
    batch = mine.synthetic(KEY, 16)
    expected = one_device(mine, batch)
    for strategy in ("shard_map", "jit_auto"):
        program = parallel.build(strategy, mine, jax.devices()[:2])
        verdict = check.judge(check.train(program, program.step, KEY, batch), expected, mine)
        assert verdict.ok, verdict.reason
    dropping = experiment_workload(str(path), **{"model.width": 16, "model.dropout": 0.5})
    params, model_state = dropping.init(KEY)
    losses = [dropping.loss(params, model_state, batch, key)[0] for key in (KEY, jax.random.PRNGKey(1))]
    assert losses[0] != losses[1]
    assert dropping.evaluate(params, model_state, batch)["loss"] == mine.evaluate(params, model_state, batch)["loss"]


def test_the_written_file_is_called_by_its_name_and_has_no_licence(tmp_path):
    new.write(tmp_path / "digits_net.py", "linen")
    text = (tmp_path / "digits_net.py").read_text()
    assert 'name="digits_net"' in text and "jaxbench run digits_net.py" in text
    assert text.startswith('"""My model') and "mine" not in text.replace('name="mine", train', "")


@pytest.mark.parametrize(
    ("name", "style", "sentence"),
    [
        ("there.py", "nnx", "'.*there.py' already exists and is not overwritten: choose another name"),
        ("mine", "nnx", "'.*mine' is not the name of a Python file: write jaxbench new .*mine.py"),
        ("mine.py", "linnen", "--from=linnen is unknown: did you mean 'linen'"),
        (
            "equinox.py",
            "nnx",
            "equinox.py' would hide the library of that name: choose another name, such as my_equinox.py",
        ),
    ],
)
def test_an_unwritable_folder_is_one_sentence(tmp_path, name, style, sentence):
    (tmp_path / "there.py").write_text("mine")
    with pytest.raises(UserError, match=sentence):
        new.write(tmp_path / name, style)
    assert [path.name for path in tmp_path.iterdir()] == ["there.py"]
    assert (tmp_path / "there.py").read_text() == "mine"
