# SPDX-License-Identifier: MIT OR Apache-2.0
# Twenty cycles that are marked, of which the eighth takes longer: see marked.c.
import os
import time

import punctual

os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
first = time.monotonic_ns() + 50_000_000
for cycle in range(20):
    due = first + cycle * 10_000_000
    while time.monotonic_ns() < due:
        pass
    punctual.begin(due)
    if cycle == 7:
        while time.monotonic_ns() < due + 3_000_000:
            pass
    punctual.end()
