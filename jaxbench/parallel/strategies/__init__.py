# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The strategies, one file each, found by file name; there is no other list of them. A strategy defines:

    AXIS                              the mesh axis of all its devices (see `parallel.axes`). It decides which models
                                      the strategy takes. None: the mesh comes from --config.lever.mesh.
    build(workload, devices, ...)     the Program. Optional parameters, by name: `sizes`, the devices of each mesh axis;
                                      `schedule`, of a pipeline; `sequence`, for tensor parallelism.

The strategy writes every collective that a step needs, or leaves it to the compiler.
"""
