// SPDX-License-Identifier: GPL-2.0
/*
 * A comparator of the HPET: interrupts at an interval that no software keeps.
 *
 * The kernel's own /dev/hpet makes the same interrupts, but takes no times and
 * threads its handler on PREEMPT_RT. It has no interface in the kernel, either.
 * So whoever wants a comparator opens /dev/hpet, which lends one out to each
 * descriptor, and hands descriptor and comparator on to here: the descriptor is
 * kept, and the comparator is driven directly.
 *
 * The interrupt is level-triggered: it stays asserted until the handler clears
 * it, so what comes due meanwhile is lost in it, and the HPET's counter tells how
 * much that was. All counting is modulo 2^32, which each HPET can do.
 */

#include <linux/acpi.h>
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/major.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/slab.h>

#include <asm/hpet.h>

#include "pulse.h"

/* One-shot: a comparator that is set this close to the counter may be passed by it. */
#define HPET_TICKS_MARGIN	128

#define HPET_ROUTES		32
/* The lines below belong to ISA devices. */
#define HPET_ROUTE_FIRST	16

struct hpet {
	struct file *lender;
	void __iomem *mmio;
	unsigned int timer;
	u32 config;		/* as it was */
	unsigned int route;
	bool periodic;
	u32 period_fs;		/* of the counter */
	u32 interval;		/* in ticks of the counter */
	u32 begin;		/* the counter at the burst's begin */
	u64 elapsed;		/* ticks since then, as last seen */
};

/* One open file has it. */
static atomic_t hpet_taken = ATOMIC_INIT(0);

static u32 hpet_read(struct hpet *hpet, unsigned int reg)
{
	return readl(hpet->mmio + reg);
}

static void hpet_write(struct hpet *hpet, unsigned int reg, u32 value)
{
	writel(value, hpet->mmio + reg);
}

static u64 hpet_elapsed(struct hpet *hpet, u32 counter)
{
	hpet->elapsed += (u32)(counter - hpet->begin - (u32)hpet->elapsed);
	return hpet->elapsed;
}

static u64 hpet_ns(struct hpet *hpet, u64 ticks)
{
	return div_u64(ticks * hpet->period_fs, 1000000);
}

static void hpet_quiet(struct hpet *hpet)
{
	u32 config = hpet_read(hpet, HPET_Tn_CFG(hpet->timer));

	hpet_write(hpet, HPET_Tn_CFG(hpet->timer), config & ~HPET_TN_ENABLE);
	hpet_write(hpet, HPET_STATUS, BIT(hpet->timer));
}

/* Sets the comparator to the first interrupt after @last that it cannot miss. */
static void hpet_program_next(struct hpet *hpet, u64 last)
{
	u32 due;

	do {
		due = hpet->begin + (u32)(++last * hpet->interval);
		hpet_write(hpet, HPET_Tn_CMP(hpet->timer), due);
	} while ((s32)(due - hpet_read(hpet, HPET_COUNTER)) < HPET_TICKS_MARGIN);
}

static irqreturn_t hpet_hard(int irq, void *data)
{
	u64 hard_ns = ktime_get_ns();
	struct pulse *p = data;
	struct hpet *hpet = p->source;
	u32 counter = hpet_read(hpet, HPET_COUNTER);
	u64 counter_ns = hard_ns + (ktime_get_ns() - hard_ns) / 2;
	u64 elapsed, last, first_due;

	if (!(hpet_read(hpet, HPET_STATUS) & BIT(hpet->timer)))
		return IRQ_NONE;
	/*
	 * What came due between reading the counter and this is lost, too; the
	 * next interrupt will show it.
	 */
	hpet_write(hpet, HPET_STATUS, BIT(hpet->timer));

	elapsed = hpet_elapsed(hpet, counter);
	last = div_u64(elapsed, hpet->interval);
	if (!hpet->periodic)
		hpet_program_next(hpet, last);
	if (p->setup.count && last >= p->setup.count) {
		last = p->setup.count;
		hpet_quiet(hpet);
	}
	if (last > p->raised)
		WRITE_ONCE(p->raised, last);
	first_due = (p->seen + 1) * hpet->interval;
	return pulse_hard(p, last, counter_ns - hpet_ns(hpet, elapsed - first_due), hard_ns);
}

static int hpet_start(struct pulse *p)
{
	struct hpet *hpet = p->source;
	u32 config = hpet->config;
	unsigned long flags;

	hpet_quiet(hpet);
	config &= ~(HPET_TN_ROUTE | HPET_TN_FSB | HPET_TN_PERIODIC | HPET_TN_SETVAL);
	config |= HPET_TN_LEVEL | HPET_TN_32BIT | hpet->route << HPET_TN_ROUTE_SHIFT;
	if (hpet->periodic)
		config |= HPET_TN_PERIODIC | HPET_TN_SETVAL;

	local_irq_save(flags);
	hpet_write(hpet, HPET_Tn_CFG(hpet->timer), config);
	hpet->elapsed = 0;
	hpet->begin = hpet_read(hpet, HPET_COUNTER);
	hpet_write(hpet, HPET_Tn_CMP(hpet->timer), hpet->begin + hpet->interval);
	if (hpet->periodic) {
		/* That was the first one's time, this is the period; AMD 81xx wants a pause. */
		udelay(1);
		hpet_write(hpet, HPET_Tn_CMP(hpet->timer), hpet->interval);
	}
	config &= ~HPET_TN_SETVAL;
	hpet_write(hpet, HPET_Tn_CFG(hpet->timer), config | HPET_TN_ENABLE);
	local_irq_restore(flags);
	return 0;
}

