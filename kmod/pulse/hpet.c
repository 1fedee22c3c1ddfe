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
#include <linux/bitops.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hpet.h>
#include <linux/io.h>
#include <linux/major.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <asm/hpet.h>

#include "pulse.h"

/* One-shot: a comparator that is set this close to the counter may be passed by it. */
#define PULSE_HPET_TICKS_MARGIN	128

#define PULSE_HPET_ROUTES		32
/* The lines below belong to ISA devices. */
#define PULSE_HPET_ROUTE_FIRST	16

struct pulse_hpet {
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

/* One open file has it; under pulse_sources_lock. */
static bool pulse_hpet_taken;

static u32 pulse_hpet_read(struct pulse_hpet *hpet, unsigned int reg)
{
	return readl(hpet->mmio + reg);
}

static void pulse_hpet_write(struct pulse_hpet *hpet, unsigned int reg, u32 value)
{
	writel(value, hpet->mmio + reg);
}

static u64 pulse_hpet_elapsed(struct pulse_hpet *hpet, u32 counter)
{
	hpet->elapsed += (u32)(counter - hpet->begin - (u32)hpet->elapsed);
	return hpet->elapsed;
}

static u64 pulse_hpet_ns(struct pulse_hpet *hpet, u64 ticks)
{
	return div_u64(ticks * hpet->period_fs, 1000000);
}

static void pulse_hpet_quiet(struct pulse_hpet *hpet)
{
	u32 config = pulse_hpet_read(hpet, HPET_Tn_CFG(hpet->timer));

	pulse_hpet_write(hpet, HPET_Tn_CFG(hpet->timer), config & ~HPET_TN_ENABLE);
	pulse_hpet_write(hpet, HPET_STATUS, BIT(hpet->timer));
}

/* Sets the comparator to the first interrupt after @last that it cannot miss. */
static void pulse_hpet_program_next(struct pulse_hpet *hpet, u64 last)
{
	u32 due;

	do {
		due = hpet->begin + (u32)(++last * hpet->interval);
		pulse_hpet_write(hpet, HPET_Tn_CMP(hpet->timer), due);
	} while ((s32)(due - pulse_hpet_read(hpet, HPET_COUNTER)) < PULSE_HPET_TICKS_MARGIN);
}

static irqreturn_t pulse_hpet_hard(int irq, void *data)
{
	u64 hard_ns = ktime_get_ns();
	struct pulse *p = data;
	struct pulse_hpet *hpet = p->source;
	u32 counter = pulse_hpet_read(hpet, HPET_COUNTER);
	u64 counter_ns = hard_ns + (ktime_get_ns() - hard_ns) / 2;
	u64 elapsed, last, first_due;

	if (!(pulse_hpet_read(hpet, HPET_STATUS) & BIT(hpet->timer)))
		return IRQ_NONE;
	/*
	 * What came due between reading the counter and this is lost, too; the
	 * next interrupt will show it.
	 */
	pulse_hpet_write(hpet, HPET_STATUS, BIT(hpet->timer));

	elapsed = pulse_hpet_elapsed(hpet, counter);
	last = div_u64(elapsed, hpet->interval);
	if (!hpet->periodic)
		pulse_hpet_program_next(hpet, last);
	if (p->setup.count && last >= p->setup.count) {
		last = p->setup.count;
		pulse_hpet_quiet(hpet);
	}
	if (last > p->raised)
		WRITE_ONCE(p->raised, last);
	first_due = (p->seen + 1) * hpet->interval;
	return pulse_hard(p, last, counter_ns - pulse_hpet_ns(hpet, elapsed - first_due), hard_ns);
}

static int pulse_hpet_start(struct pulse *p)
{
	struct pulse_hpet *hpet = p->source;
	u32 config = hpet->config;
	unsigned long flags;

	pulse_hpet_quiet(hpet);
	config &= ~(HPET_TN_ROUTE | HPET_TN_FSB | HPET_TN_PERIODIC | HPET_TN_SETVAL);
	config |= HPET_TN_LEVEL | HPET_TN_32BIT | hpet->route << HPET_TN_ROUTE_SHIFT;
	if (hpet->periodic)
		config |= HPET_TN_PERIODIC | HPET_TN_SETVAL;

	local_irq_save(flags);
	pulse_hpet_write(hpet, HPET_Tn_CFG(hpet->timer), config);
	hpet->elapsed = 0;
	hpet->begin = pulse_hpet_read(hpet, HPET_COUNTER);
	pulse_hpet_write(hpet, HPET_Tn_CMP(hpet->timer), hpet->begin + hpet->interval);
	if (hpet->periodic) {
		/* That was the first one's time, this is the period; AMD 81xx wants a pause. */
		udelay(1);
		pulse_hpet_write(hpet, HPET_Tn_CMP(hpet->timer), hpet->interval);
	}
	config &= ~HPET_TN_SETVAL;
	pulse_hpet_write(hpet, HPET_Tn_CFG(hpet->timer), config | HPET_TN_ENABLE);
	local_irq_restore(flags);
	return 0;
}

static void pulse_hpet_stop(struct pulse *p)
{
	struct pulse_hpet *hpet = p->source;
	u64 last;

	pulse_hpet_quiet(hpet);
	synchronize_irq(p->irq);
	if (READ_ONCE(p->over))
		return;
	/* Those that were due and no handler has seen. */
	last = div_u64(pulse_hpet_elapsed(hpet, pulse_hpet_read(hpet, HPET_COUNTER)),
		       hpet->interval);
	if (p->setup.count && last > p->setup.count)
		last = p->setup.count;
	WRITE_ONCE(p->raised, last);
}

static struct file *pulse_hpet_lender(int fd)
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

/*
 * Which comparator the lender has lent. Only HPET_INFO tells, and it tells user
 * space only: so a page of that is taken for a moment.
 */
static int pulse_hpet_lent(struct file *lender)
{
	struct hpet_info info;
	unsigned long page;
	long ret;

	page = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(page))
		return page;
	ret = lender->f_op->unlocked_ioctl(lender, HPET_INFO, page);
	if (!ret && copy_from_user(&info, (void __user *)page, sizeof(info)))
		ret = -EFAULT;
	vm_munmap(page, PAGE_SIZE);
	if (ret)
		return ret;
	/* pulse_hpet_map() finds the first of several HPETs. */
	return info.hi_hpet ? -ENODEV : info.hi_timer;
}

