# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench audit` on rows that are right, and on planted contradictions of every kind."""

from __future__ import annotations

import csv
import io
import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import audits
from jaxbench.catalog import rows as catalogue
from jaxbench.commands import audit as verb
from jaxbench.errors import UserError
from jaxbench.features.audit import checks, page, table
from jaxbench.features.audit.checks import CANNOT_TELL, CONSISTENT, INCONSISTENT, Audited
from jaxbench.features.audit.table import Row, exact, meanings, number, ranges


def judged(tmp_path: Path, header: str, *lines: str, facts: tuple[str, ...] = ()) -> list[Audited]:
    path = tmp_path / "table.csv"
    path.write_text("\n".join((header, *lines)) + "\n")
    return checks.audit(table.read(path, facts))[0]


# Llama 3 8B at 8,192 positions trains with 51.47 GFLOP a token if attention is causal, and 57.91 if all of it counts.
HEADER = "model,gpu,gpus,GBS,seq_len,step time (s),tok/s/gpu,TFLOPs/device,MFU (%),precision"
RIGHT = "Llama 3 8B,H100 SXM,8,128,8192,12.27,10682,549.8,55.6,bf16"


def changed(row: str, **cells: str) -> str:
    names = "model gpu gpus batch seq step tokens tflops mfu precision".split()
    return ",".join((dict(zip(names, row.split(","), strict=True)) | cells).values())


def test_a_row_that_is_right_is_consistent_and_its_formula_and_peak_are_found(tmp_path: Path) -> None:
    (row,) = judged(tmp_path, HEADER, RIGHT)
    assert row.verdict == CONSISTENT, [check.sentence for check in row.failures]
    assert row.formula == "6N + causal attention"
    assert row.peak.startswith("989 TFLOP/s, bfloat16")
    (row,) = judged(tmp_path, HEADER, changed(RIGHT, tflops="618.6", mfu="62.55"))
    assert row.formula == "6N + attention" and row.verdict == CONSISTENT
    (row,) = judged(tmp_path, HEADER, changed(RIGHT, mfu="27.8", precision="fp8"))
    assert "8 bits" in row.peak and row.verdict == CONSISTENT
    (row,) = judged(tmp_path, HEADER, changed(RIGHT, tflops="549.8", mfu="27.8"))
    assert "sparsity" in row.peak


