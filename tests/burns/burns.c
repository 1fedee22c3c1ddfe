// SPDX-License-Identifier: GPL-2.0
/*
 * burns - runs BURNS instructions with interrupts off each 20 ms; with
 * BURNS_PREEMPTION, in a thread with preemption off instead
 *
 * For the tests of `punctual gate`: a kernel with this module holds threads up
 * for a known length, in a function with a known name, so seldom that hardly
 * any sample meets it. Where BURNS is 0, the timer comes and nothing is burnt.
 */

#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/version.h>

/* No multiple of a tick, nor of a period of the probe `timer`. */
#define BURNS_EVERY_NS	20011003

static noinline void burns_instructions(void)
{
	unsigned int turn;

	/* Two instructions in each turn. */
	for (turn = BURNS / 2; turn; turn--)
		barrier();
}

#ifdef BURNS_PREEMPTION
static struct task_struct *burns_thread;

static int burns_loop(void *unused)
{
	ktime_t pause = ns_to_ktime(BURNS_EVERY_NS);

	sched_set_fifo(current);
	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		schedule_hrtimeout(&pause, HRTIMER_MODE_REL);
		preempt_disable();
		burns_instructions();
		preempt_enable();
	}
	return 0;
}

static int __init burns_init(void)
{
	burns_thread = kthread_run(burns_loop, NULL, "burns");
	return PTR_ERR_OR_ZERO(burns_thread);
}

static void __exit burns_exit(void)
{
	kthread_stop(burns_thread);
}
#else
static struct hrtimer burns_timer;

static enum hrtimer_restart burns_due(struct hrtimer *timer)
{
	burns_instructions();
	hrtimer_forward_now(timer, ns_to_ktime(BURNS_EVERY_NS));
	return HRTIMER_RESTART;
}

static int __init burns_init(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&burns_timer, burns_due, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(&burns_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	burns_timer.function = burns_due;
#endif
	hrtimer_start(&burns_timer, ns_to_ktime(BURNS_EVERY_NS), HRTIMER_MODE_REL_HARD);
	return 0;
}

static void __exit burns_exit(void)
{
	hrtimer_cancel(&burns_timer);
}
#endif

module_init(burns_init);
module_exit(burns_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Runs instructions with interrupts or preemption off each 20 ms");
