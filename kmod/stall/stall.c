// SPDX-License-Identifier: GPL-2.0
/*
 * stall - holds a CPU for a given time
 *
 * See uapi/stall.h for what is written to /dev/stall and read from it. Each
 * kind of stall spins in a function of its own, so that a trace names it.
 */

#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rtmutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "uapi/stall.h"

/* Periodic stalls of all open files together take no more than half of the time. */
#define STALL_SHARE_ALL	1000000
#define STALL_SHARE_MAX	(STALL_SHARE_ALL / 2)

struct stall;

struct stall_span {
	u64 start_ns;
	u64 end_ns;
};

struct stall_kind {
	const char *name;
	/* Takes the CPU, spins, gives it back. */
	void (*hold)(struct stall_span *span, u64 length_ns);
	/* Has stall_run() called where this kind belongs; in the timer's interrupt. */
	void (*start)(struct stall *stall);
};

struct stall_plan {
	const struct stall_kind *kind;	/* NULL: only stop what is armed */
	u64 length_ns;
	u64 begin_ns;			/* 0: at once, by the thread that writes */
	u64 every_ns;			/* 0: once */
	u32 count;			/* 0: until stopped */
	u64 share;			/* of the time that it takes, of STALL_SHARE_ALL */
};

/* One open file. */
struct stall {
	struct mutex lock;		/* of all but the record and @share */
	struct stall_plan plan;
	u64 share;			/* what it has of stall_shares */
	u32 left;
	atomic_t busy;			/* a stall has begun and is not over */
	struct hrtimer timer;
	struct irq_work irq_work;
	/*
	 * Deprecated; but what is to replace it, a workqueue in soft interrupts,
	 * there is only from Linux 6.9 on.
	 */
	struct tasklet_struct tasklet;
	struct kthread_work work;
	struct kthread_worker *worker;	/* bound to worker_cpu */
	unsigned int worker_cpu;
	struct completion over;

	raw_spinlock_t record_lock;
	struct stall_span last;
	u64 done;
	u64 skipped;
};

static DEFINE_MUTEX(stall_shares_lock);
static u64 stall_shares;

static DEFINE_RAW_SPINLOCK(stall_raw_lock);
static DEFINE_SPINLOCK(stall_lock);
static DEFINE_MUTEX(stall_mutex_lock);
static DEFINE_RT_MUTEX(stall_rt_mutex_lock);

/*
 * No cpu_relax(): its pause would make the length less exact, and there is
 * nobody to be kind to.
 */
static __always_inline void stall_spin(struct stall_span *span, u64 length_ns)
{
	u64 now_ns = ktime_get_ns();

	span->start_ns = now_ns;
	while (now_ns - span->start_ns < length_ns)
		now_ns = ktime_get_ns();
	span->end_ns = now_ns;
}

static noinline void stall_irqs_off(struct stall_span *span, u64 length_ns)
{
	unsigned long flags;

	local_irq_save(flags);
	stall_spin(span, length_ns);
	local_irq_restore(flags);
}

static noinline void stall_preempt_off(struct stall_span *span, u64 length_ns)
{
	preempt_disable();
	stall_spin(span, length_ns);
	preempt_enable();
}

/* In the tasklet; nothing more is to be taken. */
static noinline void stall_softirq(struct stall_span *span, u64 length_ns)
{
	stall_spin(span, length_ns);
}

static noinline void stall_raw_spinlock(struct stall_span *span, u64 length_ns)
{
	raw_spin_lock(&stall_raw_lock);
	stall_spin(span, length_ns);
	raw_spin_unlock(&stall_raw_lock);
}

static noinline void stall_spinlock(struct stall_span *span, u64 length_ns)
{
	spin_lock(&stall_lock);
	stall_spin(span, length_ns);
	spin_unlock(&stall_lock);
}

static noinline void stall_mutex(struct stall_span *span, u64 length_ns)
{
	mutex_lock(&stall_mutex_lock);
	stall_spin(span, length_ns);
	mutex_unlock(&stall_mutex_lock);
}

