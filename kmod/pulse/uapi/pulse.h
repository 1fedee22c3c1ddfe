/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/pulse makes interrupts and takes their times.
 *
 *	open, PULSE_SETUP, PULSE_START, read ..., PULSE_STATS, close
 *
 * Each open file has its own source of interrupts and its own records.
 *
 * read() takes as many whole struct pulse_record as are there and fit; it waits
 * for the first one, unless O_NONBLOCK is set. It returns 0 when the burst is
 * over and all records are read, or when there is no burst. Nobody but one
 * thread at a time may read (EBUSY).
 */

#ifndef _UAPI_PULSE_H
#define _UAPI_PULSE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PULSE_DEVICE	"/dev/pulse"

enum pulse_source {
	/*
	 * QEMU's PCI device "edu": a write to it asserts its interrupt at once.
	 * One open file at a time.
	 */
	PULSE_SOURCE_EDU = 1,
	/*
	 * A comparator of the HPET, which /dev/hpet has lent: it interrupts by
	 * itself, whatever the CPUs do. One open file at a time.
	 */
	PULSE_SOURCE_HPET = 2,
	/* An interrupt that one CPU sends to another, or to itself. */
	PULSE_SOURCE_IPI = 3,
};

/* The hard handler wakes the reader: there is no threaded handler. */
#define PULSE_HARD_ONLY		0x1
/* edu: use the interrupt line, not a message (MSI). */
#define PULSE_INTX		0x2
/* hpet: program each interrupt in the handler of the one before. */
#define PULSE_ONE_SHOT		0x4

/* struct pulse_setup::cpu: wherever it comes; ipi: the one that calls PULSE_SETUP. */
#define PULSE_ANY_CPU		0xffffffff

#define PULSE_INTERVAL_NS_MIN	1000
#define PULSE_INTERVAL_NS_MAX	10000000000
/*
 * hpet: an interval below this, hard_spin_ns and thread_spin_ns together needs a
 * burst with an end. edu, ipi: no interval may be shorter than that.
 */
#define PULSE_INTERVAL_NS_FREE	20000
/* The longest that such a burst may be, count * interval_ns. */
#define PULSE_BURST_NS_MAX	60000000000
#define PULSE_SPIN_NS_MAX	10000000
#define PULSE_RECORDS_MAX	(1 << 20)

struct pulse_setup {
	__u32 source;		/* enum pulse_source */
	__u32 flags;		/* PULSE_HARD_ONLY, ... */
	__u64 interval_ns;	/* 0 (edu, ipi): only by PULSE_TRIGGER */
	__u64 count;		/* the burst ends with this interrupt; 0: never */
	__u32 records;		/* room for so many, a power of two; 0: only count */
	__u32 cpu;		/* the CPU that is interrupted, or PULSE_ANY_CPU */
	__u32 hard_spin_ns;	/* make the hard handler so much longer, at its end */
	__u32 thread_spin_ns;	/* make the threaded handler so much longer */
	__s32 hpet_fd;		/* hpet: the descriptor of /dev/hpet that it was lent to */
	__u32 reserved[7];	/* must be 0 */
};

struct pulse_record {
	/*
	 * Which interrupt of the burst, from 1. A gap after it means that so many
	 * were due before the hard handler had been entered for this one, and
	 * were lost in it, or that there was no room for a record.
	 */
	__u64 seq;
	/*
	 * CLOCK_MONOTONIC. edu, ipi: just before it was raised. hpet: when it was
	 * due, by the HPET's own counter.
	 */
	__u64 asserted_ns;
	__u64 hard_ns;		/* the hard handler was entered */
	__u64 thread_ns;	/* the threaded handler was; 0: PULSE_HARD_ONLY */
};

struct pulse_stats {
	__u64 raised;		/* interrupts that the source made, or were due */
	__u64 handled;		/* of them, those that the hard handler saw apart */
	__u64 extra;		/* entries of the hard handler with nothing new */
	__u64 threaded;		/* entries of the threaded handler */
	__u64 dropped;		/* records for which there was no room */
	__u64 skipped;		/* edu, ipi: periods in which nothing was raised */
	__u64 interval_fs;	/* the interval in fact, in femtoseconds */
	__u32 irq;		/* Linux's number of the interrupt; 0: none */
	__s32 thread_pid;	/* the threaded handler's; 0: it has not run */
	__u32 over;		/* 1: stopped, or the burst has ended */
	__u32 flags;		/* those that are in force */
	__u64 reserved[3];	/* 0 */
};

/* One of those that Linux's Documentation/userspace-api/ioctl/ioctl-number.rst leaves free. */
#define PULSE_IOC_MAGIC	0xd0

/*
 * Chooses a source. Not while it is started (EBUSY). What this header does not
 * define is refused (EINVAL): flags, and reserved fields that are not 0. So new
 * fields take the place of reserved ones, 0 means what was before them, and who
 * asks for them where there are none is told.
 *
 * A source that goes away, as edu does when it is unbound, ends the burst; its
 * records can still be read. PULSE_START then gives EINVAL until another set-up.
 */
#define PULSE_SETUP	_IOW(PULSE_IOC_MAGIC, 1, struct pulse_setup)
/* Begins a burst: counts, sequence and records from the start. */
#define PULSE_START	_IO(PULSE_IOC_MAGIC, 2)
/* Ends it; returns when no handler runs any more. */
#define PULSE_STOP	_IO(PULSE_IOC_MAGIC, 3)
/* Raises one interrupt, where interval_ns is 0. */
#define PULSE_TRIGGER	_IO(PULSE_IOC_MAGIC, 4)
#define PULSE_STATS	_IOR(PULSE_IOC_MAGIC, 5, struct pulse_stats)

#endif /* _UAPI_PULSE_H */
