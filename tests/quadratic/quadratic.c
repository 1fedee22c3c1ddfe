// SPDX-License-Identifier: GPL-2.0
/*
 * quadratic - a call that takes n * n turns of a loop with preemption off
 *
 * For the tests of `punctual search`: /dev/quadratic has one ioctl, of any
 * number, with the argument n. It is what a search is to find, to make short,
 * and to say of that it grows with the square of n.
 */

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/preempt.h>

/* Two million instructions. */
#define QUADRATIC_MAX	1024UL

static noinline long quadratic_turns(struct file *file, unsigned int cmd, unsigned long n)
{
	unsigned long turn;

	n = min(n, QUADRATIC_MAX);
	preempt_disable();
	/* Two instructions in each turn. */
	for (turn = n * n; turn; turn--)
		barrier();
	preempt_enable();
	return 0;
}

static const struct file_operations quadratic_operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = quadratic_turns,
};

static struct miscdevice quadratic_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "quadratic",
	.fops = &quadratic_operations,
	.mode = 0666,
};

module_misc_device(quadratic_device);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Takes n * n turns of a loop with preemption off");
