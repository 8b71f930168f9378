# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Texts are read unchanged, the standard library's lines are classified, and each error is one sentence."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from jaxbench.core.workload import Dataset
from jaxbench.errors import UserError
from jaxbench.workloads.data import text

SOURCE = b'''"""A module.

import this is not
"""
# a comment
import os
from a import (
    b,  # of it
)

@decorated
def f(x,
      y=1):
    """Does f."""
    s = """inside
    # a string
    """
    return x # trailing

class C: pass
'''


@pytest.fixture(autouse=True)
def less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LABELLED_BYTES", 400_000)
    monkeypatch.setattr(text, "LANGUAGE_BYTES", 400_000)


def texts(path: str, *, length: int = 8, classes: int = 5, seed: int = 0) -> Dataset:
    return text.load_labelled(path, seed=seed, length=length, classes=classes)


def words(split: dict[str, np.ndarray]) -> list[bytes]:
    return [bytes(row.astype(np.uint8)).rstrip(b"\0") for row in split["tokens"]]


def test_each_line_of_a_file_has_its_kind() -> None:
    found = [(line, text.KINDS[label]) for line, label in text.kinds(SOURCE)]
    assert found == [
        (b'"""A module.', "docstring"),
        (b"import this is not", "docstring"),
        (b'"""', "docstring"),
        (b"# a comment", "comment"),
        (b"import os", "import"),
        (b"from a import (", "import"),
        (b"b,  # of it", "import"),
        (b")", "import"),
        (b"@decorated", "code"),
        (b"def f(x,", "definition"),
        (b"y=1):", "definition"),
        (b'"""Does f."""', "docstring"),
        (b"return x # trailing", "code"),
        (b"class C: pass", "definition"),
    ]


def test_a_file_that_this_python_cannot_read_is_left_out() -> None:
    assert list(text.kinds(b"print 'no'")) == list(text.kinds(b"\xff\xfe")) == []


@pytest.mark.full
def test_the_standard_library_is_the_same_twice_and_its_splits_share_no_line() -> None:
    data, again = texts("", length=200), texts("", length=200)
    np.testing.assert_array_equal(data.train["tokens"], again.train["tokens"])
    assert data.train["tokens"].dtype == data.train["label"].dtype == np.int32
    assert set(data.train["label"]) == set(data.test["label"]) == set(range(5))
    assert not set(words(data.train)) & set(words(data.test))
    assert "standard library" in data.name
    other = texts("", length=200, seed=1)
    assert words(other.train) != words(data.train) and set(words(other.train)) == set(words(data.train))


def test_the_sources_are_whole_files_without_tests() -> None:
    files = text.python_sources(400_000)
    assert 400_000 <= sum(map(len, files)) < 800_000
    train, test = text.by_file(files)
    assert len(train) + len(test) == len(files) and not set(train) & set(test)


def folder(tmp_path):
    for label in ("good", "bad"):
        (tmp_path / label).mkdir()
        for number in range(10):
            (tmp_path / label / f"{number}.txt").write_text(f"{label} {number}")
    return tmp_path


def table(tmp_path, content: bytes):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    return str(path)


def test_a_folder_has_a_class_for_each_of_its_folders(tmp_path) -> None:
    data = texts(str(folder(tmp_path)))
    assert (len(data.train["label"]), len(data.test["label"])) == (16, 4)
    assert sorted(data.test["label"]) == [0, 0, 1, 1]
    for word, label in zip(words(data.train), data.train["label"], strict=True):
        assert word.startswith((b"bad", b"good")[label])
    assert len(set(words(data.train)) | set(words(data.test))) == 20


