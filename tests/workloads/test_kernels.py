# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every kernel of every experiment: names, sizes, FLOPs, bytes, right results, and messages for a wrong config."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from house.tree import ROOT
from kernel_cases import SEED, composed, experiments_with_kernels, kernels, one_of_each, run
from ml_collections import ConfigDict
from thin import thin

from jaxbench import config as config_lib
from jaxbench import discovery
from jaxbench.cases import runnable
from jaxbench.cases.case_bench import build_cases
from jaxbench.cases.placement import CPU_FLOPS
from jaxbench.cases.runnable import count_wrong
from jaxbench.errors import UserError
from jaxbench.workloads import CaseSet, CollectiveWorkload, TransferWorkload
from jaxbench.workloads.cases import COLLECTIVES, TRANSFERS, VIEWS, gradient_sizes
from jaxbench.workloads.kernels import by_hand, elementwise, matmul, to_target, versus

CASES = one_of_each()


def leaves(result: Any) -> list[np.ndarray]:
    """The arrays of a result; a list of Python numbers is one."""
    return [np.asarray(x) for x in ([result] if isinstance(result, list) else jax.tree.leaves(result))]


def spoiled(result: Any) -> Any:
    """The result with its first value off by 1."""
    if isinstance(result, list):
        return [result[0] + 1, *result[1:]]
    first, *rest = map(np.array, leaves(result))
    first.flat[0] += 1
    return jax.tree.unflatten(jax.tree.structure(result), [first, *rest])


@pytest.mark.parametrize("label", thin([*CASES], [*CASES][::2]))
def test_results_are_right_and_a_wrong_one_is_seen(label: str) -> None:
    case = CASES[label]
    ran = run(case)
    assert (ran.wrong, ran.looped_wrong) == (0, 0)
    assert count_wrong(case, spoiled(ran.result), SEED) >= 1
    if case.impl != "python":  # Python numbers have double precision
        assert str(leaves(ran.result)[0].dtype) == matmul.RESULT.get(case.dtype, case.dtype)
        held = sum(a.nbytes for a in case.arguments) + sum(x.nbytes for x in leaves(ran.result))
        assert held <= case.resident_bytes


@pytest.mark.parametrize("shape", ["tall", "batched"])
@pytest.mark.parametrize("impl", ["jit", "numpy"])
def test_other_shapes_of_products_are_right(shape: str, impl: str) -> None:
    (case,) = kernels("matmul", shapes=shape, sizes="128", dtypes="float32", impls=impl)
    assert run(case).wrong == 0


@pytest.mark.parametrize("experiment", ["activation", "stream", "fusion"])
def test_one_element_is_a_size(experiment: str) -> None:
    for case in kernels(experiment, sizes="1"):
        assert run(case).wrong == 0, case.key


def test_integer_products_are_exact() -> None:
    (case,) = kernels("matmul", shapes="square", sizes="64", dtypes="int8")
    a, b = np.random.default_rng(0).integers(-1000, 1000, (2, 64, 64))
    right = a @ b
    assert case.wrong is not None and case.wrong(right, (a, b)) == 0
    right[5, 5] += 1
    assert case.wrong(right, (a, b)) == 1


@pytest.mark.parametrize("lie", ["Q = A, R = 1", "L not lower", "singular values not sorted", "not-a-number"])
def test_factors_that_multiply_to_the_matrix_must_be_of_the_right_kind(lie: str) -> None:
    n = 8
    a = np.random.default_rng(0).standard_normal((n, n))
    symmetric = a @ a.T + n * np.eye(n)
    turned = np.linalg.qr(a)[0]
    u, s, vt = np.linalg.svd(a)
    op, matrix, factors = {
        "Q = A, R = 1": ("qr", a, (a, np.eye(n))),
        "L not lower": ("cholesky", symmetric, (np.linalg.cholesky(symmetric) @ turned,)),
        "singular values not sorted": ("svd", a, (u[:, ::-1], s[::-1], vt[::-1])),
        "not-a-number": ("qr", a, tuple(np.linalg.qr(a * np.nan))),
    }[lie]
    (case,) = kernels("linalg", ops=op, sizes=str(n), dtypes="float64", impls="jit")
    assert case.wrong is not None and case.wrong(factors, (matrix,)) > 0
    right = {"qr": lambda: np.linalg.qr(a), "cholesky": lambda: (np.linalg.cholesky(symmetric),)}.get(
        op, lambda: (u, s, vt)
    )
    assert case.wrong(tuple(right()), (matrix,)) == 0


