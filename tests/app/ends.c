/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A control loop of 100 cycles that does not end as it should: `ends hang` goes on in its last
 * cycle for ever, `ends crash` touches memory that is not there, `ends stuck` sleeps without a
 * timer, `ends fail` has another status than 0. */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words)
{
	struct sched_param param = { .sched_priority = 80 };
	struct timespec due;

	if (count != 2 || mlockall(MCL_CURRENT | MCL_FUTURE) ||
	    sched_setscheduler(0, SCHED_FIFO, &param))
		return 3;
	clock_gettime(CLOCK_MONOTONIC, &due);
	for (int cycle = 0; cycle < 100; cycle++) {
		due.tv_nsec += 1000000;
		if (due.tv_nsec >= 1000000000) {
			due.tv_nsec -= 1000000000;
			due.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
	}
	if (!strcmp(words[1], "crash"))
		*(volatile int *)0 = 1;
	if (!strcmp(words[1], "fail"))
		return 7;
	if (!strcmp(words[1], "stuck"))
		pause();
	for (;;)
		;
}