def test_a_csv_file_is_read_by_its_column_names(tmp_path) -> None:
    rows = "".join(f'{label},"a {label},\n{n}",x\n' for label in ("yes", "no") for n in range(5))
    data = texts(table(tmp_path, b"label,text,more\n" + rows.encode()))
    assert (len(data.train["label"]), len(data.test["label"])) == (8, 2)
    assert b"a no,\n3" in words(data.train) + words(data.test)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text,lable\na,b\n", "data.csv has no column 'label': its first line must name text and label"),
        (b"", "data.csv has no column 'label'"),
        (b"text,label\nhello,\n", "data.csv, line 2: a text or a label is empty"),
        (b"text,label\na,x\nb,x\n", "data.csv' has texts of 1 classes"),
        (b'text,label\n"a"b,x\n', "data.csv is not a CSV file in UTF-8"),
        (b"text,label\n\xff,x\n", "is not a CSV file in UTF-8"),
        (b"text,label\na,x\nb,x\nc,y\n", "has one text of some class: at least 2 are needed"),
    ],
)
def test_a_csv_file_that_is_wrong_is_named(tmp_path, content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        texts(table(tmp_path, content))


def test_a_file_without_text_is_named(tmp_path) -> None:
    with pytest.raises(UserError, match="'/nowhere' does not exist: give a folder with one folder of .txt files"):
        texts("/nowhere")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(UserError, match="x.json' is a file of another kind"):
        texts(str(tmp_path / "x.json"))
    with pytest.raises(UserError, match="has texts of 0 classes: there must be at least 2"):
        texts(str(tmp_path))
    with pytest.raises(UserError, match="has 2 classes and the model has 1: set --config.model.classes=2"):
        texts(str(folder(tmp_path)), classes=1)
    (tmp_path / "good" / "gone.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"gone.txt cannot be read \(No such file or directory\)"):
        texts(str(tmp_path))


def test_data_in_the_current_folder_has_the_name_of_the_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(folder(tmp_path))
    assert texts(".").name == tmp_path.name
    (tmp_path / "a.txt").write_text("0123456789")
    assert text.load_language(".", context=2, vocab=256).name == tmp_path.name


def test_pieces_follow_each_other_and_overlap_by_the_byte_that_is_only_predicted(tmp_path) -> None:
    content = {"a.txt": "0123456789", "b.py": "abcdefghij", "c.md": "klm"}
    for name, words_ in content.items():
        (tmp_path / name).write_text(words_)
    data = text.load_language(str(tmp_path), context=4, vocab=256)
    assert words(data.test) == [b"01234", b"45678"]
    assert words(data.train) == [b"abcde", b"efghi", b"ijklm"]
    assert data.train["tokens"].dtype == np.int32 and data.name == tmp_path.name


def test_the_standard_library_as_bytes() -> None:
    data = text.load_language("", context=64, vocab=300)
    assert data.train["tokens"].shape[1] == 65 and len(data.test["tokens"]) > 100
    assert 0 <= data.train["tokens"].min() and data.train["tokens"].max() < 256


def test_text_that_cannot_be_learned_is_named(tmp_path) -> None:
    def refused(message: str, path: str = str(tmp_path), vocab: int = 256, pad: str = "") -> None:
        with pytest.raises(UserError, match=message):
            text.load_language(path, context=4, vocab=vocab, pad=pad)

    refused("--config.model.vocab=99 cannot hold bytes: it must be at least 256", "", vocab=99)
    refused("--config.data.pad=full is unknown", pad="full")
    refused("'/nowhere' does not exist: give a folder of text files", "/nowhere")
    (tmp_path / "a.txt").write_text("long enough for it")
    refused("holds 1 files that end in .txt, .py, .md: at least 2 are needed")
    refused("a.txt' is not a folder", str(tmp_path / "a.txt"))
    (tmp_path / "b.txt").write_text("no")
    refused("the train files of .* hold 2 bytes: at least 5 are needed")
    (tmp_path / "b.txt").write_text("a\n\nb\n\n")
    refused("the train files of .* hold no document of two bytes or more", pad="packed")


@pytest.mark.parametrize(
    ("pad", "context", "rows", "real"),
    [
        ("padded", 5, [b"ab", b"012345", b"5678", b"wxyz"], ["10000", "11111", "11100", "11100"]),
        ("packed", 7, [b"ab", b"01234567", b"78wxyz"], ["1000000", "1111111", "1011100"]),
    ],
)
def test_what_fills_a_row_weighs_nothing_and_no_target_crosses_a_border(tmp_path, pad, context, rows, real) -> None:
    (tmp_path / "a.txt").write_text("test it")
    (tmp_path / "b.txt").write_text("ab\n\n012345678\n \n.\n\nwxyz")  # for training: 2, 9, 1 and 4 bytes
    data = text.load_language(str(tmp_path), context=context, vocab=256, pad=pad)
    assert words(data.train) == rows and data.train["real"].tolist() == [[*map(int, row)] for row in real]
    assert data.train["real"].dtype == np.int32 and data.name.endswith(f"{pad} documents")


@pytest.mark.parametrize("pad", text.PADS)
def test_documents_hold_the_whole_text_and_each_target_once(pad: str) -> None:
    files = text.by_file(text.python_sources(400_000))[1]
    data = text.load_language("", context=64, vocab=256, pad=pad)
    asked = [pair for file in files for whole in text.documents(file) for pair in zip(whole, whole[1:], strict=False)]
    tokens, real = data.test["tokens"], data.test["real"].astype(bool)
    assert list(zip(tokens[:, :-1][real], tokens[:, 1:][real], strict=True)) == asked


def test_synthetic_rows_have_the_share_of_all_even_in_a_small_batch() -> None:
    real = text.load_language("", context=64, vocab=256, pad="padded").train["real"]
    drawn = [np.asarray(text.draw_weights(real, jax.random.PRNGKey(seed), 16)) for seed in range(3)]
    assert all(rows.shape == (16, 64) and abs(rows.mean() - real.mean()) < 0.03 for rows in drawn)
    assert (drawn[0] != drawn[1]).any() and {*drawn[0].sum(1)} < {*real.sum(1)}
    shares = np.stack(drawn).sum(axis=2)
    assert all((np.diff(row) < 0).any() and (np.diff(row) > 0).any() for row in shares), "shuffled"
