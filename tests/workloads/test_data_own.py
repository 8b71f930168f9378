# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Data in every supported form give the same examples; wrong or too large data are named."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys

import brought
import grain
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbench.core.workload import Dataset
from jaxbench.errors import UserError
from jaxbench.features.training.plan import read_data
from jaxbench.workloads import Field, TrainWorkload, hugging_face, inspection
from jaxbench.workloads.data import own

RANDOM = np.random.default_rng(0)
ARRAYS = {"x": RANDOM.normal(size=(30, 3)).astype(np.float32), "label": np.arange(30, dtype=np.int32) % 5}
TEST = {"x": np.ones((4, 3), np.float32), "label": np.zeros(4, np.int32)}
ROWS = [{name: array[i] for name, array in ARRAYS.items()} for i in range(30)]


def workload(data):
    example = {"x": Field((3,)), "label": Field((), jnp.int32, classes=5)}
    return TrainWorkload(name="mine", init=None, loss=None, optimizer=None, example=example, data=data)


def read(data, seed=0):
    return read_data(workload(data), seed=seed)


def batches():
    for at in range(0, 30, 8):  # the last is smaller
        yield {name: array[at : at + 8] for name, array in ARRAYS.items()}


FORMS = {
    "arrays": ARRAYS,
    "wider": {"x": ARRAYS["x"].astype(np.float64), "label": ARRAYS["label"].astype(np.int64)},
    "jax": {name: jnp.asarray(array) for name, array in ARRAYS.items()},
    "more_fields": {**ARRAYS, "text": np.array(["a"] * 30)},
    "list": ROWS,
    "python_numbers": [{"x": row["x"].tolist(), "label": int(row["label"])} for row in ROWS],
    "generator": lambda: (row for row in ROWS),
    "batches": batches,
    "function": lambda: ARRAYS,
    "grain_map": grain.MapDataset.source(ROWS),
    "grain_iter": grain.MapDataset.source(ROWS).to_iter_dataset(),
    "grain_batches": grain.MapDataset.source(ROWS).batch(6),
    "grain_filtered": grain.MapDataset.source([*ROWS, {**ROWS[0], "label": 9}]).filter(lambda r: r["label"] < 9),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_examples_split_by_the_seed(form):
    found, same, other = read(FORMS[form]), read(ARRAYS), read(ARRAYS, seed=1)
    forms = {name: (len(a), a.dtype) for name, a in found.train.items()}
    assert forms == {"x": (24, np.float32), "label": (24, np.int32)}
    for name in ("x", "label"):
        np.testing.assert_array_equal(found.train[name], same.train[name])
        np.testing.assert_array_equal(found.test[name], same.test[name])
    assert not np.array_equal(found.test["x"], other.test["x"])
    together = np.concatenate([found.train["x"], found.test["x"]])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(ARRAYS["x"], axis=0))


@pytest.mark.parametrize("data", [(ARRAYS, TEST), {"train": ARRAYS, "test": TEST}, {"train": ROWS, "validation": TEST}])
def test_two_splits_and_a_dataset_are_unchanged(data):
    found = read(data)
    assert (len(found.train["x"]), len(found.test["x"])) == (30, 4)
    np.testing.assert_array_equal(found.train["label"], ARRAYS["label"])
    whole = Dataset(ARRAYS, TEST, "theirs")
    assert read(whole) is whole and read(lambda: whole) is whole


WRONG = {
    "no_data": (3, "the data of 'mine' are int: legal are a dict of arrays"),
    "no_field": ({"x": ARRAYS["x"]}, "the data of 'mine' lack the field 'label': they have x."),
    "no_dict": ([1, 2, 3], "the data of 'mine' hold int: each must be a dict with the fields x, label"),
    "row_without": ([{"x": ROWS[0]["x"]}], "lack the field 'label': they have x"),
    "ragged": ([ROWS[0], {"x": np.ones(2), "label": 0}], "'x' in the data of 'mine' differs in shape"),
    "one": ([ROWS[0]], "train split .* have no common, positive length"),
    "empty": (iter(()), "are empty: an iterator can be read only once"),
    "lengths": ({"x": ARRAYS["x"], "label": ARRAYS["label"][:9]}, "no common, positive length"),
    "no_axis": ({**ARRAYS, "label": 3}, r"no common, positive length along their first axis: .*'label' \(\)"),
    "pixels": ({**ARRAYS, "x": np.zeros((30, 3), np.uint8)}, r"'x' in the train split .* is uint8 .* takes float32"),
    "shape": ({**ARRAYS, "x": np.zeros((30, 4))}, r"is float32 of shape \(24, 4\): 'mine' takes float32 of shape"),
    "label_above": ({**ARRAYS, "label": np.full(30, 5)}, "'label' in the train split .* holds 5: legal are 0 to 4"),
    "label_below": ({**ARRAYS, "label": np.full(30, -1)}, "holds -1: legal are 0 to 4"),
    "too_wide": ({**ARRAYS, "label": np.full(30, 2**40)}, "is int64 of shape"),
    "no_test": ((ARRAYS, {**TEST, "x": TEST["x"][:0], "label": TEST["label"][:0]}), "no common, positive length"),
}


