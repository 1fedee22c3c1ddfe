// SPDX-License-Identifier: GPL-2.0
/* /dev/pulse: the calls, the ring of records, and the handlers' common part. */

#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "pulse.h"

/* Who has which source; see pulse.h. */
DEFINE_MUTEX(pulse_sources_lock);

/* Others may read meanwhile. */
static void pulse_count(u64 *counter)
{
	WRITE_ONCE(*counter, *counter + 1);
}

static noinline void pulse_spin(u64 length_ns)
{
	u64 begin_ns = ktime_get_ns();

	while (ktime_get_ns() - begin_ns < length_ns)
		;
}

/* Shows the reader what is before @head, and that the burst is over. */
static void pulse_publish(struct pulse *p, u64 head)
{
	struct pulse_ring *ring = &p->ring;

	if (ring->published == head && !READ_ONCE(p->over))
		return;
	/* The records, with their times, before the hand that shows them. */
	smp_store_release(&ring->published, head);
	rcuwait_wake_up(&p->reader);
}

static void pulse_keep(struct pulse *p, u64 seq, u64 asserted_ns, u64 hard_ns)
{
	struct pulse_ring *ring = &p->ring;

	if (!ring->size)
		return;
	/* The reader is through with a slot before it is written again. */
	if (ring->head - smp_load_acquire(&ring->tail) >= ring->size) {
		pulse_count(&p->dropped);
		return;
	}
	ring->slots[ring->head & (ring->size - 1)] = (struct pulse_record){
		.seq = seq,
		.asserted_ns = asserted_ns,
		.hard_ns = hard_ns,
	};
	/* The record before the hand that shows it to the threaded handler. */
	smp_store_release(&ring->head, ring->head + 1);
}

irqreturn_t pulse_hard(struct pulse *p, u64 last, u64 asserted_ns, u64 hard_ns)
{
	if (last == p->seen) {
		pulse_count(&p->extra);
		return IRQ_HANDLED;
	}
	pulse_count(&p->handled);
	pulse_keep(p, p->seen + 1, asserted_ns, hard_ns);
	p->seen = last;
	if (p->setup.hard_spin_ns)
		pulse_spin(p->setup.hard_spin_ns);
	if (p->setup.count && last >= p->setup.count) {
		/* Whoever sees the end sees the last record, too. */
		smp_store_release(&p->over, true);
	}

	if (!(p->setup.flags & PULSE_HARD_ONLY))
		return IRQ_WAKE_THREAD;
	pulse_publish(p, p->ring.head);
	return IRQ_HANDLED;
}

irqreturn_t pulse_hard_raised(struct pulse *p, u64 hard_ns)
{
	/* Who sees the number sees the time of assertion, too. */
	u64 last = smp_load_acquire(&p->raised);
	u64 first = p->seen + 1;

	/* If more than these are waiting, the times of the first are gone. */
	if (last - p->seen > PULSE_ASSERTED)
		first = last - PULSE_ASSERTED + 1;
	return pulse_hard(p, last, READ_ONCE(p->asserted_ns[first % PULSE_ASSERTED]), hard_ns);
}

irqreturn_t pulse_thread(int irq, void *data)
{
	struct pulse *p = data;
	struct pulse_ring *ring = &p->ring;
	/* Before the time is taken: none of these records is from later. */
	u64 head = smp_load_acquire(&ring->head);
	u64 thread_ns = ktime_get_ns();
	u64 i;

	pulse_count(&p->threaded);
	if (!p->thread_pid)
		WRITE_ONCE(p->thread_pid, task_pid_nr(current));
	for (i = ring->published; i != head; i++)
		ring->slots[i & (ring->size - 1)].thread_ns = thread_ns;
	if (p->setup.thread_spin_ns)
		pulse_spin(p->setup.thread_spin_ns);
	pulse_publish(p, head);
	return IRQ_HANDLED;
}

