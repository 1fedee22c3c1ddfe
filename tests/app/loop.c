/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A control loop that says what it saw of itself: a line for each cycle with its number, when
 * it was due, and when it read the clock at its begin and at its end. Two cycles are known to be
 * odd: one works for longer, and one sleeps for a lock that another thread holds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CYCLES 200
#define PERIOD 1000000
#define LONG_ONE 60
#define LOCKED_ONE 120

static long long seen[CYCLES][3];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void be_real_time(int priority)
{
	struct sched_param param = { .sched_priority = priority };
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		exit(3);
}

/* Holds the lock for 300 us, from before LOCKED_ONE is due on. */
static void *holder(void *first)
{
	long long due = *(long long *)first + LOCKED_ONE * (long long)PERIOD - 100000;
	struct timespec t = { due / 1000000000, due % 1000000000 };
	be_real_time(70);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	pthread_mutex_lock(&lock);
	while (now() < due + 300000)
		;
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(int argc, char **argv)
{
	long long work = argc > 1 ? atoll(argv[1]) : 0, first;
	pthread_t other;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	first = now() + 50000000;
	if (pthread_create(&other, NULL, holder, &first))
		return 4;
	be_real_time(80);
	for (int i = 0; i < CYCLES; i++) {
		long long due = first + i * (long long)PERIOD;
		struct timespec t = { due / 1000000000, due % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		seen[i][0] = due;
		seen[i][1] = now();
		if (i == LONG_ONE)
			while (now() < seen[i][1] + work)
				;
		if (i == LOCKED_ONE) {
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
		seen[i][2] = now();
	}
	/* The last cycle has an end, too. */
	usleep(1000);
	pthread_join(other, NULL);
	for (int i = 0; i < CYCLES; i++)
		printf("%d %lld %lld %lld\n", i, seen[i][0], seen[i][1], seen[i][2]);
	return 7;
}