static noinline void stall_rt_mutex(struct stall_span *span, u64 length_ns)
{
	rt_mutex_lock(&stall_rt_mutex_lock);
	stall_spin(span, length_ns);
	rt_mutex_unlock(&stall_rt_mutex_lock);
}

static void stall_run(struct stall *stall)
{
	struct stall_span span;
	unsigned long flags;

	stall->plan.kind->hold(&span, stall->plan.length_ns);

	raw_spin_lock_irqsave(&stall->record_lock, flags);
	stall->last = span;
	stall->done++;
	raw_spin_unlock_irqrestore(&stall->record_lock, flags);
	atomic_set_release(&stall->busy, 0);
}

static void stall_run_irq_work(struct irq_work *irq_work)
{
	stall_run(container_of(irq_work, struct stall, irq_work));
}

static void stall_run_tasklet(struct tasklet_struct *tasklet)
{
	struct stall *stall = container_of(tasklet, struct stall, tasklet);

	stall_run(stall);
	complete(&stall->over);
}

static void stall_run_work(struct kthread_work *work)
{
	stall_run(container_of(work, struct stall, work));
}

/*
 * In an interrupt of its own, not in the timer's: the timer interrupt looks
 * for other timers that have meanwhile come due, and so would serve those that
 * the stall is to delay without another interrupt.
 */
static void stall_start_irq_work(struct stall *stall)
{
	irq_work_queue(&stall->irq_work);
}

static void stall_start_tasklet(struct stall *stall)
{
	tasklet_schedule(&stall->tasklet);
}

static void stall_start_work(struct stall *stall)
{
	kthread_queue_work(stall->worker, &stall->work);
}

static const struct stall_kind stall_kinds[] = {
	{ "irqs-off", stall_irqs_off, stall_start_irq_work },
	{ "preempt-off", stall_preempt_off, stall_start_work },
	{ "softirq", stall_softirq, stall_start_tasklet },
	{ "raw-spinlock", stall_raw_spinlock, stall_start_work },
	{ "spinlock", stall_spinlock, stall_start_work },
	{ "mutex", stall_mutex, stall_start_work },
	{ "rt-mutex", stall_rt_mutex, stall_start_work },
};

static void stall_skip(struct stall *stall, u64 periods)
{
	raw_spin_lock(&stall->record_lock);
	stall->skipped += periods;
	raw_spin_unlock(&stall->record_lock);
}

static enum hrtimer_restart stall_due(struct hrtimer *timer)
{
	struct stall *stall = container_of(timer, struct stall, timer);

	if (atomic_xchg(&stall->busy, 1)) {
		stall_skip(stall, 1);
	} else {
		stall->plan.kind->start(stall);
		if (stall->plan.count && !--stall->left)
			return HRTIMER_NORESTART;
	}
	stall_skip(stall, hrtimer_forward_now(timer, ns_to_ktime(stall->plan.every_ns)) - 1);
	return HRTIMER_RESTART;
}

/* Ends what is armed; returns when no stall is under way. */
static void stall_disarm(struct stall *stall)
{
	hrtimer_cancel(&stall->timer);
	irq_work_sync(&stall->irq_work);
	tasklet_kill(&stall->tasklet);
	if (stall->worker)
		kthread_flush_work(&stall->work);
}

static void stall_drop_worker(struct stall *stall)
{
	if (!stall->worker)
		return;
	kthread_destroy_worker(stall->worker);
	stall->worker = NULL;
	/* It remembers the worker that it was last queued on: that one is gone. */
	kthread_init_work(&stall->work, stall_run_work);
}

static int stall_have_worker(struct stall *stall, unsigned int cpu)
{
	struct kthread_worker *worker;

	if (stall->worker && stall->worker_cpu == cpu)
		return 0;
	stall_drop_worker(stall);
	worker = compat_kthread_run_worker_on_cpu(cpu, "stall/%u");
	if (IS_ERR(worker))
		return PTR_ERR(worker);
	sched_set_fifo(worker->task);
	stall->worker = worker;
	stall->worker_cpu = cpu;
	return 0;
}

