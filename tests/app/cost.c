/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A loop of 1 kHz that works for some microseconds, and adds to a file what it saw of itself:
 * the median of its latencies and of its work in ns, its CPU time in us, and its cycles a second.
 *
 * cost FILE [CYCLES] */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define MOST 1000000
#define PERIOD 1000000LL
static long long latency[MOST], took[MOST];

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long cpu_us(void)
{
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000LL +
	       used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

static int by_value(const void *a, const void *b)
{
	long long one = *(const long long *)a, other = *(const long long *)b;
	return (one > other) - (one < other);
}

static long long median(long long *values, int count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 80 };
	int count = argc > 2 ? atoi(argv[2]) : 2000;
	if (argc < 2 || count < 1 || count > MOST || mlockall(MCL_CURRENT | MCL_FUTURE) ||
	    sched_setscheduler(0, SCHED_FIFO, &param))
		return 3;
	long long first = now() + PERIOD, cpu = cpu_us();
	for (int i = 0; i < count; i++) {
		long long due = first + i * PERIOD;
		struct timespec t = { due / 1000000000, due % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		long long begin = now();
		for (long rounds = 20000; rounds; rounds--)
			__asm__ volatile("" : : "r"(rounds));
		took[i] = now() - begin;
		latency[i] = begin - due;
	}
	double seconds = (now() - first) / 1e9;
	cpu = cpu_us() - cpu;
	FILE *out = fopen(argv[1], "a");
	if (!out)
		return 1;
	fprintf(out, "%lld %lld %lld %.1f\n", median(latency, count), median(took, count), cpu,
		count / seconds);
	return fclose(out) ? 1 : 0;
}
