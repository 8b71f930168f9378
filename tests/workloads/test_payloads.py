# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A model's gradients as payloads, and the experiments that use them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ml_collections import ConfigDict

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.errors import UserError
from jaxbench.workloads import CaseSet, CollectiveWorkload, TransferWorkload
from jaxbench.workloads.cases import COLLECTIVES, TRANSFERS, gradient_sizes

HEADER = "from ml_collections import ConfigDict\n"


def cases(experiment: str, **changes: Any) -> CaseSet:
    module = discovery.load_experiment(experiment)
    config = config_lib.compose(experiment, module, discovery.load_preset("auto"))
    with config.unlocked():
        config.update_from_flattened_dict(changes)
    return module.build(config)


def test_the_perceptron_has_four_parameter_arrays() -> None:
    weights, total = (784 * 128, 128 * 10), 784 * 128 + 128 + 128 * 10 + 10
    assert gradient_sizes("mlp") == [4 * n for n in (10, 128, weights[1], weights[0], total)]


def test_sizes_that_two_arrays_share_are_listed_once_and_ascend() -> None:
    found = gradient_sizes("cnn")
    assert found == sorted(set(found)) and found[-1] == 861_480  # 215,370 parameters
    assert found[:-1] == [40, 64, 128, 512, 1600, 5120, 51200, 802816]


def test_no_backend_is_started() -> None:
    code = (
        "from jax._src import xla_bridge\n"
        "from jaxbench.workloads.cases import gradient_sizes\n"
        "assert gradient_sizes('cnn')\n"
        "assert not xla_bridge.backends_are_initialized()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_persons_own_training_experiment_will_do(tmp_path: Path) -> None:
    text = Path(discovery.experiment_path("mlp")).read_text()
    (tmp_path / "mine.py").write_text(text.replace('"width": 128', '"width": 32'))
    assert 4 * 784 * 32 in gradient_sizes(str(tmp_path / "mine.py"))


def test_an_experiment_that_trains_nothing_is_refused_with_those_that_do() -> None:
    with pytest.raises(UserError) as caught:
        gradient_sizes("transfer")
    *most, last = config_lib.training_experiments()
    said = f"choose {', '.join(most)} or {last}."
    assert str(caught.value) == f"--config.sizes_from=transfer is not a training experiment: {said}"


def test_one_that_asks_for_itself_is_refused_before_it_is_built(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        f"{HEADER}from jaxbench.workloads.cases import gradient_sizes\n"
        "def get_config():\n    return ConfigDict({'measures': 'cases'})\n"
        "def build(config):\n    return gradient_sizes(__file__)\n"
    )
    with pytest.raises(UserError, match="is not a training experiment: choose alexnet, cnn, "):
        gradient_sizes(str(tmp_path / "mine.py"))


def test_one_that_builds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def build(config):\n    return 3\n")
    with pytest.raises(UserError, match="is not a training experiment: choose alexnet, cnn, "):
        gradient_sizes(str(tmp_path / "mine.py"))


def test_an_unknown_experiment_names_a_near_one() -> None:
    with pytest.raises(UserError, match="unknown experiment 'cnnn': did you mean 'cnn'"):
        gradient_sizes("cnnn")


def test_collectives_by_default_are_all_six_from_a_kibibyte_to_a_gibibyte() -> None:
    found = cases("collectives")
    assert (found.view, found.typed) == ("collectives", False)
    assert all(isinstance(case, CollectiveWorkload) for case in found.cases)
    assert {case.op for case in found.cases} == set(COLLECTIVES) and {c.dtype for c in found.cases} == {"float32"}
    sizes = sorted({case.payload_bytes for case in found.cases if isinstance(case, CollectiveWorkload)})
    assert sizes[0] == 2**10 and sizes[-1] == 2**30 and {b // a for a, b in zip(sizes, sizes[1:])} == {4}  # noqa: B905
    assert len(found.cases) == 6 * 11 == len({case.key for case in found.cases})


def test_a_models_gradients_are_reduced_unless_other_ops_are_typed() -> None:
    found = cases("collectives", sizes_from="mlp")
    assert [(case.op, case.payload_bytes) for case in found.cases if isinstance(case, CollectiveWorkload)] == [
        ("all_reduce", size) for size in gradient_sizes("mlp")
    ]
    assert found.typed  # they are explicit: one that does not fit is an error
    typed = cases("collectives", sizes_from="mlp", ops="all_gather,all_reduce")
    assert {case.op for case in typed.cases} == {"all_gather", "all_reduce"}


def test_transfers_by_default_end_with_a_quarter_gibibyte() -> None:
    found = cases("transfer")
    assert (found.view, found.typed) == ("transfer", False)
    assert {case.op for case in found.cases} == set(TRANSFERS)
    sizes = sorted({case.payload_bytes for case in found.cases if isinstance(case, TransferWorkload)})
    assert sizes == [2**10, 2**14, 2**18, 2**22, 2**26, 2**28]


@pytest.mark.parametrize("experiment", ["collectives", "transfer"])
def test_typed_sizes_and_dtypes(experiment: str) -> None:
    found = cases(experiment, sizes="1Ki,2000", dtypes="float32,bfloat16", ops="all")
    assert found.typed
    assert {(case.dtype, case.payload_bytes) for case in found.cases if not hasattr(case, "flops")} == {
        (dtype, size) for dtype in ("float32", "bfloat16") for size in (1024, 2000)
    }


@pytest.mark.parametrize(
    ("experiment", "changes", "sentence"),
    [
        ("collectives", {"ops": "allreduce"}, "--config.ops=allreduce is unknown: did you mean 'all_reduce'?"),
        ("collectives", {"dtypes": "bfloat"}, "--config.dtypes=bfloat is unknown: did you mean 'bfloat16'?"),
        ("transfer", {"ops": "host"}, "--config.ops=host is unknown: choose one of: device_to_device, "),
        (
            "collectives",
            {"sizes": "1024", "sizes_from": "cnn"},
            "--config.sizes=1024 and --config.sizes_from=cnn are both set: leave one out.",
        ),
    ],
)
def test_bad_input_is_one_sentence(experiment: str, changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        cases(experiment, **changes)
    assert str(caught.value).startswith(sentence)


def test_a_config_can_be_typed_on_the_command_line() -> None:
    config = config_lib.compose("collectives", discovery.load_experiment("collectives"), discovery.load_preset("auto"))
    assert isinstance(config, ConfigDict)
    config_lib.check_overrides(
        ["--config.sizes_from=cnn", "--config.ops=all_reduce", "--config.mesh.shape=2x4"], config
    )
