// SPDX-License-Identifier: GPL-2.0
/* QEMU's PCI device "edu": writing to it asserts its interrupt, at that instruction. */

#include <linux/io.h>
#include <linux/pci.h>
#include <linux/rcupdate.h>

#include "pulse.h"

#define PULSE_EDU_ID		0x00
#define PULSE_EDU_STATUS	0x24
#define PULSE_EDU_RAISE	0x60
#define PULSE_EDU_ACK		0x64

/* The lowest byte of PULSE_EDU_ID; the others are its version. */
#define PULSE_EDU_ID_LOW	0xed

/* Under pulse_sources_lock; NULL: there is no device. */
static void __iomem *pulse_edu_mmio;
static struct pci_dev *pulse_edu_pci;

/* The open file that has it. */
static struct pulse *pulse_edu_user;

static irqreturn_t pulse_edu_hard(int irq, void *data)
{
	u64 hard_ns = ktime_get_ns();
	struct pulse *p = data;
	u32 status = readl(pulse_edu_mmio + PULSE_EDU_STATUS);

	if (!status)
		return IRQ_NONE;
	writel(status, pulse_edu_mmio + PULSE_EDU_ACK);
	return pulse_hard_raised(p, hard_ns);
}

static void pulse_edu_raise(struct pulse *p)
{
	writel(1, pulse_edu_mmio + PULSE_EDU_RAISE);
}

static bool pulse_edu_answers(void)
{
	return (readl(pulse_edu_mmio + PULSE_EDU_ID) & 0xff) == PULSE_EDU_ID_LOW;
}

/*
 * QEMU does not save this device with the others: in a machine that was resumed
 * from a snapshot it has forgotten its addresses.
 */
static int pulse_edu_remind(void)
{
	if (!pulse_edu_answers()) {
		pci_restore_state(pulse_edu_pci);
		pci_save_state(pulse_edu_pci);
	}
	return pulse_edu_answers() ? 0 : -ENODEV;
}

static int pulse_edu_claim(struct pulse *p)
{
	bool intx = p->setup.flags & PULSE_INTX;
	int ret;

	if (!pulse_edu_mmio)
		return -ENODEV;
	if (pulse_edu_user)
		return -EBUSY;

	ret = pulse_edu_remind();
	if (ret)
		return ret;
	ret = pci_alloc_irq_vectors(pulse_edu_pci, 1, 1, intx ? PCI_IRQ_INTX : PCI_IRQ_MSI);
	if (ret < 0)
		return ret;

	writel(readl(pulse_edu_mmio + PULSE_EDU_STATUS), pulse_edu_mmio + PULSE_EDU_ACK);
	ret = pulse_request_irq(p, pci_irq_vector(pulse_edu_pci, 0), pulse_edu_hard,
				intx ? IRQF_SHARED : 0);
	if (ret) {
		pci_free_irq_vectors(pulse_edu_pci);
		return ret;
	}

	pulse_edu_user = p;
	return 0;
}

static void pulse_edu_release(struct pulse *p)
{
	pulse_free_irq(p);
	pci_free_irq_vectors(pulse_edu_pci);
	pulse_edu_user = NULL;
}

static void pulse_edu_stop(struct pulse *p)
{
	/* The write that raises is posted: reading back completes it. */
	readl(pulse_edu_mmio + PULSE_EDU_STATUS);
	/*
	 * A message may have come to a CPU that has not taken the interrupt yet:
	 * synchronize_irq() does not know, and if the vector were freed now, the
	 * CPU would find nobody there ("unexpected IRQ trap", "No irq handler").
	 * In a grace period each CPU has interrupts open once.
	 */
	synchronize_rcu();
	synchronize_irq(p->irq);
}

const struct pulse_ops pulse_edu_ops = {
	.claim		= pulse_edu_claim,
	.release	= pulse_edu_release,
	.stop		= pulse_edu_stop,
	.raise		= pulse_edu_raise,
};

static int pulse_edu_add(struct pci_dev *pci)
{
	int ret;

	if (pulse_edu_mmio)
		return -EBUSY;

	ret = pci_enable_device(pci);
	if (ret)
		return ret;

	ret = pci_request_regions(pci, "pulse");
	if (ret)
		goto err_regions;

	pulse_edu_mmio = pci_iomap(pci, 0, 0);
	if (!pulse_edu_mmio) {
		ret = -ENOMEM;
		goto err_iomap;
	}
	if (!pulse_edu_answers()) {
		ret = -ENODEV;
		goto err_id;
	}

	/* A message is a write to memory, which the device must be allowed. */
	pci_set_master(pci);
	pci_save_state(pci);
	pulse_edu_pci = pci;
	return 0;

err_id:
	pci_iounmap(pci, pulse_edu_mmio);
	pulse_edu_mmio = NULL;
err_iomap:
	pci_release_regions(pci);
err_regions:
	pci_disable_device(pci);
	return ret;
}

static int pulse_edu_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	int ret;

	mutex_lock(&pulse_sources_lock);
	ret = pulse_edu_add(pci);
	mutex_unlock(&pulse_sources_lock);
	return ret;
}

static void pulse_edu_remove(struct pci_dev *pci)
{
	mutex_lock(&pulse_sources_lock);
	if (pulse_edu_user)
		pulse_revoke(pulse_edu_user);
	pci_clear_master(pci);
	pci_iounmap(pci, pulse_edu_mmio);
	pulse_edu_mmio = NULL;
	pulse_edu_pci = NULL;
	pci_release_regions(pci);
	pci_disable_device(pci);
	mutex_unlock(&pulse_sources_lock);
}

static const struct pci_device_id pulse_edu_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{}
};

static struct pci_driver pulse_edu_driver = {
	.name		= "pulse",
	.id_table	= pulse_edu_ids,
	.probe		= pulse_edu_probe,
	.remove		= pulse_edu_remove,
};

int pulse_edu_init(void)
{
	return pci_register_driver(&pulse_edu_driver);
}

void pulse_edu_exit(void)
{
	pci_unregister_driver(&pulse_edu_driver);
}
