/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Marks for a program that Punctual measures (`punctual run --program`), and whose cycles do not
 * begin and end with a wait that the kernel sees: it waits by reading a clock or a device's
 * memory again and again, or its waits are none of a cycle.
 *
 *     #include "punctual.h"
 *
 *     for (;;) {
 *             wait_for_the_bus();
 *             punctual_due(when_the_frame_came);   (may be left away)
 *             punctual_begin();
 *             control();
 *             punctual_end();
 *     }
 *
 * A thread that marks cycles has those that it marks, and no others. punctual_due says when the
 * next one is due, in nanoseconds of CLOCK_MONOTONIC; a thread that never says so has execution
 * times, and neither lateness nor response. punctual_begin ends a cycle that has no end yet.
 *
 * Where nobody measures, each costs a comparison and a branch; else one write, into the kernel's
 * trace. The program must not close that file (close_range) while it is measured. GNU C99 or C++11,
 * Linux; all of it is in this file. */
#ifndef PUNCTUAL_H
#define PUNCTUAL_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define PUNCTUAL_MARK_BEGIN 0x504e4310u
#define PUNCTUAL_MARK_END 0x504e4320u

/* The file of marks; -1 where nobody measures. */
static int punctual_file = -1;

/* When the calling thread's next cycle is due; 0 where it did not say so. */
static __thread int64_t punctual_next_due;

/* Before main, when the program has the rights that it was started with. */
__attribute__((constructor)) static void punctual_open(void)
{
	const char *path = getenv("PUNCTUAL_MARKS");
	if (path)
		punctual_file = open(path, O_WRONLY | O_CLOEXEC);
}

static inline void punctual_mark(uint32_t mark, int64_t due)
{
	struct __attribute__((packed)) {
		uint32_t mark;
		int64_t due;
	} record = { mark, due };
	int before = errno;
	if (write(punctual_file, &record, sizeof record) < 0)
		errno = before;
}

static inline void punctual_due(int64_t monotonic_ns)
{
	punctual_next_due = monotonic_ns;
}

static inline void punctual_begin(void)
{
	if (__builtin_expect(punctual_file >= 0, 0)) {
		punctual_mark(PUNCTUAL_MARK_BEGIN, punctual_next_due);
		punctual_next_due = 0;
	}
}

static inline void punctual_end(void)
{
	if (__builtin_expect(punctual_file >= 0, 0))
		punctual_mark(PUNCTUAL_MARK_END, 0);
}

#endif
