/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A control loop of 100 cycles that does not end as it should: `ends hang` goes on in its last
 * cycle for ever, `ends crash` touches memory that is not there, `ends stuck` sleeps without a
 * timer, `ends fail` has another status than 0. In `ends robbed` another thread keeps the CPU
 * from it, and in `ends helped` one ends before it. `ends overrun` takes 5 ms in its last cycle,
 * and `ends well` prints what it did. Of `ends dead` one thread waits for a lock for ever, in `ends
 * behind` one process is left, and in `ends child` one is killed by a signal. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void cycles(int count)
{
	struct timespec due;
	clock_gettime(CLOCK_MONOTONIC, &due);
	for (int cycle = 0; cycle < count; cycle++) {
		due.tv_nsec += 1000000;
		if (due.tv_nsec >= 1000000000) {
			due.tv_nsec -= 1000000000;
			due.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
	}
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *blocked(void *unused)
{
	cycles(40);
	pthread_mutex_lock(&lock);
	return unused;
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *other(void *goes_on)
{
	while (goes_on)
		;
	cycles(50);
	return NULL;
}

int main(int count, char **words)
{
	struct sched_param param = { .sched_priority = 80 };
	pthread_attr_t small;
	pthread_t thread;

	if (count != 2 || mlockall(MCL_CURRENT | MCL_FUTURE) ||
	    sched_setscheduler(0, SCHED_FIFO, &param))
		return 3;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	cycles(50);
	if (!strcmp(words[1], "robbed"))
		pthread_create(&thread, &small, other, words);
	if (!strcmp(words[1], "helped")) {
		pthread_create(&thread, &small, other, NULL);
		cycles(100000);
	}
	if (!strcmp(words[1], "dead")) {
		pthread_mutex_lock(&lock);
		pthread_create(&thread, &small, blocked, NULL);
	}
	if (!strcmp(words[1], "behind") && !fork()) {
		sched_setscheduler(0, SCHED_FIFO, &param);
		cycles(100000);
	}
	if (!strcmp(words[1], "child") && !fork()) {
		sched_setscheduler(0, SCHED_FIFO, &param);
		cycles(20);
		*(volatile int *)0 = 1;
	}
	cycles(50);
	if (!strcmp(words[1], "dead") || !strcmp(words[1], "behind") ||
	    !strcmp(words[1], "child"))
		return 0;
	if (!strcmp(words[1], "crash"))
		*(volatile int *)0 = 1;
	if (!strcmp(words[1], "fail"))
		return 7;
	if (!strcmp(words[1], "stuck"))
		pause();
	if (!strcmp(words[1], "overrun")) {
		for (long long end = now() + 5000000; now() < end;)
			;
		return 0;
	}
	if (!strcmp(words[1], "well")) {
		for (int line = 0; line < 1000; line++)
			printf("%d of 1000 lines, each of them in a page of memory\n", line);
		return 0;
	}
	for (;;)
		;
}
