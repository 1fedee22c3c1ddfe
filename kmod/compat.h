/* SPDX-License-Identifier: GPL-2.0 */
/* What differs between the kernels 5.10 to 6.18: the one place that knows. */

#ifndef _PUNCTUAL_COMPAT_H
#define _PUNCTUAL_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/pci.h>
#include <linux/version.h>

/* 5.12 made the flags of an irq_work part of its call_single_node. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 12, 0)
static inline void compat_irq_work_init_hard(struct irq_work *work,
					     void (*func)(struct irq_work *))
{
	init_irq_work(work, func);
	atomic_set(&work->flags, IRQ_WORK_HARD_IRQ);
}
#else
static inline void compat_irq_work_init_hard(struct irq_work *work,
					     void (*func)(struct irq_work *))
{
	*work = IRQ_WORK_INIT_HARD(func);
}
#endif

/* 5.14 exported irq_set_affinity(). The hint sets it, too, and must not stay. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 14, 0)
static inline int compat_irq_set_affinity(unsigned int irq,
					  const struct cpumask *mask)
{
	int ret = irq_set_affinity_hint(irq, mask);

	irq_set_affinity_hint(irq, NULL);
	return ret;
}
#else
#define compat_irq_set_affinity irq_set_affinity
#endif

/* 6.8 renamed PCI_IRQ_LEGACY. */
#ifndef PCI_IRQ_INTX
#define PCI_IRQ_INTX PCI_IRQ_LEGACY
#endif

/* 6.13 added hrtimer_setup(), 6.15 removed hrtimer_init(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void compat_hrtimer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*function)(struct hrtimer *),
					clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#else
#define compat_hrtimer_setup hrtimer_setup
#endif

/* 6.14 gave the function that also starts the worker a name of its own. */
static inline struct kthread_worker *compat_kthread_run_worker_on_cpu(unsigned int cpu,
								      const char name[])
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	return kthread_create_worker_on_cpu(cpu, 0, name, cpu);
#else
	return kthread_run_worker_on_cpu(cpu, 0, name);
#endif
}

#endif /* _PUNCTUAL_COMPAT_H */
