// SPDX-License-Identifier: GPL-2.0
/* pulse - makes interrupts and takes their times; see uapi/pulse.h */

#include <linux/module.h>

#include "pulse.h"

static int __init pulse_init(void)
{
	int ret;

	ret = pulse_edu_init();
	if (ret)
		return ret;

	ret = pulse_device_init();
	if (ret)
		pulse_edu_exit();
	return ret;
}

static void __exit pulse_exit(void)
{
	pulse_device_exit();
	pulse_edu_exit();
}

module_init(pulse_init);
module_exit(pulse_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The Punctual authors");
MODULE_DESCRIPTION("Makes interrupts and takes their times");
MODULE_VERSION(PUNCTUAL_VERSION);