EXPERIMENTS = experiments_with_kernels()


def one(name: str, **changes: Any):
    (case,) = kernels(name, **changes)
    return case


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_case_has_a_name_of_its_own_and_a_right_answer(name: str) -> None:
    cases = kernels(name)
    assert len({case.key for case in cases}) == len(cases)
    assert build_cases(composed(name), name).view in VIEWS
    for case in cases:
        assert (case.function is None) != (case.prepare is None), case.key
        assert (case.answer is None) != (case.wrong is None), case.key


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("field", ["ops", "impls", "dtypes"])
def test_an_unknown_name_is_answered_with_a_near_one(name: str, field: str) -> None:
    first = str(composed(name)[field]).split(",")[0]
    known = {"ops": kernels(name)[0].op, "impls": kernels(name)[0].impl}.get(field, first)
    with pytest.raises(UserError, match=f"--config.{field}={known}x is unknown: did you mean '{known}'"):
        kernels(name, **{field: f"{known}x"})


@pytest.mark.parametrize("name", [n for n in EXPERIMENTS if n != "dispatch"])
def test_sizes_that_were_typed_are_marked_so(name: str) -> None:
    assert not build_cases(composed(name), name).typed
    assert build_cases(composed(name, sizes="64"), name).typed
    with pytest.raises(UserError, match="is not a size"):
        kernels(name, sizes="many")


def test_dispatch_has_no_sizes() -> None:
    with pytest.raises(UserError, match="sizes=64.* use auto"):
        kernels("dispatch", sizes="64")


def test_building_cases_touches_no_device() -> None:
    """The parent of a run builds them and must not start a backend: no backend has this name."""
    code = (
        "import jax; jax.config.update('jax_platforms', 'nowhere')\n"
        f"from kernel_cases import kernels\nassert all(kernels(name) for name in {EXPERIMENTS})\n"
        "from jaxbench.workloads.cases import gradient_sizes\nassert gradient_sizes('cnn')"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = ['.', 'tests']\n{code}"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_work_of_each_kernel_by_hand() -> None:
    relu = one("activation", ops="relu", sizes="1000", impls="jit")
    assert (relu.flops, relu.bytes_moved) == (1000, 8000)
    assert one("activation", ops="tanh", sizes="1000", impls="jit").flops is None
    assert one("activation", ops="tanh", sizes="1000", impls="python").bytes_moved is None
    stream = {op: one("stream", ops=op, sizes="1Ki", impls="jit") for op in ("copy", "scale", "add", "triad")}
    assert [case.bytes_moved for case in stream.values()] == [8192, 8192, 12288, 12288]
    assert [case.flops for case in stream.values()] == [None, 1024, 1024, 2048]
    assert one("linalg", ops="cholesky", sizes="30", impls="jit").flops == 9000
    assert one("linalg", ops="lu", sizes="30", impls="scipy").flops == 18000
    assert one("linalg", ops="qr", sizes="30", impls="numpy").flops == 72000
    assert one("linalg", ops="svd", sizes="30", impls="jit").flops is None
    rows = {op: one("versus", ops=op, sizes="10", impls="jit").flops for op in ("product", "mlp", "cnn", "lstm")}
    first, last = 2 * 784 * 128, 2 * 128 * 10
    assert (rows["product"], rows["mlp"]) == (10 * first, 10 * (2 * first + 3 * last))
    assert rows["cnn"] == 10 * (2 * 2 * 12 * 12 * 25 * 8 + 3 * 2 * 12 * 12 * 8 * 10)
    assert rows["lstm"] == 10 * 3 * (16 * 2 * (16 + 32) * 128 + 2 * 32 * 5)


@pytest.mark.parametrize(
    "shape, label, operands",
    [
        ("square", "1024x1024x1024", 2 * 1024**2),
        ("tall", "16384x256x256", 16384 * 256 + 256**2),
        ("batched", "64x256x256x256", 2 * 64 * 256**2),
    ],
)
def test_products_of_one_size_have_the_same_work_in_every_shape(shape: str, label: str, operands: int) -> None:
    case = one("matmul", shapes=shape, sizes="1024", dtypes="bfloat16", impls="jit")
    assert (case.shape, case.elements, case.flops) == (label, 1024, 2 * 1024**3)
    results = operands // 2 if shape != "tall" else 16384 * 256
    assert case.bytes_moved == 2 * (operands + results)


def test_short_formats_return_longer_ones() -> None:
    case = one("matmul", shapes="square", sizes="1024", dtypes="int8", impls="jit")
    assert case.bytes_moved == (1 + 1 + 4) * 1024**2


def test_only_what_can_be_tiled_is() -> None:
    tiled = [c for c in kernels("matmul", dtypes="float32,bfloat16") if c.impl.endswith("tiled")]
    assert {c.shape for c in tiled} == {f"{s}x{s}x{s}" for s in (256, 512, 1024)}
    assert {c.dtype for c in tiled} == {"float32"}
    assert {c.dtype for c in kernels("matmul", dtypes="float32,bfloat16") if c.impl == "numpy"} == {"float32"}


def test_the_search_has_27_shapes_for_a_cpu_and_the_published_winners_for_others() -> None:
    found = kernels("matmul", search=True, dtypes="bfloat16")
    assert {c.impl for c in found} == {"jit"}
    assert len([c for c in found if c.flops <= CPU_FLOPS]) == 27
    assert {"16384x16384x16384", "1024x10240x5120", "2048x2048x13312", "1792x16128x3072"} < {c.shape for c in found}
    assert len(kernels("matmul", search=True, sizes="64,128", dtypes="bfloat16")) == 8


def test_a_product_with_a_term_left_out_is_wrong_and_one_of_rounded_factors_is_not() -> None:
    case = one("matmul", shapes="square", sizes="512", dtypes="float32", impls="jit")
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 512, 512))
    assert case.wrong(a[:, 1:] @ b[1:], (a, b)) > 10_000
    short = (x.astype(jax.numpy.bfloat16).astype(float) for x in (a, b))
    assert case.wrong(next(short) @ next(short), (a, b)) == 0
    assert matmul.wrong_rows(a @ b * (1 + 1e-3), (a, b), 1e-5) > 100_000