int pulse_request_irq(struct pulse *p, unsigned int irq, irq_handler_t hard, unsigned long flags)
{
	irq_handler_t thread = p->setup.flags & PULSE_HARD_ONLY ? NULL : pulse_thread;
	unsigned int cpu = p->setup.cpu;
	int ret;

	/*
	 * The hard handler stays one on PREEMPT_RT, and is not shut out until
	 * the threaded handler is through: it clears the interrupt itself.
	 */
	ret = request_threaded_irq(irq, hard, thread, flags | IRQF_NO_THREAD, "pulse", p);
	if (ret)
		return ret;
	p->irq = irq;
	if (cpu != PULSE_ANY_CPU) {
		ret = compat_irq_set_affinity(irq, cpumask_of(cpu));
		if (ret)
			pulse_free_irq(p);
	}
	return ret;
}

void pulse_free_irq(struct pulse *p)
{
	free_irq(p->irq, p);
	p->irq = 0;
}

static void pulse_raise(struct pulse *p)
{
	u64 seq = p->raised + 1;

	WRITE_ONCE(p->asserted_ns[seq % PULSE_ASSERTED], ktime_get_ns());
	/* The handler that sees the number sees the time, too. */
	smp_store_release(&p->raised, seq);
	p->ops->raise(p);
}

static enum hrtimer_restart pulse_due(struct hrtimer *timer)
{
	struct pulse *p = container_of(timer, struct pulse, timer);
	u64 periods;

	pulse_raise(p);
	if (p->setup.count && p->raised >= p->setup.count)
		return HRTIMER_NORESTART;
	periods = hrtimer_forward_now(timer, ns_to_ktime(p->setup.interval_ns));
	WRITE_ONCE(p->skipped, p->skipped + periods - 1);
	return HRTIMER_RESTART;
}

static const struct pulse_ops *pulse_ops_of(u32 source)
{
	switch (source) {
	case PULSE_SOURCE_EDU:
		return &pulse_edu_ops;
	case PULSE_SOURCE_HPET:
		return IS_ENABLED(CONFIG_HPET_TIMER) ? &pulse_hpet_ops : NULL;
	case PULSE_SOURCE_IPI:
		return &pulse_ipi_ops;
	default:
		return NULL;
	}
}

static u32 pulse_flags_of(u32 source)
{
	switch (source) {
	case PULSE_SOURCE_EDU:
		return PULSE_HARD_ONLY | PULSE_INTX;
	case PULSE_SOURCE_HPET:
		return PULSE_HARD_ONLY | PULSE_ONE_SHOT;
	default:
		return PULSE_HARD_ONLY;
	}
}

/* Whether the CPU would have time for nothing else, for longer than is bearable. */
static bool pulse_is_too_much(const struct pulse_setup *setup, bool raised)
{
	u64 free_ns = (u64)PULSE_INTERVAL_NS_FREE + setup->hard_spin_ns + setup->thread_spin_ns;

	if (setup->interval_ns >= free_ns)
		return false;
	return raised || !setup->count ||
	       setup->count > div64_u64(PULSE_BURST_NS_MAX, setup->interval_ns);
}

static int pulse_check(const struct pulse_setup *setup)
{
	const struct pulse_ops *ops = pulse_ops_of(setup->source);

	if (!ops || setup->flags & ~pulse_flags_of(setup->source))
		return -EINVAL;
	if (memchr_inv(setup->reserved, 0, sizeof(setup->reserved)))
		return -EINVAL;
	if (setup->cpu != PULSE_ANY_CPU &&
	    (setup->cpu >= nr_cpu_ids || !cpu_online(setup->cpu)))
		return -EINVAL;
	if (setup->records > PULSE_RECORDS_MAX ||
	    (setup->records && !is_power_of_2(setup->records)))
		return -EINVAL;
	if (setup->hard_spin_ns > PULSE_SPIN_NS_MAX || setup->thread_spin_ns > PULSE_SPIN_NS_MAX)
		return -EINVAL;
	if (setup->flags & PULSE_HARD_ONLY && setup->thread_spin_ns)
		return -EINVAL;
	if (!setup->interval_ns)
		return ops->raise ? 0 : -EINVAL;
	if (setup->interval_ns < PULSE_INTERVAL_NS_MIN ||
	    setup->interval_ns > PULSE_INTERVAL_NS_MAX)
		return -EINVAL;
	return pulse_is_too_much(setup, ops->raise) ? -EINVAL : 0;
}

static void pulse_stop(struct pulse *p)
{
	if (!p->started)
		return;
	hrtimer_cancel(&p->timer);
	p->ops->stop(p);
	p->started = false;
	/* Whoever sees the end sees the last record, too. */
	smp_store_release(&p->over, true);
	rcuwait_wake_up(&p->reader);
}