static int stall_arm(struct stall *stall)
{
	unsigned int cpu;
	int ret;

	/* The timer and the thread must be this CPU's, whichever it is. */
	for (;;) {
		cpu = raw_smp_processor_id();
		ret = stall_have_worker(stall, cpu);
		if (ret)
			return ret;
		preempt_disable();
		if (cpu == smp_processor_id())
			break;
		preempt_enable();
	}
	hrtimer_start(&stall->timer, ns_to_ktime(stall->plan.begin_ns),
		      HRTIMER_MODE_ABS_PINNED_HARD);
	preempt_enable();
	return 0;
}

static int stall_now(struct stall *stall)
{
	if (stall->plan.kind->start != stall_start_tasklet) {
		stall_run(stall);
		return 0;
	}

	reinit_completion(&stall->over);
	/* Soft interrupts that were raised meanwhile run at the end of this. */
	local_bh_disable();
	tasklet_schedule(&stall->tasklet);
	local_bh_enable();
	return wait_for_completion_killable(&stall->over);
}

/* Has the open file take this share in place of the one that it has. */
static int stall_take_share(struct stall *stall, u64 share)
{
	int ret = 0;
	u64 shares;

	mutex_lock(&stall_shares_lock);
	shares = stall_shares - stall->share + share;
	if (share && shares > STALL_SHARE_MAX) {
		ret = -EBUSY;
	} else {
		stall_shares = shares;
		stall->share = share;
	}
	mutex_unlock(&stall_shares_lock);
	return ret;
}

/* The next word, or NULL. */
static char *stall_word(char **text)
{
	char *word;

	do {
		word = strsep(text, " \t\n");
	} while (word && !*word);
	return word;
}

static int stall_parse_number(const char *text, u64 max, u64 *number)
{
	if (!text || kstrtou64(text, 10, number) || *number > max)
		return -EINVAL;
	return 0;
}

/* The options; *begin_ns, *every_ns and *count stay as they are if not given. */
static int stall_parse_options(char *text, u64 now_ns, struct stall_plan *plan, bool *counted)
{
	char *value;
	u64 number;

	while ((value = stall_word(&text))) {
		const char *option = strsep(&value, "=");
		int ret = stall_parse_number(value, S64_MAX, &number);

		if (ret)
			return ret;
		if (!strcmp(option, "after") && !plan->begin_ns &&
		    number <= STALL_AFTER_US_MAX) {
			plan->begin_ns = now_ns + number * NSEC_PER_USEC;
		} else if (!strcmp(option, "at") && !plan->begin_ns && number &&
			   number <= now_ns + STALL_AFTER_US_MAX * NSEC_PER_USEC) {
			plan->begin_ns = number;
		} else if (!strcmp(option, "every") && !plan->every_ns &&
			   number >= STALL_EVERY_US_MIN && number <= STALL_AFTER_US_MAX) {
			plan->every_ns = number * NSEC_PER_USEC;
		} else if (!strcmp(option, "count") && !*counted && number <= U32_MAX) {
			plan->count = number;
			*counted = true;
		} else {
			return -EINVAL;
		}
	}
	return 0;
}