@pytest.mark.parametrize("op", elementwise.FUSION.ops)
@pytest.mark.parametrize("elements", [500, 20_000])
def test_passes_over_memory_are_what_the_operations_read_and_write(op: str, elements: int) -> None:
    """Counted by running the kernel with an `op` that adds up the bytes of operands and result."""
    moved = 0

    def count(function, *operands):
        nonlocal moved
        result = jax.eval_shape(lambda *arrays: function(*_filled(operands, arrays)), *_arrays(operands))
        moved += sum(x.size * 4 for x in {id(x): x for x in _arrays(operands)}.values()) + result.size * 4
        return result

    given = elementwise.fusion_arguments(op, "float32", elements)
    elementwise.FUSION_KERNELS[op].function(count, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in given))
    stored, fused = (one("fusion", ops=op, sizes=str(elements), impls=impl) for impl in ("op_by_op", "fused"))
    assert stored.bytes_moved == moved
    assert fused.bytes_moved == sum(a.nbytes for a in given) + given[0].nbytes


def _arrays(operands):
    return [x for x in operands if isinstance(x, jax.ShapeDtypeStruct)]


def _filled(operands, arrays):
    left = iter(arrays)
    return [next(left) if isinstance(x, jax.ShapeDtypeStruct) else x for x in operands]


def slow_gains(first, second, bins, node):
    """Every split of every node and column, row by row."""
    found = np.zeros((by_hand.NODES, by_hand.COLUMNS))
    for place in range(by_hand.NODES):
        inside = node == by_hand.NODES + place
        g, h = first[inside], second[inside]
        whole = g.sum() ** 2 / (h.sum() + by_hand.L2)
        for column in range(by_hand.COLUMNS):
            splits = [bins[inside, column] <= edge for edge in range(by_hand.BINS)]
            gains = [
                g[s].sum() ** 2 / (h[s].sum() + by_hand.L2) + g[~s].sum() ** 2 / (h[~s].sum() + by_hand.L2) - whole
                for s in splits
            ]
            found[place, column] = max(gains)
    return found


