/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A control loop of three steps, 100 cycles of 1 ms. -DPLANTED=n lengthens the second step by as
 * many rounds; -DOTHER_ORDER links the steps in another order, which changes no instruction. */
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef PLANTED
#define PLANTED 0
#endif
#define CYCLES 100
#define PERIOD 1000000

void step_read(void);
void step_control(void);
void step_write(void);
static volatile long state;

#define STEP(name, rounds)                                \
	void __attribute__((noinline, noclone)) name(void) \
	{                                                  \
		for (long i = 0; i < (rounds); i++)        \
			state += i;                        \
	}

#ifdef OTHER_ORDER
STEP(step_write, 200)
STEP(step_control, 500 + PLANTED)
STEP(step_read, 100)
#else
STEP(step_read, 100)
STEP(step_control, 500 + PLANTED)
STEP(step_write, 200)
#endif

int main(void)
{
	struct sched_param param = { .sched_priority = 80 };
	struct timespec due;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return 3;
	clock_gettime(CLOCK_MONOTONIC, &due);
	for (int i = 0; i < CYCLES; i++) {
		due.tv_nsec += PERIOD;
		if (due.tv_nsec >= 1000000000) {
			due.tv_nsec -= 1000000000;
			due.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		step_read();
		step_control();
		step_write();
	}
	usleep(1000);
	return 0;
}