static int stall_parse(char *text, u64 now_ns, struct stall_plan *plan)
{
	const char *name = stall_word(&text);
	bool counted = false;
	u64 length_us;
	int i, ret;

	memset(plan, 0, sizeof(*plan));
	if (!name)
		return -EINVAL;
	if (!strcmp(name, "stop"))
		return stall_word(&text) ? -EINVAL : 0;

	for (i = 0; i < ARRAY_SIZE(stall_kinds); i++)
		if (!strcmp(name, stall_kinds[i].name))
			plan->kind = &stall_kinds[i];
	if (!plan->kind)
		return -EINVAL;
	ret = stall_parse_number(stall_word(&text), STALL_US_MAX, &length_us);
	if (ret)
		return ret;
	plan->length_ns = length_us * NSEC_PER_USEC;
	ret = stall_parse_options(text, now_ns, plan, &counted);
	if (ret)
		return ret;

	if (!plan->every_ns) {
		if (counted && plan->count != 1)
			return -EINVAL;
		plan->count = 1;
		return 0;
	}
	if (plan->every_ns < 2 * plan->length_ns)
		return -EINVAL;
	plan->share = div64_u64(plan->length_ns * STALL_SHARE_ALL, plan->every_ns);
	if (!plan->begin_ns)
		plan->begin_ns = now_ns + plan->every_ns;
	return 0;
}

static ssize_t stall_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct stall *stall = file->private_data;
	u64 now_ns = ktime_get_ns();
	struct stall_plan plan;
	char text[STALL_TEXT_MAX + 1];
	int ret;

	if (len > STALL_TEXT_MAX)
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = '\0';
	if (strlen(text) != len)
		return -EINVAL;
	ret = stall_parse(text, now_ns, &plan);
	if (ret)
		return ret;

	ret = mutex_lock_interruptible(&stall->lock);
	if (ret)
		return ret;
	ret = stall_take_share(stall, plan.share);
	if (ret)
		goto out;
	stall_disarm(stall);
	*pos = 0;
	/* Nothing is under way: plan and record are this thread's. */
	stall->plan = plan;
	stall->left = plan.count;
	stall->done = 0;
	stall->skipped = 0;
	memset(&stall->last, 0, sizeof(stall->last));
	atomic_set(&stall->busy, 0);
	if (plan.kind)
		ret = plan.begin_ns ? stall_arm(stall) : stall_now(stall);
	if (ret)
		stall_take_share(stall, 0);
out:
	mutex_unlock(&stall->lock);
	return ret ? ret : len;
}

static ssize_t stall_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct stall *stall = file->private_data;
	struct stall_span last;
	u64 done, skipped;
	char text[128];
	int text_len;

	raw_spin_lock_irq(&stall->record_lock);
	last = stall->last;
	done = stall->done;
	skipped = stall->skipped;
	raw_spin_unlock_irq(&stall->record_lock);

	text_len = scnprintf(text, sizeof(text), "done=%llu skipped=%llu start=%llu end=%llu\n",
			     done, skipped, last.start_ns, last.end_ns);
	return simple_read_from_buffer(buf, len, pos, text, text_len);
}

static int stall_open(struct inode *inode, struct file *file)
{
	struct stall *stall = kzalloc(sizeof(*stall), GFP_KERNEL);

	if (!stall)
		return -ENOMEM;
	mutex_init(&stall->lock);
	raw_spin_lock_init(&stall->record_lock);
	init_completion(&stall->over);
	compat_hrtimer_setup(&stall->timer, stall_due, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS_PINNED_HARD);
	compat_irq_work_init_hard(&stall->irq_work, stall_run_irq_work);
	tasklet_setup(&stall->tasklet, stall_run_tasklet);
	kthread_init_work(&stall->work, stall_run_work);
	file->private_data = stall;
	return 0;
}

static int stall_release(struct inode *inode, struct file *file)
{
	struct stall *stall = file->private_data;

	stall_disarm(stall);
	stall_drop_worker(stall);
	stall_take_share(stall, 0);
	kfree(stall);
	return 0;
}

static const struct file_operations stall_fops = {
	.owner		= THIS_MODULE,
	.open		= stall_open,
	.release	= stall_release,
	.write		= stall_write,
	.read		= stall_read,
	.llseek		= default_llseek,
};

static struct miscdevice stall_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "stall",
	.fops	= &stall_fops,
	.mode	= 0600,
};
module_misc_device(stall_device);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The Punctual authors");
MODULE_DESCRIPTION("Holds a CPU for a given time");
MODULE_VERSION(PUNCTUAL_VERSION);
