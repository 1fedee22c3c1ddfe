/* SPDX-License-Identifier: GPL-2.0 */
/* What the modules' tests share: each prints what it found, and fails as a whole. */

#ifndef CHECK_H
#define CHECK_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef long long ns_t;

static int failures;

#define check(what, ...)						\
	do {								\
		if (!(what)) {						\
			failures++;					\
			printf("FAILED line %d: %s: ", __LINE__, #what);	\
			printf(__VA_ARGS__);				\
			printf("\n");					\
		}							\
	} while (0)

#define must(what)							\
	do {								\
		if ((what) < 0) {					\
			printf("FAILED line %d: %s: %s\n", __LINE__, #what, strerror(errno)); \
			exit(1);					\
		}							\
	} while (0)

static inline ns_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static inline void sleep_until(ns_t when)
{
	struct timespec time = { when / 1000000000, when % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

struct figures {
	ns_t min, max, sum;
	long count;
};

static inline void figure(struct figures *figures, ns_t value)
{
	if (!figures->count || value < figures->min)
		figures->min = value;
	if (!figures->count || value > figures->max)
		figures->max = value;
	figures->sum += value;
	figures->count++;
}

static inline void show(const char *name, const struct figures *figures)
{
	printf("  %-24s %7ld samples, min %8lld avg %8lld max %8lld ns\n", name, figures->count,
	       (long long)figures->min,
	       (long long)(figures->count ? figures->sum / figures->count : 0),
	       (long long)figures->max);
}

static inline void fifo(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	must(sched_setscheduler(0, SCHED_FIFO, &param));
}

static inline void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(sched_setaffinity(0, sizeof(set), &set));
}

/* An address that nobody may touch. */
static inline void *nowhere(void)
{
	static void *page;

	if (!page)
		page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page;
}

static inline int conclude(const char *name)
{
	printf("%s: %s\n", name, failures ? "FAILED" : "ok");
	return failures ? 1 : 0;
}

#endif /* CHECK_H */
