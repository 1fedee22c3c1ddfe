/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/stall holds a CPU for a given time.
 *
 * Write, as text, words apart by blanks:
 *
 *	KIND MICROSECONDS [OPTION=VALUE]...
 *	stop
 *
 * Kinds, and what holds the CPU in each:
 *
 *	irqs-off	interrupts masked
 *	preempt-off	preemption disabled, interrupts open
 *	softirq		a soft interrupt (on PREEMPT_RT: a thread)
 *	raw-spinlock	a raw spinlock held
 *	spinlock	a spinlock held (on PREEMPT_RT: it sleeps, and inherits)
 *	mutex		a mutex held
 *	rt-mutex	a mutex with priority inheritance held
 *
 * Each of the four locks exists once: whoever writes its kind takes it, and a
 * length of 0 gives it back at once, which is how to want a lock that another
 * holds.
 *
 * Options:
 *
 *	after=US	begin so many microseconds from now
 *	at=NS		begin at this time of CLOCK_MONOTONIC, in nanoseconds
 *	every=US	and again at this period, at least twice the length; the
 *			periodic stalls of all open files, each at length / period,
 *			may not take more than half of the time together (EBUSY)
 *	count=N		so many stalls; 1 without every=, no end with it
 *
 * Without after=, at= and every= the writing thread itself is held, and write()
 * returns when it is over. Else write() returns at once, and the stalls happen
 * on the CPU that it was called on: irqs-off in an interrupt of its own, softirq
 * in a soft interrupt, the others in a thread stall/CPU of that CPU at SCHED_FIFO
 * 50. Every valid write, stop, and closing the file end what the open file
 * had armed before.
 *
 * Read (after a write; any time with pread() at 0): one line of text about this
 * open file's stalls since its last write,
 *
 *	done=N skipped=N start=NS end=NS
 *
 * how many are over, how many did not happen because the one before was not
 * over, and the last one's times on CLOCK_MONOTONIC. start is the first, end the
 * last time stamp while the CPU is held; end - start is at least the length asked for,
 * and longer by no more than the reading of one time stamp, and whatever
 * interrupted a kind that can be interrupted.
 */

#ifndef _UAPI_STALL_H
#define _UAPI_STALL_H

#define STALL_DEVICE		"/dev/stall"

/* The longest stall: more is EINVAL. */
#define STALL_US_MAX		1000000

/* The latest begin, and the longest period. */
#define STALL_AFTER_US_MAX	3600000000

/* The shortest period. */
#define STALL_EVERY_US_MIN	100

/* The longest text that a write may have. */
#define STALL_TEXT_MAX		127

#endif /* _UAPI_STALL_H */
