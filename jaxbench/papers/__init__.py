# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench paper ID`: does what a paper claims hold on this machine? One file a paper in `library/`."""