PLANTED = {
    "step time": (dict(step="12.67"), checks.TIME, "3.2"),
    "batch": (dict(batch="64"), checks.TIME, "100"),
    "tokens/s": (dict(tokens="10900"), checks.TIME, "2.0"),
    "FLOP/s below every formula": (dict(tflops="290.1", mfu="29.3"), checks.FORMULA, ""),
    "FLOP/s above every formula": (dict(tflops="890.1", mfu="90.0"), checks.FORMULA, ""),
    "FLOP/s above the dense peak": (dict(tflops="1101", mfu="55.7"), checks.LIMIT, "11"),
    "MFU above 100 %": (dict(mfu="104.2"), checks.LIMIT, "4.2"),
    "MFU below every peak": (dict(mfu="5.56"), checks.PEAK, ""),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_contradiction_is_found_and_named(tmp_path: Path, name: str) -> None:
    cells, kind, percent = PLANTED[name]
    (row,) = judged(tmp_path, HEADER, changed(RIGHT, **cells))
    assert row.verdict == INCONSISTENT
    found = [check for check in row.failures if check.kind == kind]
    assert found and any(f"by {percent}" in check.sentence for check in found), row.failures


def test_impossible_tokens_are_found_without_any_flops(tmp_path: Path) -> None:
    header = "model,device,precision,seq,tokens/s/device"
    slow, fast = judged(tmp_path, header, "Llama 3 8B,A100,bf16,8192,5000", "Llama 3 8B,A100,bf16,8192,13000")
    assert slow.verdict == CANNOT_TELL and fast.failures[0].kind == checks.LIMIT
    # The parameters of a mixture of experts, or of a name alone, accuse nobody.
    for model in ("Mixtral 8x7B", "Grok 1 314B", "My 70B", "Qwen3-235B-A22B"):
        (row,) = judged(tmp_path, header, f"{model},A100,bf16,8192,13000")
        assert row.verdict == CANNOT_TELL


def test_rows_of_one_model_must_agree(tmp_path: Path) -> None:
    header = "model,device,gpus,seq_len,tokens/s/gpu,MFU,TFLOP/s/gpu"
    lines = [f"mine,X9,{n},2048,{1000 - n},{40 - n / 25:.2f},{200 - n / 5:.1f}" for n in (8, 16, 32)]
    assert {row.verdict for row in judged(tmp_path, header, *lines)} == {CONSISTENT}
    rows = judged(tmp_path, header, *lines, "mine,X9,64,2048,936,37.44,197.2")
    assert [row.verdict for row in rows] == [CONSISTENT] * 3 + [INCONSISTENT]
    assert {check.names[0] for check in rows[3].failures} == {"TFLOP/s"} and rows[3].failures[0].kind == checks.ROWS
    # Another sequence, another model, or a text that was not understood: nothing to compare.
    for line in ("mine,X9,64,4096,936,37.44,217.2", "other,X9,64,2048,936,37.44,187.2"):
        assert judged(tmp_path, header, *lines, line)[3].verdict != INCONSISTENT
    tokenized = *(f"{line},a" for line in lines), "mine,X9,64,2048,936,37.44,197.2,b"
    other = judged(tmp_path, f"{header},tokenizer", *tokenized)
    assert other[3].verdict == CANNOT_TELL


def test_efficiency_follows_from_rows_and_a_printed_one_must_agree(tmp_path: Path) -> None:
    header = "gpus,images/s,speedup,efficiency (%)"
    rows = judged(tmp_path, header, "1,219,1.00,100", "2,422,1.93,96", "4,852,3.89,97", "8,1734,7.92,99")
    assert {row.verdict for row in rows} == {CONSISTENT}
    assert [row.base for row in rows] == [0, 1, 1, 1]
    assert rows[3].efficiency is not None and rows[3].efficiency.value == pytest.approx(1734 / 219 / 8)
    wrong = judged(tmp_path, header, "1,219,1.00,100", "2,422,1.93,96", "4,852,3.89,97", "8,1734,7.62,95")
    assert [row.verdict for row in wrong] == [CONSISTENT] * 3 + [INCONSISTENT]
    rows = judged(tmp_path, "GPU,total tok/s", "8xH100,800", "16xH100,1500", "v6e-8,800", "v6e-16,900")
    assert [row.base for row in rows] == [0, 1, 0, 3]
    rows = judged(tmp_path, "GPUs,total tok/s", "8x A100,800", "16x A100,1500")  # both the number and the device
    assert rows[1].get("devices") == exact(16) and rows[1].text("device") == "16x A100"
    # A speed-up over another program is 1 nowhere, and is compared with nothing.
    ours = judged(tmp_path, "gpus,images/s,speedup", "1,219,1.30", "8,1734,1.10")
    assert {row.verdict for row in ours} == {CANNOT_TELL}


def test_what_a_header_leaves_open_is_decided_by_most_rows(tmp_path: Path) -> None:
    header = "gpus,batch,seq,step time,tokens/s"
    path = tmp_path / "t.csv"
    for every, scale in itertools.product((False, True), (1, 1000)):
        lines = [f"{n},{4 * n},1024,{2 * scale},{4 * 1024 * (n if every else 1) / 2:.0f}" for n in (2, 4, 8)]
        path.write_text("\n".join([header, *lines, f"16,64,1024,{2 * scale},77777"]))
        rows, words = checks.audit(table.read(path))
        assert [row.verdict for row in rows] == [CONSISTENT] * 3 + [INCONSISTENT]
        assert words["tokens/s"] == ("of all devices" if every else "of a device")
        assert words["step time"] == ("in s" if scale == 1 else "in ms")
    path.write_text("gpus,tokens/s\n2,100\n4,200\n")
    assert checks.audit(table.read(path))[1]["tokens/s"] == "of a device (no row decides it)"


def test_what_people_mean_is_no_contradiction(tmp_path: Path) -> None:
    """Batches in tokens, a training time with its evaluation, adapters next to full training, and hosts of GPUs."""
    rows = judged(tmp_path, "gpus,global batch,seq,step (s),tok/s/gpu", "64,4M,8k,10.0,6553", "64,4M,8k,10.0,9000")
    assert [row.verdict for row in rows] == [CONSISTENT, INCONSISTENT]
    rows = judged(tmp_path, "gpus,steps,step (s),training time (s)", "8,100,1.00,130", "8,100,1.50,130")
    assert [row.verdict for row in rows] == [CANNOT_TELL, INCONSISTENT] and rows[1].failures[0].kind == checks.LIMIT
    header = "model,mesh,seq,tok/s/gpu,TFLOP/s/gpu"
    rows = judged(tmp_path, header, "mine,fsdp,2048,1000,200.0", "mine,fsdp lora,2048,1400,186.7")
    assert {row.verdict for row in rows} == {CANNOT_TELL}
    rows = judged(tmp_path, "gpu,tok/s/gpu,total tokens/s", "8x8 H100,1000,64000", "8xH100,1000,64000")
    assert [row.verdict for row in rows] == [CANNOT_TELL, INCONSISTENT]


def test_a_published_markdown_table_is_read_as_it_is(tmp_path: Path) -> None:
    """Two rows of the benchmarks of MPT (mosaicml/llm-foundry@061f2c7 scripts/train/benchmarking/README.md): samples/s
    are cut, and "Model TFLOP" is in FLOP/s."""
    path = tmp_path / "README.md"
    path.write_text(
        "| Model | SeqLen (T) | # GPUs | GPU | MFU | HFU | Model TFLOP | MicroBatchSize | GradAccum | GlobalBatchSize "
        "| Throughput (S/s) | Throughput (T/s) | Throughput (T/s/GPU) | GlobalBatchSize (T) | Precision | NumParams |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| 70b | 2048 | 64 | h100_80gb | 42.57 | 56.76 | 4.212583E+14 | 8 | 4 | 2048 | 32 | 66523 | 1039 | 4194304 "
        "| amp_bf16 | 64862437376 |\n"
        "| 13b | 32768 | 8 | h100_80gb | 31.68 | 42.24 | 3.134795E+14 | 1 | 3 | 24 | 0 | 15812 | 1976 | 786432 "
        "| amp_bf16 | 13011240960 |\n"
    )
    given = table.read(path)
    rows, _ = checks.audit(given)
    assert not [column.header for column in given if not (column.meanings or column.text)]
    assert [row.verdict for row in rows] == [CONSISTENT] * 2 and len(rows[0].checks) > 6
    assert all("989 TFLOP/s, bfloat16" in row.peak for row in rows)


def test_columns_of_several_models_accuse_nobody(tmp_path: Path) -> None:
    header, lines = "gpus,tflops_7B,mfu_7B,tflops_70B,mfu_70B", ("8,400,40.4,500,50.6", "16,390,39.4,490,49.5")
    assert {row.verdict for row in judged(tmp_path, header, *lines)} == {CANNOT_TELL}
    rows = judged(tmp_path, header, *lines, facts=("TFLOP/s/gpu=@tflops_70B", "mfu=@mfu_70B", "gpu=H100"))
    assert {row.verdict for row in rows} == {CONSISTENT} and rows[1].efficiency is not None


def test_a_batch_of_a_device_may_be_accumulated_but_not_otherwise(tmp_path: Path) -> None:
    header = "gpus,batch per gpu,global batch"
    rows = judged(tmp_path, header, "8,4,32", "8,4,128", "8,1,2", "8,3,16")
    assert [row.verdict for row in rows] == [CONSISTENT, CANNOT_TELL, CANNOT_TELL, INCONSISTENT]
    assert rows[3].failures[0].miss == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("cell", "low", "value", "high"),
    [
        ("12.3", 12.25, 12.3, 12.4), ("12.30", 12.295, 12.3, 12.31), ("85,459", 85458.5, 85459, 85460),
        ("54 %", 53.5, 54, 55), ("1.5e3", 1450, 1500, 1600), ("12.3k", 12250, 12300, 12400), ("1000", 950, 1000, 1100),
        ("37556 (36108)", 37555.5, 37556, 37557),
        ("3.1 ± 0.2", 2.9, 3.1, 3.3), ("~360", 355, 360, 370), (".5", 0.45, 0.5, 0.6), ("7B", 6.5e9, 7e9, 8e9),
    ],
)  # fmt: skip
def test_a_printed_number_is_the_range_of_what_prints_so(cell: str, low: float, value: float, high: float) -> None:
    (span,) = ranges([number(cell)])
    assert span is not None and (span.low, span.value, span.high) == pytest.approx((low, value, high))


