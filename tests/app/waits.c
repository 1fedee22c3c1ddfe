/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A loop of 80 cycles that does nothing but wait, 1 ms each: until a moment, or, as `waits span`,
 * for a while. As `waits ahead` a thread of a higher priority works for BUSY rounds of a loop each
 * 20 ms, in the middle of its waits, and one of a lower priority for twice as many. As `waits fair`
 * it has no priority of real time. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define CYCLES 80
#define PERIOD 1000000
/* Two instructions each. */
#define BUSY 50000

static struct timespec begin;

static void until(long long after)
{
	long long due = begin.tv_sec * 1000000000LL + begin.tv_nsec + after;
	struct timespec t = { due / 1000000000, due % 1000000000 };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void be_real_time(int priority)
{
	struct sched_param param = { .sched_priority = priority };
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		exit(3);
}

void __attribute__((noinline, noclone)) works(long rounds)
{
	for (long i = rounds; i; i--)
		__asm__ volatile("");
}

static void *above(void *unused)
{
	be_real_time(90);
	prctl(PR_SET_NAME, "above");
	for (int i = 0; i < CYCLES / 20; i++) {
		until((20LL * i + 10) * PERIOD + 400000);
		works(BUSY);
	}
	return unused;
}

static void *below(void *unused)
{
	be_real_time(70);
	prctl(PR_SET_NAME, "below");
	for (int i = 0; i < CYCLES / 20; i++) {
		until((20LL * i + 15) * PERIOD + 400000);
		works(2 * BUSY);
	}
	return unused;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct timespec span = { 0, PERIOD };
	pthread_t one, other;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (strcmp(how, "fair"))
		be_real_time(80);
	/* Threads have their stacks by then, and all of their pages. */
	clock_gettime(CLOCK_MONOTONIC, &begin);
	begin.tv_nsec += 100000000;
	if (!strcmp(how, "ahead") &&
	    (pthread_create(&one, NULL, above, NULL) || pthread_create(&other, NULL, below, NULL)))
		return 4;
	until(0);
	for (int i = 1; i <= CYCLES; i++) {
		if (strcmp(how, "span"))
			until(i * (long long)PERIOD);
		else
			nanosleep(&span, NULL);
	}
	/* The last cycle has an end, too. */
	usleep(1000);
	return 0;
}