static void __iomem *pulse_hpet_map(void)
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
static int pulse_hpet_request_irq(struct pulse *p, struct pulse_hpet *hpet)
{
	u32 routes = pulse_hpet_read(hpet, HPET_Tn_CFG(hpet->timer) + 4);
	int route, irq;

	for (route = PULSE_HPET_ROUTES - 1; route >= PULSE_HPET_ROUTE_FIRST; route--) {
		if (!(routes & BIT(route)))
			continue;
		irq = acpi_register_gsi(NULL, route, ACPI_LEVEL_SENSITIVE, ACPI_ACTIVE_LOW);
		if (irq <= 0)
			continue;
		/* That the line is taken is nothing to warn of. */
		if (!pulse_request_irq(p, irq, pulse_hpet_hard, IRQF_PROBE_SHARED)) {
			hpet->route = route;
			return 0;
		}
		acpi_unregister_gsi(route);
	}
	return -EBUSY;
}

static int pulse_hpet_claim(struct pulse *p)
{
	struct pulse_hpet *hpet;
	u64 interval;
	int ret;

	if (pulse_hpet_taken)
		return -EBUSY;

	hpet = kzalloc(sizeof(*hpet), GFP_KERNEL);
	if (!hpet)
		return -ENOMEM;

	hpet->lender = pulse_hpet_lender(p->setup.hpet_fd);
	if (IS_ERR(hpet->lender)) {
		ret = PTR_ERR(hpet->lender);
		goto err_lender;
	}

	ret = pulse_hpet_lent(hpet->lender);
	if (ret < 0)
		goto err_map;
	hpet->timer = ret;

	ret = -ENODEV;
	hpet->mmio = pulse_hpet_map();
	if (!hpet->mmio)
		goto err_map;

	hpet->config = pulse_hpet_read(hpet, HPET_Tn_CFG(hpet->timer));
	/* One that is enabled is in use by its lender. */
	ret = -EBUSY;
	if (hpet->config & HPET_TN_ENABLE)
		goto err_timer;

	ret = -EINVAL;
	hpet->periodic = hpet->config & HPET_TN_PERIODIC_CAP &&
			 !(p->setup.flags & PULSE_ONE_SHOT);
	if (!hpet->periodic)
		p->setup.flags |= PULSE_ONE_SHOT;
	hpet->period_fs = pulse_hpet_read(hpet, HPET_PERIOD);
	interval = div_u64(p->setup.interval_ns * 1000000 + hpet->period_fs / 2,
			   hpet->period_fs);
	if (!interval || interval > S32_MAX)
		goto err_timer;
	hpet->interval = interval;
	p->interval_fs = interval * hpet->period_fs;

	/* From here on the handler may be called. */
	p->source = hpet;
	ret = pulse_hpet_request_irq(p, hpet);
	if (ret)
		goto err_timer;

	pulse_hpet_taken = true;
	return 0;

err_timer:
	iounmap(hpet->mmio);
err_map:
	fput(hpet->lender);
err_lender:
	kfree(hpet);
	return ret;
}

static void pulse_hpet_release(struct pulse *p)
{
	struct pulse_hpet *hpet = p->source;

	pulse_hpet_quiet(hpet);
	pulse_free_irq(p);
	acpi_unregister_gsi(hpet->route);
	pulse_hpet_write(hpet, HPET_Tn_CFG(hpet->timer), hpet->config);
	iounmap(hpet->mmio);
	fput(hpet->lender);
	kfree(hpet);
	pulse_hpet_taken = false;
}

const struct pulse_ops pulse_hpet_ops = {
	.claim		= pulse_hpet_claim,
	.release	= pulse_hpet_release,
	.start		= pulse_hpet_start,
	.stop		= pulse_hpet_stop,
};