def test_zeros_are_digits_if_a_larger_number_shows_their_place() -> None:
    spans = ranges([number(cell) for cell in ("120", "123", "1000")])
    assert [span and span.low for span in spans] == [119.5, 122.5, 950]
    assert number("v6e-256") is None and number("") is None and number("n/a") is None


HEADERS = {
    "tok/s/gpu": "device_tokens_s", "TFLOPs/device": "device_flop_s", "MFU (%)": "mfu", "step_time_ms": "step_s",
    "params (B)": "params", "GBS": "batch", "seq_len": "seq", "Tokens/GPU/s": "device_tokens_s",
    "TGS": "device_tokens_s", "Throughput (T/s/GPU)": "device_tokens_s", "GlobalBatchSize (T)": "step_tokens",
    "Model FLOPs utilization": "mfu", "HFU": "hfu", "tokens_per_s_total": "tokens_s", "# GPUs": "devices",
    "elapsed time per iteration (ms)": "step_s", "s/step": "step_s", "it/s": "steps_s", "n_layers": "layers",
    "per_device_batch_size": "device_batch", "sequence length": "seq", "img/sec": "samples_s", "Peak TFLOPS": "peak",
    "tokens per step": "step_tokens", "gradient accumulation steps": "accumulate", "d_model": "width",
    "Global batch size": "batch", "total TFLOP/s": "flop_s", "training_time_h": "training_s", "minutes_to_loss": "",
    "loss": "", "mem_gb_per_gpu": "", "lr": "", "TFLOP per token": "", "step": "",
    "tflops_16B": "", "tok/s/gpu (7B)": "",
}  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_headers_are_understood_as_people_write_them(header: str) -> None:
    assert [meaning.quantity for meaning in meanings(header)][:1] == [HEADERS[header]][: bool(HEADERS[header])]


