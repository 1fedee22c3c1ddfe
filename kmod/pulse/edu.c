// SPDX-License-Identifier: GPL-2.0
/* QEMU's PCI device "edu": writing to it asserts its interrupt, at that instruction. */

#include <linux/completion.h>
#include <linux/io.h>
#include <linux/pci.h>

#include "pulse.h"

#define EDU_ID		0x00
#define EDU_STATUS	0x24
#define EDU_RAISE	0x60
#define EDU_ACK		0x64

/* The lowest byte of EDU_ID; the others are its version. */
#define EDU_ID_LOW	0xed

static void __iomem *edu_mmio;
static struct pci_dev *edu_pci;

/* Complete when there is a device that no open file has; removing the device waits for that. */
static DECLARE_COMPLETION(edu_free);

static irqreturn_t edu_hard(int irq, void *data)
{
	u64 hard_ns = ktime_get_ns();
	struct pulse *p = data;
	u32 status = readl(edu_mmio + EDU_STATUS);

	if (!status)
		return IRQ_NONE;
	writel(status, edu_mmio + EDU_ACK);
	return pulse_hard_raised(p, hard_ns);
}

static void edu_raise(struct pulse *p)
{
	writel(1, edu_mmio + EDU_RAISE);
}

static bool edu_answers(void)
{
	return (readl(edu_mmio + EDU_ID) & 0xff) == EDU_ID_LOW;
}

/*
 * QEMU does not save this device with the others: in a machine that was resumed
 * from a snapshot it has forgotten its addresses.
 */
static int edu_remind(void)
{
	if (!edu_answers()) {
		pci_restore_state(edu_pci);
		pci_save_state(edu_pci);
	}
	return edu_answers() ? 0 : -ENODEV;
}

static int edu_claim(struct pulse *p)
{
	bool intx = p->setup.flags & PULSE_INTX;
	int ret;

	if (!try_wait_for_completion(&edu_free))
		return edu_mmio ? -EBUSY : -ENODEV;

	ret = edu_remind();
	if (ret)
		goto err_vectors;
	ret = pci_alloc_irq_vectors(edu_pci, 1, 1, intx ? PCI_IRQ_INTX : PCI_IRQ_MSI);
	if (ret < 0)
		goto err_vectors;

	writel(readl(edu_mmio + EDU_STATUS), edu_mmio + EDU_ACK);
	ret = pulse_request_irq(p, pci_irq_vector(edu_pci, 0), edu_hard, intx ? IRQF_SHARED : 0);
	if (ret)
		goto err_irq;

	return 0;

err_irq:
	pci_free_irq_vectors(edu_pci);
err_vectors:
	complete(&edu_free);
	return ret;
}

static void edu_release(struct pulse *p)
{
	pulse_free_irq(p);
	pci_free_irq_vectors(edu_pci);
	complete(&edu_free);
}

static void edu_stop(struct pulse *p)
{
	/* The write that raises is posted: reading back completes it. */
	readl(edu_mmio + EDU_STATUS);
	synchronize_irq(p->irq);
}

const struct pulse_ops pulse_edu_ops = {
	.claim		= edu_claim,
	.release	= edu_release,
	.stop		= edu_stop,
	.raise		= edu_raise,
};

static int edu_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	int ret;

	if (edu_mmio)
		return -EBUSY;

	ret = pci_enable_device(pci);
	if (ret)
		return ret;

	ret = pci_request_regions(pci, "pulse");
	if (ret)
		goto err_regions;

	edu_mmio = pci_iomap(pci, 0, 0);
	if (!edu_mmio) {
		ret = -ENOMEM;
		goto err_iomap;
	}
	if (!edu_answers()) {
		ret = -ENODEV;
		goto err_id;
	}

	/* A message is a write to memory, which the device must be allowed. */
	pci_set_master(pci);
	pci_save_state(pci);
	edu_pci = pci;
	complete(&edu_free);
	return 0;

err_id:
	pci_iounmap(pci, edu_mmio);
	edu_mmio = NULL;
err_iomap:
	pci_release_regions(pci);
err_regions:
	pci_disable_device(pci);
	return ret;
}

static void edu_remove(struct pci_dev *pci)
{
	wait_for_completion(&edu_free);
	pci_clear_master(pci);
	pci_iounmap(pci, edu_mmio);
	edu_mmio = NULL;
	edu_pci = NULL;
	pci_release_regions(pci);
	pci_disable_device(pci);
}

static const struct pci_device_id edu_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{}
};

static struct pci_driver edu_driver = {
	.name		= "pulse",
	.id_table	= edu_ids,
	.probe		= edu_probe,
	.remove		= edu_remove,
};

int pulse_edu_init(void)
{
	return pci_register_driver(&edu_driver);
}

void pulse_edu_exit(void)
{
	pci_unregister_driver(&edu_driver);
}
