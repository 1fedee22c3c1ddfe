// SPDX-License-Identifier: GPL-2.0
/* Interrupts that one CPU sends to another, or to itself. */

#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "pulse.h"

struct pulse_ipi {
	struct pulse *pulse;
	call_single_data_t csd;		/* to another CPU */
	atomic_t csd_under_way;
	struct irq_work irq_work;	/* to the same CPU, where a csd is a mere call */
	struct kthread_worker *worker;	/* the threaded handler */
	struct kthread_work work;
};

static void pulse_ipi_hard(struct pulse_ipi *ipi)
{
	u64 hard_ns = ktime_get_ns();

	if (pulse_hard_raised(ipi->pulse, hard_ns) == IRQ_WAKE_THREAD)
		kthread_queue_work(ipi->worker, &ipi->work);
}

static void pulse_ipi_hard_csd(void *data)
{
	struct pulse_ipi *ipi = data;

	pulse_ipi_hard(ipi);
	atomic_dec_return_release(&ipi->csd_under_way);
}

static void pulse_ipi_hard_irq_work(struct irq_work *irq_work)
{
	pulse_ipi_hard(container_of(irq_work, struct pulse_ipi, irq_work));
}

static void pulse_ipi_thread(struct kthread_work *work)
{
	pulse_thread(0, container_of(work, struct pulse_ipi, work)->pulse);
}

/*
 * Either refuses if the one before has not been delivered yet; then that one's
 * handler will see both, and this one is lost in it.
 */
static void pulse_ipi_raise(struct pulse *p)
{
	struct pulse_ipi *ipi = p->source;

	preempt_disable();
	if (p->setup.cpu == smp_processor_id()) {
		irq_work_queue(&ipi->irq_work);
	} else {
		atomic_inc(&ipi->csd_under_way);
		if (smp_call_function_single_async(p->setup.cpu, &ipi->csd))
			atomic_dec(&ipi->csd_under_way);
	}
	preempt_enable();
}

static int pulse_ipi_claim(struct pulse *p)
{
	struct pulse_ipi *ipi;
	unsigned int cpu;
	int ret;

	if (p->setup.cpu == PULSE_ANY_CPU)
		p->setup.cpu = raw_smp_processor_id();
	cpu = p->setup.cpu;

	ipi = kzalloc(sizeof(*ipi), GFP_KERNEL);
	if (!ipi)
		return -ENOMEM;
	ipi->pulse = p;
	ipi->csd.func = pulse_ipi_hard_csd;
	ipi->csd.info = ipi;
	compat_irq_work_init_hard(&ipi->irq_work, pulse_ipi_hard_irq_work);
	kthread_init_work(&ipi->work, pulse_ipi_thread);

	ipi->worker = compat_kthread_run_worker_on_cpu(cpu, "pulse/%u");
	if (IS_ERR(ipi->worker)) {
		ret = PTR_ERR(ipi->worker);
		goto err_worker;
	}
	/* What an interrupt's thread has. */
	sched_set_fifo(ipi->worker->task);
	p->source = ipi;
	return 0;

err_worker:
	kfree(ipi);
	return ret;
}

static void pulse_ipi_stop(struct pulse *p)
{
	struct pulse_ipi *ipi = p->source;

	irq_work_sync(&ipi->irq_work);
	while (atomic_read_acquire(&ipi->csd_under_way))
		usleep_range(10, 100);
	kthread_flush_work(&ipi->work);
}

static void pulse_ipi_release(struct pulse *p)
{
	struct pulse_ipi *ipi = p->source;

	kthread_destroy_worker(ipi->worker);
	kfree(ipi);
}

const struct pulse_ops pulse_ipi_ops = {
	.claim		= pulse_ipi_claim,
	.release	= pulse_ipi_release,
	.stop		= pulse_ipi_stop,
	.raise		= pulse_ipi_raise,
};