DEVICES = {
    "DGX-H100": "NVIDIA H100 SXM", "8x A100 80GB": "NVIDIA A100 SXM 80GB", "2x H100 PCIe": "NVIDIA H100 PCIe",
    "GB200": "NVIDIA GB200 (per GPU)", "v5p-64": "Google TPU v5p", "v5litepod-16": "Google TPU v5e",
    "RTX 4090": "NVIDIA RTX 4090", "trillium": "Google TPU v6e (Trillium)", "h100:8": "NVIDIA H100 SXM",
    "X9": "", "B20": "",
}  # fmt: skip


@pytest.mark.parametrize("text", DEVICES)
def test_devices_are_found_by_the_names_that_tables_use(text: str) -> None:
    assert [row["name"] for row in checks.devices(text)][:1] == [DEVICES[text]][: bool(DEVICES[text])]


def test_every_published_shape_has_its_published_parameters() -> None:
    for published in catalogue("models.csv"):
        made = checks.model(Row(1, texts={"model": published["name"]}))
        assert made.known == (published["name"] if published["layers"] else "")
        if made.known:
            embedding = int(published["vocab"]) * int(published["width"])
            products, params = made.counts["N"].value, made.counts["N with the input embedding"].value
            whole = products + embedding == pytest.approx(params, rel=1e-3)
            assert whole or products == pytest.approx(params, rel=0.008)


