/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A control loop that waits without the kernel: it reads the clock until a cycle is due. It marks
 * its cycles, and prints of each when it was due, and the clock after its begin and before its
 * end. `marked silent` does not say when they are due. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../include/punctual.h"

#define CYCLES 20
#define PERIOD 1000000
#define LONG_ONE 7

static long long seen[CYCLES][3];

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 80 };
	int is_silent = argc > 1 && !strcmp(argv[1], "silent");
	long long first;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return 3;
	first = now() + 5000000;
	for (int i = 0; i < CYCLES; i++) {
		long long due = first + i * (long long)PERIOD;
		while (now() < due)
			;
		if (!is_silent)
			punctual_due(due);
		punctual_begin();
		seen[i][0] = due;
		seen[i][1] = now();
		if (i == LONG_ONE)
			while (now() < seen[i][1] + 300000)
				;
		seen[i][2] = now();
		punctual_end();
	}
	for (int i = 0; i < CYCLES; i++)
		printf("%d %lld %lld %lld\n", i, seen[i][0], seen[i][1], seen[i][2]);
	return 0;
}
