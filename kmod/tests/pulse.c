// SPDX-License-Identifier: GPL-2.0
/* Does /dev/pulse make the interrupts that it is asked for, and lose none in silence? */

#include "check.h"

#include <dirent.h>
#include <linux/hpet.h>

#include "../pulse/uapi/pulse.h"
#include "../stall/uapi/stall.h"

#define KHZ_NS 1000000

static int open_pulse(void)
{
	int fd = open(PULSE_DEVICE, O_RDWR);

	must(fd);
	return fd;
}

static struct pulse_stats stats_of(int fd)
{
	struct pulse_stats stats;

	must(ioctl(fd, PULSE_STATS, &stats));
	return stats;
}

static void show_stats(const char *name, int fd)
{
	struct pulse_stats s = stats_of(fd);

	printf("  %s: raised %llu handled %llu lost %llu extra %llu threaded %llu dropped %llu",
	       name, s.raised, s.handled, s.raised - s.handled, s.extra, s.threaded, s.dropped);
	printf(" skipped %llu; interval %llu fs, irq %u, thread %d\n", s.skipped, s.interval_fs,
	       s.irq, s.thread_pid);
}

struct stages {
	struct figures hard, thread, user;
	long records;
	unsigned long long last_seq;
};

/* Reads a burst to its end. */
static void read_burst(int fd, struct stages *stages)
{
	struct pulse_record records[16];
	ssize_t len;
	int i;

	while ((len = read(fd, records, sizeof(records))) > 0) {
		ns_t read_at = now();

		check(len % sizeof(*records) == 0, "%zd bytes", len);
		for (i = 0; i < len / (ssize_t)sizeof(*records); i++) {
			struct pulse_record *r = records + i;

			check(r->seq > stages->last_seq, "%llu after %llu", r->seq,
			      stages->last_seq);
			check(r->asserted_ns <= r->hard_ns, "%llu: asserted %llu hard %llu", r->seq,
			      r->asserted_ns, r->hard_ns);
			stages->last_seq = r->seq;
			stages->records++;
			figure(&stages->hard, r->hard_ns - r->asserted_ns);
			if (r->thread_ns) {
				check(r->hard_ns <= r->thread_ns, "%llu", r->seq);
				figure(&stages->thread, r->thread_ns - r->hard_ns);
			}
			figure(&stages->user, read_at - (r->thread_ns ? r->thread_ns : r->hard_ns));
		}
	}
	check(len == 0, "read: %s", strerror(errno));
}

static void show_stages(const struct stages *stages)
{
	show("asserted -> hard", &stages->hard);
	if (stages->thread.count)
		show("hard -> thread", &stages->thread);
	show("-> reader", &stages->user);
}

static struct pulse_stats burst(const char *name, int fd, struct pulse_setup *setup)
{
	struct stages stages = {};
	struct pulse_stats stats;

	must(ioctl(fd, PULSE_SETUP, setup));
	must(ioctl(fd, PULSE_START));
	read_burst(fd, &stages);
	show_stats(name, fd);
	stats = stats_of(fd);
	check(stats.over, "not over");
	check(stats.raised == setup->count, "%llu raised", stats.raised);
	if (setup->records) {
		show_stages(&stages);
		check(stages.records + stats.dropped == stats.handled, "%ld records",
		      stages.records);
	}
	return stats;
}

struct triggering {
	int fd;
	long count;
};

/* At a lower priority than the reader. */
static void *trigger(void *arg)
{
	struct triggering *triggering = arg;
	long i;

	fifo(10);
	for (i = 0; i < triggering->count; i++) {
		sleep_until(now() + 200000);
		must(ioctl(triggering->fd, PULSE_TRIGGER));
	}
	return NULL;
}