def test_names_and_shapes_tell_models_apart() -> None:
    def of(name: str, **values: float) -> checks.Model:
        return checks.model(Row(1, texts={"model": name}, values={key: exact(value) for key, value in values.items()}))

    assert of("Llama3 70b Finetuning LORA").frozen and not of("Llama3 70b").frozen
    assert of("Qwen3_30B_a3B").counts["N"].value == 3e9 and of("7B").nominal
    assert of("Llama 3 8B MoE").known == "" and not of("Llama 3 8B MoE").counts
    short, full = of("Llama 3.1 405B", layers=8), of("Llama 3.1 405B")
    assert short.sizes["layers"] == 8 and short.counts["N"].value < full.counts["N"].value / 10
    own = of("mine", params=299649792, layers=12, width=768, vocab=128256)
    assert own.formulas(4096)["6N without an embedding + attention"].value == pytest.approx(1.6599e9, rel=1e-3)


def test_the_document_is_what_the_program_finds() -> None:
    """Every published table of the repository. What contradicts itself there was checked in its source by hand."""
    made = audits.results()
    assert "\n".join(made) in audits.DOCUMENT.read_text()
    wrong = {line.partition(" (")[0].partition(": ")[0] for line in made if line.startswith("- ")}
    assert wrong == {
        "- `dgxc_nemo_maxtext_h100_gb200`, row 28", "- `dgxc_nemo_maxtext_h100_gb200`, row 30",
        "- `dgxc_nemo_maxtext_h100_gb200`, row 35", "- `maxtext_recipes_v6e_v5p`, row 3",
        "- `nvidia_rn50_mxnet`, row 11",
    }  # fmt: skip


def run(path: Path, *facts: str) -> tuple[int, str, Path]:
    out, folder = io.StringIO(), path.parent / "out"
    code = verb.main([str(path), *facts], folder, Console(file=out, width=100))
    return code, out.getvalue(), folder


def test_verdicts_come_first_and_a_page_with_a_picture_and_a_csv_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page.canvas, "FORMATS", ("svg",))
    path = tmp_path / "mine.csv"
    path.write_text("\n".join((f"{HEADER},note", f"{RIGHT},<b>ok</b>", f"{changed(RIGHT, step='12.67')},x")))
    code, said, folder = run(path)
    assert code == 1
    assert " ".join(said.split()).startswith(
        "Failed: Row 2 Llama 3 8B: tokens/s of a device x devices x step time (1,082,728)"
    )
    assert "2 rows: 1 consistent, 1 inconsistent, 0 cannot tell." in said and "Not understood: note." in said
    lines = list(csv.DictReader((folder / page.CSV).read_text().splitlines()))
    assert [line["verdict"] for line in lines] == [CONSISTENT, INCONSISTENT] and "differs from" in lines[1]["disagree"]
    html = (folder / page.PAGE).read_text()
    for words in ("<svg", "How far the numbers of a row are apart", "half a unit of its last place"):
        assert words in html
    path.write_text("\n".join((HEADER, RIGHT)))
    code, said, _ = run(path)
    assert code == 0 and "Failed" not in said and "jaxbench forecast gpt --targets=h100:8" in said


