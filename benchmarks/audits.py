# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Audits every published table of the repository, as docs/AUDIT.md lists them.

The facts next to a table are those that its caption or its first line states. Tables of the catalogue without results
of a training (bandwidths, prices, errors) are audited too: nothing in them can be told.

Run: python -m benchmarks.audits prints the tables and the contradictions of docs/AUDIT.md in Markdown. Exit code 1 if
the document differs.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from jaxbench.features.audit import checks, table

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "AUDIT.md"
TABLES, CATALOGUE = "benchmarks/tables", "jaxbench/catalog/published"
# What captions and first lines state: (table, facts).
STATED = (
    (f"{TABLES}/dgxc_nemo_maxtext_h100_gb200.csv", ()),
    (f"{TABLES}/jaxtoolbox_maxtext_llama2_7b.csv", ("model=Llama 2 7B", "device=H100 SXM", "precision=bf16")),
    (f"{TABLES}/kempnerforge_h200.csv", ("model=Llama 3 8B", "seq_len=4096", "device=H200", "precision=bf16")),
    (f"{TABLES}/marin_speedrun_v5p.csv", ("vocab=128256",)),
    (f"{TABLES}/maxtext_ironwood_tpu7x.csv", ("device=TPU7x",)),
    (f"{TABLES}/maxtext_recipes_v6e_v5p.csv", ()),
    (f"{TABLES}/megatron_bridge_summary.csv", ()),
    (f"{TABLES}/modal_nanogpt_strong.csv", ("model=GPT-2 124M",)),
    (f"{TABLES}/torchtitan_async_tp.csv", ("device=H100", "tok/s/gpu=@vanilla_tp")),
    (f"{TABLES}/torchtitan_async_tp.csv", ("device=H100", "tok/s/gpu=@async_tp")),
    *(
        (f"{CATALOGUE}/maxtext_v5e.csv", ("device=v5e", f"model={n}", f"TFLOP/s/chip=@tflops_{n}", f"mfu=@mfu_{n}"))
        for n in ("16B", "32B", "64B", "128B")
    ),
    (f"{CATALOGUE}/nvidia_rn50_mxnet.csv", ("images/s=@mixed", "speedup=@mixed_scaling")),
    (f"{CATALOGUE}/nvidia_rn50_mxnet.csv", ("images/s=@reduced_or_fp32", "speedup=@fp32_scaling")),
    *(
        (f"{CATALOGUE}/tf_dgx1_p100_synth.csv", (f"images/s=@{model}",))
        for model in ("InceptionV3", "ResNet-50", "ResNet-152", "AlexNet", "VGG16")
    ),
    (
        f"{CATALOGUE}/forecast_configurations.csv",
        ("tokens/s/device=@tokens_per_s", "TFLOP/s/device=@tflops", "step_s=@seconds"),
    ),
)  # fmt: skip


def tables() -> list[tuple[str, tuple[str, ...]]]:
    """Every table with its facts: those above, then all others."""
    stated = {name for name, _ in STATED} | {f"{CATALOGUE}/SOURCES.csv"}
    paths = (path for folder in (TABLES, CATALOGUE) for path in sorted((ROOT / folder).glob("*.csv")))
    names = (path.relative_to(ROOT).as_posix() for path in paths)
    return [*STATED, *((name, ()) for name in names if name not in stated)]


def results() -> list[str]:
    """The lines of docs/AUDIT.md that this program makes."""
    lines = ["| table | facts | rows | consistent | inconsistent | cannot tell |", "|---|---|---|---|---|---|"]
    wrong = []
    for name, facts in tables():
        rows, _ = checks.audit(table.read(ROOT / name, facts))
        counts = Counter(row.verdict for row in rows)
        told = [str(counts[each]) for each in (checks.CONSISTENT, checks.INCONSISTENT, checks.CANNOT_TELL)]
        said = " ".join(f"`{fact}`" for fact in facts)
        lines.append(f"| `{Path(name).stem}` | {said} | {len(rows)} | {' | '.join(told)} |")
        for row in rows:
            who = f"`{Path(name).stem}`, row {row.row.number}{f' ({row.model.name})' if row.model.name else ''}"
            wrong += [f"- {who}: {check.sentence}." for check in row.failures]
    return [*lines, "", "The contradictions:", "", *wrong]


def main() -> int:
    made = "\n".join(results())
    sys.stdout.write(f"{made}\n")
    return 0 if made in DOCUMENT.read_text(encoding="utf-8") else 1


if __name__ == "__main__":
    sys.exit(main())