static void hpet_stop(struct pulse *p)
{
	struct hpet *hpet = p->source;
	u64 last;

	hpet_quiet(hpet);
	synchronize_irq(p->irq);
	if (p->over)
		return;
	/* Those that were due and no handler has seen. */
	last = div_u64(hpet_elapsed(hpet, hpet_read(hpet, HPET_COUNTER)), hpet->interval);
	if (p->setup.count && last > p->setup.count)
		last = p->setup.count;
	p->raised = last;
}

static struct file *hpet_lender(int fd)
{
	struct file *file = fget(fd);

	if (!file)
		return ERR_PTR(-EBADF);
	if (!S_ISCHR(file_inode(file)->i_mode) ||
	    file_inode(file)->i_rdev != MKDEV(MISC_MAJOR, HPET_MINOR)) {
		fput(file);
		return ERR_PTR(-EINVAL);
	}
	return file;
}

static void __iomem *hpet_map(void)
{
	struct acpi_table_hpet *table;
	void __iomem *mmio;

	if (ACPI_FAILURE(acpi_get_table(ACPI_SIG_HPET, 0, (struct acpi_table_header **)&table)))
		return NULL;
	mmio = ioremap(table->address.address, HPET_MMAP_SIZE);
	acpi_put_table((struct acpi_table_header *)table);
	return mmio;
}

/*
 * Finds a line for the comparator that nobody else listens to; downwards, as
 * others begin at the low end.
 */
static int hpet_request_irq(struct pulse *p, struct hpet *hpet)
{
	u32 routes = hpet_read(hpet, HPET_Tn_CFG(hpet->timer) + 4);
	int route, irq;

	for (route = HPET_ROUTES - 1; route >= HPET_ROUTE_FIRST; route--) {
		if (!(routes & BIT(route)))
			continue;
		irq = acpi_register_gsi(NULL, route, ACPI_LEVEL_SENSITIVE, ACPI_ACTIVE_LOW);
		if (irq <= 0)
			continue;
		/* That the line is taken is nothing to warn of. */
		if (!pulse_request_irq(p, irq, hpet_hard, IRQF_PROBE_SHARED)) {
			hpet->route = route;
			return 0;
		}
		acpi_unregister_gsi(route);
	}
	return -EBUSY;
}

static int hpet_claim(struct pulse *p)
{
	struct hpet *hpet;
	u64 interval;
	u32 id;
	int ret;

	if (atomic_xchg(&hpet_taken, 1))
		return -EBUSY;

	ret = -ENOMEM;
	hpet = kzalloc(sizeof(*hpet), GFP_KERNEL);
	if (!hpet)
		goto err_alloc;

	hpet->lender = hpet_lender(p->setup.hpet_fd);
	if (IS_ERR(hpet->lender)) {
		ret = PTR_ERR(hpet->lender);
		goto err_lender;
	}

	ret = -ENODEV;
	hpet->mmio = hpet_map();
	if (!hpet->mmio)
		goto err_map;

	ret = -EINVAL;
	id = hpet_read(hpet, HPET_ID);
	hpet->timer = p->setup.hpet_timer;
	if (hpet->timer > (id & HPET_ID_NUMBER) >> HPET_ID_NUMBER_SHIFT)
		goto err_timer;
	hpet->config = hpet_read(hpet, HPET_Tn_CFG(hpet->timer));
	/* One that is enabled is somebody's: the kernel's clock, or its lender's own. */
	ret = -EBUSY;
	if (hpet->config & HPET_TN_ENABLE)
		goto err_timer;

	ret = -EINVAL;
	hpet->periodic = hpet->config & HPET_TN_PERIODIC_CAP &&
			 !(p->setup.flags & PULSE_ONE_SHOT);
	if (!hpet->periodic)
		p->setup.flags |= PULSE_ONE_SHOT;
	hpet->period_fs = hpet_read(hpet, HPET_PERIOD);
	interval = div_u64(p->setup.interval_ns * 1000000 + hpet->period_fs / 2,
			   hpet->period_fs);
	if (!interval || interval > S32_MAX)
		goto err_timer;
	hpet->interval = interval;
	p->interval_fs = interval * hpet->period_fs;

	/* From here on the handler may be called. */
	p->source = hpet;
	ret = hpet_request_irq(p, hpet);
	if (ret)
		goto err_timer;

	return 0;

err_timer:
	iounmap(hpet->mmio);
err_map:
	fput(hpet->lender);
err_lender:
	kfree(hpet);
err_alloc:
	atomic_set(&hpet_taken, 0);
	return ret;
}

static void hpet_release(struct pulse *p)
{
	struct hpet *hpet = p->source;

	hpet_quiet(hpet);
	pulse_free_irq(p);
	acpi_unregister_gsi(hpet->route);
	hpet_write(hpet, HPET_Tn_CFG(hpet->timer), hpet->config);
	iounmap(hpet->mmio);
	fput(hpet->lender);
	kfree(hpet);
	atomic_set(&hpet_taken, 0);
}

const struct pulse_ops pulse_hpet_ops = {
	.claim		= hpet_claim,
	.release	= hpet_release,
	.start		= hpet_start,
	.stop		= hpet_stop,
};
