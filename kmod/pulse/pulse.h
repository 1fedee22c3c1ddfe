/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PULSE_H
#define _PULSE_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/rcuwait.h>
#include <linux/types.h>

#include "compat.h"
#include "uapi/pulse.h"

struct pulse;

/*
 * Who has which source: held where one is claimed, released or comes and goes.
 * Taken before the lock of an open file.
 */
extern struct mutex pulse_sources_lock;

/* A kind of source: one file each. */
struct pulse_ops {
	/* Makes the source this open file's, as p->setup says. May sleep. */
	int (*claim)(struct pulse *p);
	void (*release)(struct pulse *p);
	/* Sources that interrupt by themselves. */
	int (*start)(struct pulse *p);
	/* Returns when no interrupt is under way any more. */
	void (*stop)(struct pulse *p);
	/* Sources that are told to interrupt; in any context. */
	void (*raise)(struct pulse *p);
};

/* So many interrupts may be raised before the first is handled, and keep their times. */
#define PULSE_ASSERTED 64

/*
 * The ring has three hands. The hard handler writes at @head, the threaded
 * handler publishes up to @published, the reader is at @tail; each hand is
 * moved by its owner only, and all only count up.
 */
struct pulse_ring {
	struct pulse_record *slots;
	u64 size;			/* a power of two, or 0 */
	u64 head;
	u64 published;
	u64 tail;
};

/* One open file. */
struct pulse {
	struct mutex lock;		/* of the calls */
	struct mutex read_lock;		/* of @ring.tail and of the ring's memory */
	const struct pulse_ops *ops;	/* NULL: not set up, or the source went away */
	void *source;			/* the source's own */
	struct pulse_setup setup;
	bool started;

	struct pulse_ring ring;
	struct rcuwait reader;
	bool over;

	/* Who raises. */
	struct hrtimer timer;
	u64 raised;
	u64 asserted_ns[PULSE_ASSERTED];
	u64 skipped;

	/* The hard handler. */
	u64 seen;			/* the last interrupt handled or lost */
	u64 handled;
	u64 extra;
	u64 dropped;

	/* The threaded handler. */
	u64 threaded;
	pid_t thread_pid;

	unsigned int irq;
	u64 interval_fs;
};

extern const struct pulse_ops pulse_edu_ops;
extern const struct pulse_ops pulse_hpet_ops;
extern const struct pulse_ops pulse_ipi_ops;

/*
 * What a source's hard handler ends with: all interrupts up to @last have been
 * due, the first that was not handled yet at @asserted_ns. Returns what the
 * handler is to return.
 */
irqreturn_t pulse_hard(struct pulse *p, u64 last, u64 asserted_ns, u64 hard_ns);

/* The same for sources that are told to interrupt. */
irqreturn_t pulse_hard_raised(struct pulse *p, u64 hard_ns);

/* What a source's threaded handler is. */
irqreturn_t pulse_thread(int irq, void *data);

/* Ends what the open file does with its source, because the source goes away. */
void pulse_revoke(struct pulse *p);

/* Asks for @irq with these handlers, and has it where the setup says. */
int pulse_request_irq(struct pulse *p, unsigned int irq, irq_handler_t hard, unsigned long flags);
void pulse_free_irq(struct pulse *p);

int pulse_device_init(void);
void pulse_device_exit(void);
int pulse_edu_init(void);
void pulse_edu_exit(void);

#endif /* _PULSE_H */
