# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The README's own-model example, typed out as it stands there, and its Linen and plain-function variants."""

import csv
import re

import pytest
from doorway import QUICK, ROOT, jaxbench

README = (ROOT / "README.md").read_text()
EXAMPLE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]

NNX = re.search(r"class Net.*?\n\n\n", EXAMPLE, re.DOTALL)[0]
LINEN = """class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(5)(nn.relu(nn.Dense(64)(x)))


"""
BUILD = "model = from_nnx(lambda rngs: Net(config.model.width, rngs))"


def variant(style: str) -> str:
    if style == "nnx":
        return EXAMPLE
    if style == "linen":
        text = EXAMPLE.replace(NNX, LINEN).replace("from flax import nnx", "import jax\nfrom flax import linen as nn")
        made = "model = from_linen(Net(), jax.ShapeDtypeStruct((1, 32), jnp.float32))"
        assert made in README
        return text.replace(BUILD, made).replace("from_nnx", "from_linen")
    functions = "def init(key):\n    return {'w': jax.random.normal(key, (32, 5))}\n\n\ndef apply(params, x):\n"
    functions += "    return x @ params['w']\n\n\n"
    made = "model = from_functions(init, apply)"
    assert made in README
    text = EXAMPLE.replace(NNX, functions).replace("from flax import nnx", "import jax")
    return text.replace(BUILD, made).replace("from_nnx", "from_functions")


def test_the_example_is_short():
    assert len(EXAMPLE.splitlines()) <= 40


@pytest.mark.parametrize("style", ["nnx", "linen", "plain"])
def test_run(tmp_path, style):
    (tmp_path / "mine.py").write_text(variant(style))
    done = jaxbench("run", "mine.py", "--workdir=out", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = list(csv.DictReader((tmp_path / "out" / "summary.csv").read_text().splitlines()))
    assert [(row["devices"], row["check_ok"], row["throughput_unit"]) for row in rows] == [
        ("1", "true", "rows/s"),
        ("2", "true", "rows/s"),
    ]
