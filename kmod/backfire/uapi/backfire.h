/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/backfire sends a signal back to the thread that asks for it.
 *
 * Write: the number of a signal, 1 to 31, as decimal text of at most
 * BACKFIRE_TEXT_MAX bytes, with or without a newline. Nothing else is taken, nor
 * from a thread whose user IDs are not those that the file was opened with (EPERM).
 *
 * Read: two lines of text about the last signal that was sent through this
 * open file, or zeros if there was none:
 *
 *	SECONDS,MICROSECONDS	the time of day when it was sent
 *	NANOSECONDS		the same on CLOCK_MONOTONIC
 *
 * A write rewinds: each may be followed by a read, without seeking. A second
 * read finds the end of the file; pread() at 0 finds the lines as often as wanted.
 */

#ifndef _UAPI_BACKFIRE_H
#define _UAPI_BACKFIRE_H

#define BACKFIRE_DEVICE		"/dev/backfire"

#define BACKFIRE_SIGNAL_MIN	1
#define BACKFIRE_SIGNAL_MAX	31

/* The longest text that a write may have. */
#define BACKFIRE_TEXT_MAX	8

#endif /* _UAPI_BACKFIRE_H */
