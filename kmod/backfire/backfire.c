// SPDX-License-Identifier: GPL-2.0
/*
 * backfire - sends a signal back to the thread that asks for it
 *
 * The device of the same name that OSADL measured signals with in 2009, made
 * anew: see uapi/backfire.h for what it does. The state is the open file's, so
 * two programs cannot read each other's times.
 */

#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "uapi/backfire.h"

struct backfire {
	/* CLOCK_MONOTONIC; 0: nothing was sent yet. */
	atomic64_t sent_ns;
};

static int backfire_open(struct inode *inode, struct file *file)
{
	struct backfire *backfire = kzalloc(sizeof(*backfire), GFP_KERNEL);

	if (!backfire)
		return -ENOMEM;
	file->private_data = backfire;
	return 0;
}

static int backfire_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

/*
 * Whoever opened the file may have handed it on to somebody who does not know
 * what it is, and would die of a text: a program that is more than its user.
 */
static bool backfire_is_openers(const struct file *file)
{
	const struct cred *opener = file->f_cred, *writer = current_cred();

	return uid_eq(writer->uid, opener->uid) && uid_eq(writer->euid, opener->euid) &&
	       uid_eq(writer->suid, opener->suid);
}

static ssize_t backfire_write(struct file *file, const char __user *text,
			      size_t len, loff_t *pos)
{
	struct backfire *backfire = file->private_data;
	unsigned int signo;
	int ret;

	if (!backfire_is_openers(file))
		return -EPERM;
	/* kstrtouint_from_user() would cut a longer text, and take its head. */
	if (len > BACKFIRE_TEXT_MAX)
		return -EINVAL;
	ret = kstrtouint_from_user(text, len, 10, &signo);
	if (ret)
		return ret == -ERANGE ? -EINVAL : ret;
	if (signo < BACKFIRE_SIGNAL_MIN || signo > BACKFIRE_SIGNAL_MAX)
		return -EINVAL;

	*pos = 0;
	atomic64_set(&backfire->sent_ns, ktime_get_ns());
	/*
	 * Not as the kernel's own signal: that would kill even process 1 of
	 * a container, which may ignore what it sends to itself.
	 */
	ret = send_sig(signo, current, 0);
	return ret ? ret : len;
}

static ssize_t backfire_read(struct file *file, char __user *buf, size_t len,
			     loff_t *pos)
{
	struct backfire *backfire = file->private_data;
	s64 sent_ns = atomic64_read(&backfire->sent_ns);
	struct timespec64 day = {};
	char text[64];
	int text_len;

	if (sent_ns)
		day = ktime_to_timespec64(ktime_mono_to_real(ns_to_ktime(sent_ns)));
	text_len = scnprintf(text, sizeof(text), "%lld,%06ld\n%lld\n",
			     (long long)day.tv_sec, day.tv_nsec / NSEC_PER_USEC,
			     (long long)sent_ns);
	return simple_read_from_buffer(buf, len, pos, text, text_len);
}

static const struct file_operations backfire_fops = {
	.owner		= THIS_MODULE,
	.open		= backfire_open,
	.release	= backfire_release,
	.write		= backfire_write,
	.read		= backfire_read,
	.llseek		= default_llseek,
};

static struct miscdevice backfire_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "backfire",
	.fops	= &backfire_fops,
	/* A thread can do nothing here that it could not do with kill(2). */
	.mode	= 0666,
};
module_misc_device(backfire_device);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The Punctual authors");
MODULE_DESCRIPTION("Sends a signal back to the thread that asks for it");
MODULE_VERSION(PUNCTUAL_VERSION);
