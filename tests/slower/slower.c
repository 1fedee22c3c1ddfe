// SPDX-License-Identifier: GPL-2.0
/*
 * slower - adds 2,000 instructions to the path on which a timer wakes a thread
 *
 * For the tests of `punctual gate`: a kernel with this module is worse than one
 * without it, by a known length, in a function with a known name.
 */

#include <linux/kprobes.h>
#include <linux/module.h>

static noinline void slower_instructions(void)
{
	unsigned int turn;

	/* Two instructions in each turn. */
	for (turn = 1000; turn; turn--)
		barrier();
}

static int slower_before(struct kprobe *probe, struct pt_regs *regs)
{
	slower_instructions();
	return 0;
}

static struct kprobe slower_probe = {
	.symbol_name = "hrtimer_wakeup",
	.pre_handler = slower_before,
};

static int __init slower_init(void)
{
	return register_kprobe(&slower_probe);
}

static void __exit slower_exit(void)
{
	unregister_kprobe(&slower_probe);
}

module_init(slower_init);
module_exit(slower_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Adds 2,000 instructions to the wake-up by a timer");
