# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The lever `freeze`: parameters that are not trained, chosen by a regular expression for their path."""

from jaxbench.levers._lever import Lever

# A pattern such as "embed|blocks/[0-3]/"; "none": all parameters are trained.
FREEZE = Lever(__name__, rank=4, default="none", parse=str, changes="workload", view="freeze")
