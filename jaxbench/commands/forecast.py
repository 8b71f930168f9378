# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench forecast`: memory and time of a step on hardware that is absent."""

from __future__ import annotations

from pathlib import Path

from absl import flags
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.verbs import FLAGS, Verb

flags.DEFINE_string("depths", None, "forecast: compile the model with these two numbers of blocks: 2,4.")
flags.DEFINE_string("link", None, "forecast: the link between hosts, 1gbit or 300mbit:50us.")

VERB = Verb(
    usage="forecast EXPERIMENT --targets=v5e:16x16,h100:8",
    help="compile it for absent hardware: memory, and a range of step times",
    group="absent hardware",
    details="forecast takes --counts=1..1024 (extrapolated from two compiled counts), --depths=2,4 (compiled instead "
    "of all blocks), --from=DIR --counts=2 --link=1gbit (from a measured run, over that link), --card=FILE (links of a "
    "machine profile).",
    argument="experiment",
    flags=("preset", "workdir", "targets", "counts", "depths", "from", "link", "card"),
    configured=True,
    refused=("cases", "targets"),
    examples=(
        "forecast gpt --targets=h100:8",
        "forecast cnn --targets=v5e:4x4,v6e:2x4 --counts=1..64",
        "forecast gpt --from=results/gpt --counts=2 --link=1gbit",
    ),
)


def prepare(config: ConfigDict) -> None:
    if "weak" in str(config.get("scaling", "")) and config.get("measures") != "decode":
        config.scaling = "weak"  # what people ask of a machine that they do not have; both would compile twice as much


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    if FLAGS.config is not None and FLAGS.config.get("measures") == "decode":
        from jaxbench.features.decode import absent

        return 0 if absent.forecast(FLAGS.config, FLAGS.targets, workdir, console) else 1
    from jaxbench.features.forecast import forecast_command, page

    (experiment,) = arguments
    texts = {name: FLAGS[name].value for name in ("targets", "counts", "depths", "link", "card")}
    # Only if typed, because the flag's default is a template of `new`.
    asked = forecast_command.request({**texts, "from": FLAGS["from"].value if FLAGS["from"].present else None})
    records = forecast_command.forecast(experiment, FLAGS.config, asked, workdir, console)
    answer = forecast_command.smallest_need(records)
    page.write(workdir, console, answer)
    return 1 if answer or all(record.status != "ok" for record in records) else 0