@pytest.mark.parametrize("case", WRONG)
def test_data_that_do_not_match_the_model_are_named(case):
    data, said = WRONG[case]
    with pytest.raises(UserError, match=said):
        read(data)


def test_data_that_never_end_are_named(monkeypatch):
    monkeypatch.setattr(own, "MAX_BYTES", 100_000)
    with pytest.raises(UserError, match=r"do not end within 0 GiB and 10,000,000 examples, .* itertools\.islice"):
        read(lambda: itertools.repeat(ROWS[0]))


def test_an_error_of_their_own_loader_names_its_line(tmp_path):
    path = brought.write(tmp_path, ("example=example)", "example=example, data=lambda: open('no/such/file'))"))
    with pytest.raises(UserError) as caught:
        read_data(brought.build(path), seed=0)
    assert str(caught.value).startswith(f"'{path}', line {brought.line_with(path, 'no/such')}: FileNotFoundError: ")


def saved(folder, arrays, files=2):
    """Writes `arrays` like `datasets.save_to_disk`."""
    pyarrow = pytest.importorskip("pyarrow")
    folder.mkdir(parents=True)
    rows, names = np.array_split(np.arange(len(arrays["x"])), files), []
    for number, some in enumerate(rows):
        table = pyarrow.table({name: array[some].tolist() for name, array in arrays.items()})
        names.append({"filename": f"data-{number:05d}-of-{files:05d}.arrow"})
        with pyarrow.ipc.new_stream(str(folder / names[-1]["filename"]), table.schema) as stream:
            stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": names}))
    return str(folder)


def test_a_hugging_face_dataset_is_read_from_the_disk(tmp_path):
    found = read(hugging_face(saved(tmp_path / "one", {**ARRAYS, "text": np.array(["a"] * 30)})))
    np.testing.assert_array_equal(found.train["x"], read(ARRAYS).train["x"])
    both = tmp_path / "both"
    saved(both / "train", ARRAYS), saved(both / "test", TEST, files=1)
    (both / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert (len(read(hugging_face(str(both))).train["x"]), len(read(hugging_face(str(both))).test["x"])) == (30, 4)


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (np.array([["a"] * 3] * 30), "holds list<.*string>, in which not every value is a number"),
        (np.array([[1.0] * 3] * 29 + [[1.0]], object), "holds lists of different or missing lengths"),
    ],
)
def test_a_column_that_is_no_numbers_is_named(tmp_path, x, said):
    folder = saved(tmp_path / "one", {**ARRAYS, "x": x})
    with pytest.raises(UserError, match=said):
        read(hugging_face(folder))


def test_a_folder_without_a_hugging_face_dataset_is_named(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="there is no folder .*: save it with"):
        read(hugging_face(str(tmp_path / "nowhere")))
    with pytest.raises(UserError, match="holds no Hugging Face dataset|pip install pyarrow"):
        read(hugging_face(str(tmp_path)))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="pyarrow.* pip install pyarrow"):
        read(hugging_face(str(tmp_path)))


def test_everything_missing_for_training_is_named_at_once(tmp_path):
    path = brought.write(tmp_path)
    with pytest.raises(UserError) as caught:
        inspection.require_trainable(brought.build(path))
    assert "needs `data` to train on" in str(caught.value) and ", and `evaluate`, a function of" in str(caught.value)
    stateless = (
        ('({"mean": mean}, {"accuracy"', '({}, {"precise"'),
        ('{"mean": jnp.zeros(5)}', "{}"),
        ('0.9 * model_state["mean"] + ', ""),
    )
    made = brought.build(brought.write(tmp_path, *stateless))
    said = r"`data` .*, and 'accuracy' among the metrics of its loss, which are \['loss', 'precise'\]"
    with pytest.raises(UserError, match=said):
        inspection.require_trainable(made)
    judge = lambda params, model_state, batch: {"accuracy": jnp.ones(())}  # noqa: E731
    inspection.require_trainable(dataclasses.replace(made, data=ARRAYS, evaluate=judge))