static void triggered(const char *name, struct pulse_setup setup)
{
	struct triggering triggering = { open_pulse(), 1000 };
	struct stages stages = {};
	struct pulse_stats stats;
	pthread_t thread;

	setup.count = triggering.count;
	must(ioctl(triggering.fd, PULSE_SETUP, &setup));
	must(ioctl(triggering.fd, PULSE_START));
	pthread_create(&thread, NULL, trigger, &triggering);
	read_burst(triggering.fd, &stages);
	pthread_join(thread, NULL);
	show_stats(name, triggering.fd);
	show_stages(&stages);
	stats = stats_of(triggering.fd);
	check(stats.raised == setup.count && stats.handled == setup.count && !stats.extra, "%s",
	      name);
	check(stages.records == triggering.count, "%ld records", stages.records);
	check(ioctl(triggering.fd, PULSE_TRIGGER) < 0 && errno == EINVAL, "after the end");
	close(triggering.fd);
}

static void periodic(const char *name, struct pulse_setup setup, __u64 interval_ns, __u64 count)
{
	int fd = open_pulse();
	struct pulse_stats stats;

	setup.interval_ns = interval_ns;
	setup.count = count;
	stats = burst(name, fd, &setup);
	check(stats.handled == count, "%s: %llu handled", name, stats.handled);
	/* The same again without a new set-up. */
	must(ioctl(fd, PULSE_START));
	must(ioctl(fd, PULSE_STOP));
	check(stats_of(fd).over, "%s: not over after stop", name);
	close(fd);
}

static struct pulse_setup hpet_setup(void)
{
	struct pulse_setup setup = { .source = PULSE_SOURCE_HPET, .records = 4096,
				     .cpu = PULSE_ANY_CPU };

	setup.hpet_fd = open("/dev/hpet", O_RDONLY);
	must(setup.hpet_fd);
	return setup;
}

/* Has the device edu driven by the module, or no longer. */
static void edu_driver(const char *verb)
{
	DIR *driver = opendir("/sys/bus/pci/drivers/pulse");
	/* While it is not bound, its name is not there. */
	static char device[NAME_MAX + 1];
	struct dirent *entry;
	int fd;

	must(driver ? 0 : -1);
	while ((entry = readdir(driver)))
		if (strchr(entry->d_name, ':'))
			strcpy(device, entry->d_name);
	fd = openat(dirfd(driver), verb, O_WRONLY);
	must(fd);
	must(write(fd, device, strlen(device)));
	close(fd);
	closedir(driver);
}

/* A device that is taken away while it interrupts: its user is told, and keeps its records. */
static void unbound(struct pulse_setup setup)
{
	int fd = open_pulse();
	struct stages stages = {};
	struct pulse_stats stats;

	setup.interval_ns = KHZ_NS;
	must(ioctl(fd, PULSE_SETUP, &setup));
	must(ioctl(fd, PULSE_START));
	sleep_until(now() + 10 * KHZ_NS);
	edu_driver("unbind");
	read_burst(fd, &stages);
	stats = stats_of(fd);
	check(stages.records >= 9 && stats.over && !stats.irq, "%ld records, over %u, irq %u",
	      stages.records, stats.over, stats.irq);
	check(ioctl(fd, PULSE_START) < 0 && errno == EINVAL, "%s", strerror(errno));
	check(ioctl(fd, PULSE_SETUP, &setup) < 0 && errno == ENODEV, "%s", strerror(errno));
	edu_driver("bind");
	must(ioctl(fd, PULSE_SETUP, &setup));
	close(fd);
	triggered("edu, bound again, triggered", (struct pulse_setup){
		.source = PULSE_SOURCE_EDU, .records = 4096, .cpu = PULSE_ANY_CPU });
}

