/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A control loop that is late in known cycles, each for one reason that is known: a page that it
 * touches first there, work, a lock that a thread of low priority holds while one of middle
 * priority works. Lines with a name in a comment are found by it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PERIOD 1000000LL
enum { FAULT = 10, WORK = 15, INVERSION = 20, CYCLES = 30 };
static pthread_mutex_t lock;
static long long first;
static char *page;

/* Two instructions a round. */
static void work(long rounds)
{
	do
		__asm__ volatile("" : : "r"(rounds)); /* working */
	while (--rounds);
}

static void wait_until(long long due)
{
	struct timespec t = { due / 1000000000, due % 1000000000 };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void *holder(void *unused)
{
	wait_until(first + INVERSION * PERIOD - 50000);
	pthread_mutex_lock(&lock);
	work(50000);
	pthread_mutex_unlock(&lock); /* unlocking */
	return unused;
}

static void *meddler(void *unused)
{
	wait_until(first + INVERSION * PERIOD + 30000);
	work(200000); /* meddling */
	return unused;
}

static void start(void *(*body)(void *), int priority)
{
	struct sched_param param = { .sched_priority = priority };
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &param);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	if (pthread_create(&thread, &attributes, body, NULL))
		exit(4);
}

static void cycle(int i)
{
	switch (i) {
	case FAULT:
		*(volatile char *)page = 1; /* faulting */
		break;
	case WORK:
		work(100000);
		break;
	case INVERSION:
		pthread_mutex_lock(&lock); /* locking */
		pthread_mutex_unlock(&lock);
		break;
	}
}

int main(int argc, char **argv __attribute__((unused)))
{
	struct sched_param param = { .sched_priority = 80 };
	pthread_mutexattr_t kind;
	pthread_mutexattr_init(&kind);
	if (argc > 1)
		pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &kind);
	mlockall(argc > 1 ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return 3;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	first = now.tv_sec * 1000000000LL + now.tv_nsec + 50000000;
	start(holder, 10);
	start(meddler, 50);
	for (int i = 0; i < CYCLES; i++) {
		wait_until(first + i * PERIOD);
		cycle(i);
	}
	wait_until(first + CYCLES * PERIOD);
	return 0;
}
