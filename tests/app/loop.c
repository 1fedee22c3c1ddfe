/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A control loop that says what it saw of itself: a line for each cycle with its number, when
 * it was due, and when it read the clock at its begin and at its end; and a figure of its own.
 * Two cycles are known to be odd: one works for longer, and one sleeps for a lock that another
 * thread holds.
 *
 * loop [WORK_NS [sound | faulty]]: a sound one's lock inherits priorities; a faulty one has each
 * fault in its design in a cycle that is known. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CYCLES 200
#define PERIOD 1000000
#define LONG_ONE 60
#define LOCKED_ONE 120

/* The cycles of a faulty one. */
#define FAULT_PAGE 30
#define FAULT_CALL 31
#define FAULT_PRINT 32
#define FAULT_SLEEP 33
#define FAULT_CLOCK 34
#define FAULT_SLACK 35

static long long seen[CYCLES][3];
static pthread_mutex_t lock;
static int filled[2];
static char *page;

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

/* Fills the pipe 100 us after FAULT_SLEEP was due. Its priority is its own, and a high one. */
static void *filler(void *first)
{
	long long due = *(long long *)first + FAULT_SLEEP * (long long)PERIOD + 100000;
	struct timespec t = { due / 1000000000, due % 1000000000 };
	be_real_time(90);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	if (write(filled[1], "x", 1) != 1)
		exit(5);
	return NULL;
}

/* Nobody gave it the priority that it has. */
static void *helper(void *unused)
{
	pause();
	return unused;
}

static void prepare_faults(long long *first)
{
	pthread_t one;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || pipe(filled) || pthread_create(&one, NULL, filler, first) ||
	    pthread_create(&one, NULL, helper, NULL))
		exit(6);
}

static void be_faulty(int i)
{
	char byte;
	struct sched_param none = { 0 };
	if (i == FAULT_PAGE)
		*(volatile char *)page = 1;
	if (i == FAULT_CALL)
		close(open("/dev/null", O_RDONLY));
	if (i == FAULT_PRINT && write(2, "printed\n", 8) != 8)
		exit(5);
	if (i == FAULT_SLEEP && read(filled[0], &byte, 1) != 1)
		exit(5);
	if (i == FAULT_SLACK)
		sched_setscheduler(0, SCHED_OTHER, &none);
	if (i == FAULT_SLACK + 1)
		be_real_time(80);
}

static void wait_until(long long due, int by_clock_that_is_set)
{
	struct timespec t = { due / 1000000000, due % 1000000000 }, real;
	if (by_clock_that_is_set) {
		clock_gettime(CLOCK_REALTIME, &real);
		due += real.tv_sec * 1000000000LL + real.tv_nsec - now();
		t.tv_sec = due / 1000000000;
		t.tv_nsec = due % 1000000000;
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
		return;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL); /* waiting */
}

int main(int argc, char **argv)
{
	long long work = argc > 1 ? atoll(argv[1]) : 0, first, most = 0;
	int is_sound = argc > 2 && !strcmp(argv[2], "sound");
	int is_faulty = argc > 2 && !strcmp(argv[2], "faulty");
	pthread_t other;
	pthread_mutexattr_t kind;
	pthread_mutexattr_init(&kind);
	if (is_sound)
		pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &kind);
	mlockall(is_faulty ? MCL_CURRENT : MCL_CURRENT | MCL_FUTURE);
	first = now() + 50000000;
	if (pthread_create(&other, NULL, holder, &first))
		return 4;
	be_real_time(80);
	if (is_faulty)
		prepare_faults(&first);
	for (int i = 0; i < CYCLES; i++) {
		long long due = first + i * (long long)PERIOD;
		/* What FAULT_CLOCK waits for is the next cycle. */
		wait_until(due, is_faulty && i == FAULT_CLOCK + 1);
		seen[i][0] = due;
		seen[i][1] = now();
		if (i == LONG_ONE)
			while (now() < seen[i][1] + work)
				;
		if (i == LOCKED_ONE) {
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
		if (is_faulty)
			be_faulty(i);
		seen[i][2] = now();
	}
	/* The last cycle has an end, too. */
	usleep(1000);
	pthread_join(other, NULL);
	for (int i = 0; i < CYCLES; i++) {
		printf("%d %lld %lld %lld\n", i, seen[i][0], seen[i][1], seen[i][2]);
		if (seen[i][1] - seen[i][0] > most)
			most = seen[i][1] - seen[i][0];
	}
	printf("latest begin: max_ns %lld\n", most);
	return 0;
}