def test_rows_without_anything_to_compare_say_which_fact_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page.canvas, "FORMATS", ("svg",))
    path = tmp_path / "mine.csv"
    path.write_text("model,gpus,tokens_per_s_total,mfu_pct,step_s\n7B,1,10471,57.8,3.13\n7B,2,18728,51.7,3.50\n")
    code, said, folder = run(path)
    assert code == 0 and "2 cannot tell" in said
    text = (folder / "audit.html").read_text()
    assert "2 rows, such as 1: no two of the numbers can be compared." in text
    assert "Give what holds for all rows, such as device=H100 seq_len=4096 precision=bf16." in text
    code, said, folder = run(path, "model=Llama 3 8B", "seq_len=4096", "device=H200", "precision=bf16")
    assert "2 consistent" in said and "can be compared" not in (folder / "audit.html").read_text()


def test_what_a_table_says_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page.canvas, "FORMATS", ("svg",))
    path = tmp_path / "x.csv"
    path.write_text("model,gpus,<script>alert(1)</script>,tokens/s/gpu,tokens/s\n<script>7B,8,y,10,90\n")
    code, said, folder = run(path)
    assert code == 1 and "<script>7B" in said
    html = (folder / page.PAGE).read_text()
    assert "alert(1)" in html and "<script>alert" not in html and "<script>7B" not in html


def test_units_in_cells_and_in_a_column_of_their_own_markdown_and_facts_are_read(tmp_path: Path) -> None:
    header = "GPU,#GPUs,GBS,Seq,Iter time,Throughput"
    ends = "5.1 s,102.8k tok/s", "5100 ms,90k tok/s"
    rows = judged(tmp_path, header, *(f"8xA100,8,256,2048,{end}" for end in ends))
    assert [row.verdict for row in rows] == [CONSISTENT, INCONSISTENT]
    assert not checks.audit(table.read(tmp_path / "table.csv"))[1].keys() - {"Throughput"}
    rows = judged(tmp_path, "model,gpus,value,unit", "a,1,100,samples/s", "a,2,150,samples/s", "b,1,4,h", "b,2,150,min")
    assert [row.efficiency and round(row.efficiency.value, 3) for row in rows] == [None, 0.75, None, 0.8]
    path = tmp_path / "t.md"
    rows = "|---|--:|---|\n| 8 | 2.0 | 8192 |\n| 16 | 2.0 | 8192 |\n"
    path.write_text(f"# Our results\n| **gpus** | step (s) | tps |\n{rows}")
    rows, _ = checks.audit(table.read(path, ["seq_len=4k", "batch per gpu=4"]))
    assert [row.get("seq") for row in rows] == [exact(4096)] * 2 and rows[1].efficiency is not None
    assert table.read(path, ["tok/s/gpu=@tps"])[0].header == "tok/s/gpu"
    path.write_text("gpu,tokens/s,loss\n0xH100,5,1e400\n")  # no number of devices, and no number at all
    assert [row.verdict for row in checks.audit(table.read(path))[0]] == [CANNOT_TELL]


@pytest.mark.parametrize(
    ("text", "facts", "said"),
    [
        ("", (), "has no table"), ("a\n1\n", (), "has no table"), ("a,b\n", (), "has no table"),
        ("a,b\n1,2\n", ("seq",), "'seq' is no fact"),
        ("a,b\n1,2\n", ("seq=@c",), "write seq_len=4096, or tokens/s/gpu=@a"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(tmp_path: Path, text: str, facts: tuple[str, ...], said: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UserError, match=said):
        table.read(tmp_path / "t.csv", facts)
    with pytest.raises(UserError, match="is no readable table"):
        table.read(tmp_path / "none.csv")
    with pytest.raises(UserError, match="takes a table"):
        verb.main([], tmp_path, Console(file=io.StringIO()))


def test_no_jax_is_needed() -> None:
    code = "import sys; from jaxbench.features.audit import checks, page, table; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=audits.ROOT)
    assert done.stdout.strip() == "False", done.stderr