/* The shortest interval, to 0.1 us, at which none of count is lost. */
static double limit(struct pulse_setup setup, __u64 count)
{
	__u64 lost_at = 1000, kept_at = 200000;

	setup.records = 0;
	setup.count = count;
	while (kept_at - lost_at > 100) {
		struct pulse_stats stats;
		char byte[sizeof(struct pulse_record)];
		int fd = open_pulse();

		setup.interval_ns = (lost_at + kept_at) / 2;
		must(ioctl(fd, PULSE_SETUP, &setup));
		must(ioctl(fd, PULSE_START));
		check(read(fd, byte, sizeof(byte)) == 0, "a record");
		stats = stats_of(fd);
		check(stats.raised == count, "%llu raised", stats.raised);
		if (stats.raised == stats.handled)
			kept_at = setup.interval_ns;
		else
			lost_at = setup.interval_ns;
		close(fd);
	}
	return kept_at / 1000.0;
}

/*
 * A stall of 500 us among interrupts 100 us apart: if it delays the hard handler, then
 * the first one that is due in it until its end, and the others are lost in that one.
 */
static void stalled(const char *kind, struct pulse_setup setup, bool delays)
{
	int fd = open_pulse(), stall = open(STALL_DEVICE, O_RDWR);
	struct stages stages = {};
	struct pulse_stats stats;
	char text[64];

	must(stall);
	setup.interval_ns = KHZ_NS / 10;
	setup.count = 200;
	must(ioctl(fd, PULSE_SETUP, &setup));
	must(ioctl(fd, PULSE_START));
	sprintf(text, "%s 500 after=10000", kind);
	must(write(stall, text, strlen(text)));
	read_burst(fd, &stages);
	stats = stats_of(fd);
	printf("  HPET, 10 kHz, %s 500: %llu lost, hard handler at most %lld ns late\n", kind,
	       stats.raised - stats.handled, stages.hard.max);
	if (delays)
		check(stats.raised - stats.handled == 4 && stages.hard.max > 400000 &&
		      stages.hard.max < 505000, "%s", kind);
	else
		check(stats.raised == stats.handled && stages.hard.max < 20000, "%s", kind);
	close(stall);
	close(fd);
}

static void hpet(void)
{
	struct pulse_setup setup = hpet_setup();
	struct pulse_setup one_shot = setup, hard_only = setup, full = setup;
	struct pulse_stats stats;
	double limits[3];
	int fd, other, i;

	periodic("HPET, 1 kHz", setup, KHZ_NS, 1000);
	periodic("HPET, 10 kHz", setup, KHZ_NS / 10, 10000);
	one_shot.flags = PULSE_ONE_SHOT;
	periodic("HPET, 10 kHz one-shot", one_shot, KHZ_NS / 10, 10000);
	hard_only.flags = PULSE_HARD_ONLY;
	periodic("HPET, 10 kHz hard only", hard_only, KHZ_NS / 10, 10000);

	stalled("irqs-off", setup, true);
	stalled("preempt-off", setup, false);
	stalled("softirq", setup, false);
	stalled("raw-spinlock", setup, false);

	/* One at a time. */
	fd = open_pulse();
	other = open_pulse();
	setup.interval_ns = KHZ_NS;
	must(ioctl(fd, PULSE_SETUP, &setup));
	check(ioctl(other, PULSE_SETUP, &setup) < 0 && errno == EBUSY, "%s", strerror(errno));
	must(ioctl(fd, PULSE_START));
	check(ioctl(fd, PULSE_START) < 0 && errno == EBUSY, "%s", strerror(errno));
	check(ioctl(fd, PULSE_SETUP, &setup) < 0 && errno == EBUSY, "%s", strerror(errno));
	close(fd);
	must(ioctl(other, PULSE_SETUP, &setup));
	close(other);

	/* More than there is room for is counted. */
	full.records = 16;
	full.interval_ns = KHZ_NS / 10;
	full.count = 100;
	fd = open_pulse();
	must(ioctl(fd, PULSE_SETUP, &full));
	must(ioctl(fd, PULSE_START));
	sleep_until(now() + 20 * KHZ_NS);
	stats = stats_of(fd);
	check(stats.handled == 100 && stats.dropped == 84, "%llu %llu", stats.handled,
	      stats.dropped);
	/* A burst that ends before anybody reads keeps its records. */
	{
		struct stages stages = {};

		read_burst(fd, &stages);
		check(stages.records == 16, "%ld", stages.records);
	}
	close(fd);

	/* The comparator can be used by its own driver again. */
	close(setup.hpet_fd);
	setup = hpet_setup();
	must(ioctl(setup.hpet_fd, HPET_IRQFREQ, 1000));
	must(ioctl(setup.hpet_fd, HPET_IE_ON, 0));
	{
		unsigned long count;

		check(read(setup.hpet_fd, &count, sizeof(count)) == sizeof(count), "/dev/hpet");
	}
	close(setup.hpet_fd);

	/*
	 * What a longer handler costs. The shortest interval without it may be due to
	 * something else that now and then takes longer: so 20 us are compared with 40.
	 */
	hard_only = hpet_setup();
	hard_only.flags = PULSE_HARD_ONLY;
	for (i = 0; i < 3; i++) {
		hard_only.hard_spin_ns = 20000 * i;
		limits[i] = limit(hard_only, 1000);
		printf("  HPET, hard only, %d us longer: none of 1000 lost at %.1f us\n", 20 * i,
		       limits[i]);
	}
	check(limits[2] - limits[1] > 19.5 && limits[2] - limits[1] < 20.5, "%.1f",
	      limits[2] - limits[1]);
	hard_only.hard_spin_ns = 0;
	hard_only.flags = 0;
	printf("  HPET, with a threaded handler: none of 1000 lost at %.1f us\n",
	       limit(hard_only, 1000));
	close(hard_only.hpet_fd);
}