static void pulse_release_source(struct pulse *p)
{
	if (!p->ops)
		return;
	p->ops->release(p);
	p->ops = NULL;
}

static void pulse_drop_ring(struct pulse *p)
{
	kvfree(p->ring.slots);
	p->ring = (struct pulse_ring){};
}

void pulse_revoke(struct pulse *p)
{
	mutex_lock(&p->lock);
	pulse_stop(p);
	pulse_release_source(p);
	mutex_unlock(&p->lock);
}

static int pulse_setup(struct pulse *p, const struct pulse_setup *setup)
{
	const struct pulse_ops *ops = pulse_ops_of(setup->source);
	struct pulse_record *slots = NULL;
	int ret;

	pulse_release_source(p);
	pulse_drop_ring(p);
	if (setup->records) {
		slots = kvcalloc(setup->records, sizeof(*slots), GFP_KERNEL_ACCOUNT);
		if (!slots)
			return -ENOMEM;
	}
	p->setup = *setup;
	p->interval_fs = setup->interval_ns * 1000000;
	p->ring.slots = slots;
	p->ring.size = setup->records;
	ret = ops->claim(p);
	if (ret)
		pulse_drop_ring(p);
	else
		p->ops = ops;
	return ret;
}

static int pulse_start(struct pulse *p)
{
	int ret = 0;

	p->ring.head = 0;
	p->ring.published = 0;
	p->ring.tail = 0;
	p->raised = 0;
	p->skipped = 0;
	p->seen = 0;
	p->handled = 0;
	p->extra = 0;
	p->dropped = 0;
	p->threaded = 0;
	p->thread_pid = 0;
	/* Handlers and readers begin with what is set here. */
	smp_store_release(&p->over, false);

	if (p->ops->start)
		ret = p->ops->start(p);
	else if (p->setup.interval_ns)
		hrtimer_start(&p->timer, ns_to_ktime(ktime_get_ns() + p->setup.interval_ns),
			      HRTIMER_MODE_ABS_PINNED_HARD);
	if (ret)
		WRITE_ONCE(p->over, true);
	else
		p->started = true;
	return ret;
}

static long pulse_ioctl_setup(struct pulse *p, const void __user *arg)
{
	struct pulse_setup setup;
	int ret;

	if (copy_from_user(&setup, arg, sizeof(setup)))
		return -EFAULT;
	ret = pulse_check(&setup);
	if (ret)
		return ret;
	if (p->started && !READ_ONCE(p->over))
		return -EBUSY;
	pulse_stop(p);
	/* A reader that is still there finds the burst over and goes. */
	mutex_lock(&p->read_lock);
	ret = pulse_setup(p, &setup);
	mutex_unlock(&p->read_lock);
	return ret;
}

static long pulse_ioctl_start(struct pulse *p)
{
	int ret;

	if (!p->ops)
		return -EINVAL;
	if (p->started && !READ_ONCE(p->over))
		return -EBUSY;
	pulse_stop(p);
	mutex_lock(&p->read_lock);
	ret = pulse_start(p);
	mutex_unlock(&p->read_lock);
	return ret;
}

static long pulse_ioctl_trigger(struct pulse *p)
{
	if (!p->started || READ_ONCE(p->over) || p->setup.interval_ns)
		return -EINVAL;
	pulse_raise(p);
	return 0;
}

static long pulse_ioctl_stats(struct pulse *p, void __user *arg)
{
	struct pulse_stats stats = {
		.raised = READ_ONCE(p->raised),
		.handled = READ_ONCE(p->handled),
		.extra = READ_ONCE(p->extra),
		.threaded = READ_ONCE(p->threaded),
		.dropped = READ_ONCE(p->dropped),
		.skipped = READ_ONCE(p->skipped),
		.interval_fs = p->interval_fs,
		.irq = p->irq,
		.thread_pid = READ_ONCE(p->thread_pid),
		.over = READ_ONCE(p->over),
		.flags = p->setup.flags,
	};

	return copy_to_user(arg, &stats, sizeof(stats)) ? -EFAULT : 0;
}