def test_the_best_gains_of_a_level_are_those_of_a_plain_loop() -> None:
    arrays = runnable.draw_arguments(versus.JOBS["gbdt"].arrays(40), seed=3)
    assert arrays[3].min() >= by_hand.NODES and arrays[3].max() < 2 * by_hand.NODES and (arrays[1] > 0).all()
    right = slow_gains(*(array.astype(float if array.dtype == np.float32 else int) for array in arrays))
    assert by_hand.level(*arrays) == pytest.approx(right, rel=1e-4, abs=1e-5)
    assert np.asarray(versus._level(*arrays)) == pytest.approx(right, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("op", versus.OPS)
def test_starting_takes_every_argument_and_gives_as_many_results_as_the_job(op: str) -> None:
    """A jitted function drops unused arguments: passing them would not be timed."""
    (case,) = versus.cases(op, "float32", 4, (versus.START,))
    arrays = runnable.draw_arguments(case.arguments, seed=0)
    little = versus._little(versus.JOBS[op])
    results = jax.tree.leaves(jax.jit(versus.JOBS[op].jax)(*arrays))
    assert len(little(*arrays)) == len(results) and all(np.size(result) == 1 for result in little(*arrays))
    text = jax.jit(little, keep_unused=True).lower(*arrays).as_text()
    assert all(f"%arg{place}" in text for place in range(len(arrays)))


def test_the_lstm_by_hand_has_the_gradients_of_jax() -> None:
    """So the two ways differ by rounding alone, however many steps it moves a noisy target."""
    draw = np.random.default_rng(0)
    shapes = (9, 16), (16, 128), (32, 128), (128,), (32, 5)  # embedding, wx, wh, b, w
    given = [draw.normal(0, 0.5, shape).astype(np.float32) for shape in shapes]
    given += [draw.integers(0, 9, (6, 7)).astype(np.int32), draw.integers(0, 5, 6).astype(np.int32)]
    expected = versus.gradients(versus.lstm_logits, 5)(*given)
    for found, right in zip(by_hand.lstm(*given), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "op, seed", thin([(op, seed) for op in to_target.OPS for seed in range(2)], keep=[("train_mlp", 0)])
)
def test_every_way_reaches_the_target_in_the_same_steps(op: str, seed: int) -> None:
    steps = []
    for case in to_target.cases(op, "float32", seed):
        ready = runnable.compile_kernel(case, jax.devices()[0])
        _, call = ready.draw(0)
        result, _ = ready.step(None, call)
        said = ready.outcome(result)
        assert ready.wrong is not None and ready.wrong(result, 0) == 0
        assert to_target.RECIPES[op].target <= said["final_accuracy"] <= 1
        assert ready.zeros(0) < 1, "inputs of zeros would be refused"
        steps.append(said["steps"])
    # An LSTM amplifies rounding, and the processor decides how NumPy rounds: its ways were seen 50 steps of 120 apart.
    near = 0.5 * max(steps) if op == "train_lstm" else to_target.RECIPES[op].every
    assert len(steps) == 2 and abs(steps[0] - steps[1]) <= near


def test_a_training_that_does_not_reach_its_target_is_wrong() -> None:
    (case, _) = to_target.cases("train_mlp", "float32", 0)
    assert case.wrong is not None
    assert [case.wrong(np.float32([accuracy, 2000]), ()) for accuracy in (0.94, 0.95, 1.0)] == [1, 0, 0]


def test_seeds_differ_and_ways_do_not() -> None:
    (numpy, jit), (other, _) = (list(to_target.cases("train_mlp", "float32", seed)) for seed in (0, 1))
    first, same, second = (runnable.draw_arguments(case.arguments[:1], seed=9)[0] for case in (numpy, jit, other))
    assert np.array_equal(first, same) and not np.array_equal(first, second)
    assert np.array_equal(first, runnable.draw_arguments(numpy.arguments[:1], seed=5)[0]), (
        "the run's own seed changes nothing"
    )


# A model's gradients as payloads, and the experiments that use them.


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


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}from jaxbench.workloads.cases import gradient_sizes\n"
        "def get_config():\n    return ConfigDict({'measures': 'cases'})\n"
        "def build(config):\n    return gradient_sizes(__file__)\n",
        "def build(config):\n    return 3\n",
    ],
    ids=["asks for itself", "builds something else"],
)
def test_one_that_is_no_training_is_refused_before_it_is_built(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.py").write_text(text)
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