static void refuses(struct pulse_setup setup, int line)
{
	int fd = open_pulse();
	int ret = ioctl(fd, PULSE_SETUP, &setup);

	check(ret < 0 && errno == EINVAL, "set-up of line %d: %d, %s", line, ret, strerror(errno));
	check(ioctl(fd, PULSE_START) < 0 && errno == EINVAL, "start after that");
	close(fd);
}

static void bad_input(void)
{
	const struct pulse_setup good = { .source = PULSE_SOURCE_IPI, .records = 16,
					  .cpu = PULSE_ANY_CPU };
	struct pulse_record record;
	int fd = open_pulse();

#define REFUSES(...)						\
	do {							\
		struct pulse_setup bad = good;			\
		__VA_ARGS__;					\
		refuses(bad, __LINE__);				\
	} while (0)
	REFUSES(bad.source = 0);
	REFUSES(bad.source = 4);
	REFUSES(bad.source = PULSE_SOURCE_HPET; bad.hpet_fd = -1);
	REFUSES(bad.source = PULSE_SOURCE_HPET; bad.interval_ns = 1000000; bad.hpet_fd = fd);
	REFUSES(bad.source = PULSE_SOURCE_HPET; bad.interval_ns = 10000);
	REFUSES(bad.source = PULSE_SOURCE_HPET; bad.interval_ns = 19999; bad.count = 3000151);
	REFUSES(bad.source = PULSE_SOURCE_HPET; bad.interval_ns = 1000; bad.count = -1ULL);
	REFUSES(bad.interval_ns = 1000000; bad.thread_spin_ns = 980001);
	REFUSES(bad.reserved[0] = 1);
	REFUSES(bad.reserved[6] = 1);
	REFUSES(bad.flags = PULSE_INTX);
	REFUSES(bad.flags = PULSE_ONE_SHOT);
	REFUSES(bad.flags = 0x80000000);
	REFUSES(bad.records = 3);
	REFUSES(bad.records = 1 << 21);
	REFUSES(bad.cpu = 100000);
	REFUSES(bad.interval_ns = 999);
	REFUSES(bad.interval_ns = 1000; bad.count = 10);
	REFUSES(bad.interval_ns = -1ULL);
	REFUSES(bad.hard_spin_ns = 10000001);
	REFUSES(bad.thread_spin_ns = 10000001);
	REFUSES(bad.flags = PULSE_HARD_ONLY; bad.thread_spin_ns = 1);
	check(ioctl(fd, PULSE_SETUP, nowhere()) < 0 && errno == EFAULT, "%s", strerror(errno));
	check(ioctl(fd, PULSE_STATS, nowhere()) < 0 && errno == EFAULT, "%s", strerror(errno));
	check(ioctl(fd, 12345, 0) < 0 && errno == ENOTTY, "%s", strerror(errno));
	check(ioctl(fd, PULSE_TRIGGER, 0) < 0 && errno == EINVAL, "%s", strerror(errno));
	check(ioctl(fd, PULSE_STOP, 0) == 0, "%s", strerror(errno));
	check(read(fd, &record, sizeof(record)) == 0, "no burst");
	check(read(fd, &record, 1) < 0 && errno == EINVAL, "%s", strerror(errno));

	/* A reader that is killed, and one that would not wait. */
	must(ioctl(fd, PULSE_SETUP, &good));
	must(ioctl(fd, PULSE_START));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	check(read(fd, &record, sizeof(record)) < 0 && errno == EAGAIN, "%s", strerror(errno));
	fcntl(fd, F_SETFL, 0);
	{
		pid_t child = fork();

		if (!child)
			exit(read(fd, &record, sizeof(record)) > 0);
		sleep_until(now() + 2000000);
		check(read(fd, &record, sizeof(record)) < 0 && errno == EBUSY, "%s",
		      strerror(errno));
		kill(child, SIGKILL);
		must(waitpid(child, NULL, 0));
	}
	must(ioctl(fd, PULSE_TRIGGER));
	check(read(fd, &record, sizeof(record)) == sizeof(record) && record.seq == 1, "%s",
	      strerror(errno));
	check(read(fd, nowhere(), 0) < 0 && errno == EINVAL, "%s", strerror(errno));
	must(ioctl(fd, PULSE_TRIGGER));
	sleep_until(now() + 2000000);
	check(read(fd, nowhere(), sizeof(record)) < 0 && errno == EFAULT, "%s", strerror(errno));
	check(read(fd, &record, sizeof(record)) == sizeof(record) && record.seq == 2, "seq");
	close(fd);
}

