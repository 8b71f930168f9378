# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The strategies, one file each, found by file name: there is no list of them anywhere. A strategy defines

    AXIS                              the mesh axis along which all devices lie, see `parallel.axes`: it decides which
                                      models the strategy takes. None: the mesh is the one of --config.lever.mesh.
    build(workload, devices, ...)     the Program. It can ask for more by parameter name: `sizes`, the devices of each
                                      mesh axis; `schedule`, of a pipeline; `sequence`, for tensor parallelism.

Every collective that a step needs is written, or left to the compiler, inside the strategy.
"""