static long pulse_ioctl_locked(struct pulse *p, unsigned int cmd, void __user *arg)
{
	switch (cmd) {
	case PULSE_SETUP:
		return pulse_ioctl_setup(p, arg);
	case PULSE_START:
		return pulse_ioctl_start(p);
	case PULSE_STOP:
		pulse_stop(p);
		return 0;
	case PULSE_TRIGGER:
		return pulse_ioctl_trigger(p);
	case PULSE_STATS:
		return pulse_ioctl_stats(p, arg);
	default:
		return -ENOTTY;
	}
}

static long pulse_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct pulse *p = file->private_data;
	bool claims = cmd == PULSE_SETUP;
	long ret;

	if (claims && mutex_lock_interruptible(&pulse_sources_lock))
		return -EINTR;
	ret = mutex_lock_interruptible(&p->lock);
	if (!ret) {
		ret = pulse_ioctl_locked(p, cmd, (void __user *)arg);
		mutex_unlock(&p->lock);
	}
	if (claims)
		mutex_unlock(&pulse_sources_lock);
	return ret;
}

/* Whether there are records, or there will be no more. */
static bool pulse_readable(struct pulse *p)
{
	/* Before the hands: what was recorded before it ended must be seen. */
	bool over = smp_load_acquire(&p->over);
	/* Before the head: if there is more by then, the burst is not over. */
	u64 published = smp_load_acquire(&p->ring.published);

	return published != p->ring.tail || (over && READ_ONCE(p->ring.head) == published);
}

static ssize_t pulse_copy(struct pulse *p, char __user *buf, size_t records)
{
	struct pulse_ring *ring = &p->ring;
	/* Before the records that it shows. */
	u64 ready = smp_load_acquire(&ring->published) - ring->tail;
	size_t done = 0;

	records = min_t(u64, records, ready);
	while (done < records) {
		u64 at = ring->tail & (ring->size - 1);
		size_t run = min_t(u64, records - done, ring->size - at);

		if (copy_to_user(buf + done * sizeof(*ring->slots), ring->slots + at,
				 run * sizeof(*ring->slots)))
			return -EFAULT;
		/* After the records were copied: now they may be written again. */
		smp_store_release(&ring->tail, ring->tail + run);
		done += run;
	}
	return done * sizeof(*ring->slots);
}

static ssize_t pulse_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct pulse *p = file->private_data;
	ssize_t ret;

	if (len < sizeof(struct pulse_record))
		return -EINVAL;
	if (!mutex_trylock(&p->read_lock))
		return -EBUSY;
	if (!pulse_readable(p)) {
		ret = -EAGAIN;
		if (file->f_flags & O_NONBLOCK)
			goto out;
		ret = rcuwait_wait_event(&p->reader, pulse_readable(p), TASK_INTERRUPTIBLE);
		if (ret) {
			ret = -ERESTARTSYS;
			goto out;
		}
	}
	ret = pulse_copy(p, buf, len / sizeof(struct pulse_record));
out:
	mutex_unlock(&p->read_lock);
	return ret;
}

static int pulse_open(struct inode *inode, struct file *file)
{
	struct pulse *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	mutex_init(&p->lock);
	mutex_init(&p->read_lock);
	rcuwait_init(&p->reader);
	p->over = true;
	compat_hrtimer_setup(&p->timer, pulse_due, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS_PINNED_HARD);
	file->private_data = p;
	return stream_open(inode, file);
}

static int pulse_release(struct inode *inode, struct file *file)
{
	struct pulse *p = file->private_data;

	/* Who is to revoke the source is through with it, or will not find it. */
	mutex_lock(&pulse_sources_lock);
	pulse_stop(p);
	pulse_release_source(p);
	mutex_unlock(&pulse_sources_lock);
	pulse_drop_ring(p);
	kfree(p);
	return 0;
}

static const struct file_operations pulse_fops = {
	.owner		= THIS_MODULE,
	.open		= pulse_open,
	.release	= pulse_release,
	.read		= pulse_read,
	.unlocked_ioctl	= pulse_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static struct miscdevice pulse_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "pulse",
	.fops	= &pulse_fops,
	.mode	= 0600,
};

int pulse_device_init(void)
{
	return misc_register(&pulse_device);
}

void pulse_device_exit(void)
{
	misc_deregister(&pulse_device);
}
