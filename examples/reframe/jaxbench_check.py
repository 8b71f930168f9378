# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A ReFrame check: does training still scale on this system as its card says?

    reframe -c examples/reframe/jaxbench_check.py -r --performance-report
    reframe -c ... -r -S experiment=gpt -S card=cards/gpt-....json -S settings="--preset=smoke"
    reframe -c ... -r -S num_tasks=2 -S num_tasks_per_node=1                # one job of Slurm; its tasks are one launch
    reframe -c ... -r -S launcher="slurm --nodes=1,2 --devices=cpu:1"       # jaxbench submits and waits

Sanity: the run ends with exit code 0, so every point was measured and passed its checks. Performance: the time per step
of each point in ms, and its efficiency. The reference is the card of a good run, as `jaxbench card` writes it.
"""

import json
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function, variable

NANOSECONDS = 1e-6  # in ms; Bencher's latencies are in nanoseconds


@rfm.simple_test
class JaxbenchCheck(rfm.RunOnlyRegressionTest):
    """variables: see above. tolerance: the share by which a time may exceed that of the card."""

    experiment = variable(str, value="cnn")
    settings = variable(str, value="")
    launcher = variable(str, value="")
    card = variable(str, value="")
    tolerance = variable(float, value=0.2)
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "jaxbench"

    @run_after("init")
    def set_command(self):
        self.executable_opts = [f"run {self.experiment} {self.settings}", "--workdir=run --export=bmf"]
        # Slurm without accounting does not tell ReFrame the exit code.
        self.postrun_cmds = ['echo "exit code $?"']
        if self.launcher:  # a launched run is exported when its jobs have ended
            launch = f"launch {self.launcher} --workdir=run --"
            self.executable_opts = [launch, f"run {self.experiment} {self.settings}"]
            export = "import jaxbench as jb; jb.export('run', 'bmf')"
            self.postrun_cmds += [f'python -c "{export}"']

    @sanity_function
    def every_point_is_right(self):
        ended = sn.assert_found("^exit code 0$", self.stdout)
        return sn.all([ended, sn.assert_true(self._points(), "no point may be exported")])

    @run_before("performance")
    def set_performance(self):
        known = self._of_card()
        self.perf_variables = {}
        reference = {}
        for point, measures in self._points().items():
            name = point.replace("/", "_")
            self.perf_variables[f"{name}_step"] = self._number(NANOSECONDS * measures["latency"]["value"], "ms")
            if "efficiency" in measures:
                self.perf_variables[f"{name}_efficiency"] = self._number(measures["efficiency"]["value"], "ratio")
            if point in known:
                reference[f"{name}_step"] = (1e3 * known[point], None, self.tolerance, "ms")
        self.reference = {"*": reference}

    def _number(self, value, unit):
        return sn.make_performance_function(sn.defer(value), unit)

    def _points(self):
        return json.loads((Path(self.stagedir) / "run" / "bmf.json").read_text())

    def _of_card(self):
        """Seconds per step by point. A card of another experiment has none of the points."""
        if not self.card:
            return {}
        card = json.loads(Path(self.card).read_text())
        name = card["name"]["experiment"]
        return {f"{name}/{each['point']}": each["step_s"] for each in card["points"] if each["step_s"]}