int main(void)
{
	struct pulse_setup edu = { .source = PULSE_SOURCE_EDU, .records = 4096,
				   .cpu = PULSE_ANY_CPU };
	struct pulse_setup ipi = { .source = PULSE_SOURCE_IPI, .records = 4096,
				   .cpu = PULSE_ANY_CPU };
	int fd = open_pulse();

	setbuf(stdout, NULL);
	must(mlockall(MCL_CURRENT | MCL_FUTURE));
	bad_input();
	fifo(80);
	pin(0);

	triggered("ipi to itself, triggered", ipi);
	periodic("ipi to itself, 10 kHz", ipi, KHZ_NS / 10, 1000);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		ipi.cpu = 1;
		triggered("ipi to CPU 1, triggered", ipi);
		periodic("ipi to CPU 1, 10 kHz", ipi, KHZ_NS / 10, 1000);
	}
	if (ioctl(fd, PULSE_SETUP, &edu) < 0 && errno == ENODEV) {
		printf("  edu: there is none\n");
	} else {
		int other = open_pulse();

		check(ioctl(other, PULSE_SETUP, &edu) < 0 && errno == EBUSY, "%s", strerror(errno));
		close(fd);
		close(other);
		triggered("edu, MSI, triggered", edu);
		periodic("edu, MSI, 1 kHz", edu, KHZ_NS, 1000);
		edu.flags = PULSE_HARD_ONLY;
		triggered("edu, MSI, hard only", edu);
		edu.flags = PULSE_INTX;
		triggered("edu, INTx, triggered", edu);
		edu.flags = 0;
		unbound(edu);
	}
	if (access("/dev/hpet", F_OK))
		printf("  HPET: there is none\n");
	else
		hpet();
	return conclude("pulse");
}
