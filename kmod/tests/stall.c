// SPDX-License-Identifier: GPL-2.0
/* Is a stall as long as it was to be, and does it stall whom it should? */

#include "check.h"
#include "../stall/uapi/stall.h"

#define LENGTH_US	500
#define US		1000LL

struct record {
	unsigned long long done, skipped, start, end;
};

static int open_stall(void)
{
	int fd = open(STALL_DEVICE, O_RDWR);

	must(fd);
	return fd;
}

static void command(int fd, const char *text)
{
	ssize_t ret = write(fd, text, strlen(text));

	check(ret == (ssize_t)strlen(text), "'%s' gave %zd, %s", text, ret, strerror(errno));
}

static struct record result(int fd)
{
	struct record record = {};
	char text[128] = "";

	must(pread(fd, text, sizeof(text) - 1, 0));
	check(sscanf(text, "done=%llu skipped=%llu start=%llu end=%llu", &record.done,
		     &record.skipped, &record.start, &record.end) == 4, "'%s'", text);
	return record;
}

static const char *const kinds[] = { "irqs-off", "preempt-off", "softirq", "raw-spinlock",
	"spinlock", "mutex", "rt-mutex" };

#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* The writing thread is held. */
static void at_once(const char *kind)
{
	struct figures around = {}, inside = {};
	int fd = open_stall();
	char text[64];
	int i;

	sprintf(text, "%s %d", kind, LENGTH_US);
	for (i = 0; i < 20; i++) {
		ns_t begin = now();
		struct record record;

		command(fd, text);
		figure(&around, now() - begin);
		record = result(fd);
		figure(&inside, record.end - record.start);
		check(record.done == 1, "%llu", record.done);
	}
	sprintf(text, "%s: write()", kind);
	show(text, &around);
	sprintf(text, "%s: end - start", kind);
	show(text, &inside);
	check(inside.min >= LENGTH_US * US, "%lld", (long long)inside.min);
	close(fd);
}

/*
 * A thread at FIFO 90 that sleeps while another's stall begins: how late is it?
 * Where nothing else may run it is late by the half that is left of the stall, on
 * every kernel. The other kinds yield to it on PREEMPT_RT and preempt=full.
 */
static void sleeper(const char *kind, bool always)
{
	struct figures late = {}, begun = {}, behind = {};
	int fd = open_stall();
	char text[64];
	int i;

	for (i = 0; i < 20; i++) {
		ns_t due = now() + 3000 * US + i * 137 * US, at = due - 250 * US, woken;
		struct record record;

		sprintf(text, "%s %d at=%lld", kind, LENGTH_US, (long long)at);
		command(fd, text);
		sleep_until(due);
		woken = now();
		sleep_until(due + 2000 * US);
		record = result(fd);
		check(record.done == 1, "%s: %llu done", kind, record.done);
		figure(&late, woken - due);
		figure(&begun, record.start - at);
		figure(&behind, woken - (ns_t)record.end);
	}
	check(!always || late.min >= LENGTH_US / 2 * US, "%s: %lld", kind, (long long)late.min);
	sprintf(text, "%s: sleeper late", kind);
	show(text, &late);
	sprintf(text, "%s: begun after at=", kind);
	show(text, &begun);
	sprintf(text, "%s: sleeper after end", kind);
	show(text, &behind);
	close(fd);
}

/* Who wants a lock that is held waits for the rest of the stall. */
static void contender(const char *kind)
{
	struct figures waited = {};
	int holder = open_stall(), wanter = open_stall();
	char text[64];
	int i;

	for (i = 0; i < 20; i++) {
		ns_t at = now() + 3000 * US + i * 137 * US, begin;

		sprintf(text, "%s %d at=%lld", kind, LENGTH_US, (long long)at);
		command(holder, text);
		sprintf(text, "%s 0", kind);
		sleep_until(at + 100 * US);
		begin = now();
		command(wanter, text);
		figure(&waited, now() - begin);
		sleep_until(at + 2000 * US);
		check(result(holder).done == 1, "%s", kind);
		check(result(wanter).start >= result(holder).end, "%s: not excluded", kind);
	}
	sprintf(text, "%s: wait for the lock", kind);
	show(text, &waited);
	close(holder);
	close(wanter);
}

static void periodic(const char *kind)
{
	int fd = open_stall();
	struct record record;
	char text[64];
	ns_t begin;

	sprintf(text, "%s 100 every=1000 count=10", kind);
	begin = now();
	command(fd, text);
	sleep_until(begin + 15000 * US);
	record = result(fd);
	printf("  %s: every=1000 count=10: %llu done, %llu skipped, last begun at %lld us\n", kind,
	       record.done, record.skipped, ((long long)record.start - (long long)begin) / 1000);
	check(record.done == 10, "%s: %llu done", kind, record.done);

	/* Closing ends one that has no end. */
	sprintf(text, "%s 100 every=1000", kind);
	command(fd, text);
	sleep_until(now() + 3000 * US);
	check(result(fd).done >= 2, "%s: %llu", kind, result(fd).done);
	command(fd, "stop");
	check(result(fd).done == 0, "%s: %llu after stop", kind, result(fd).done);
	command(fd, text);
	close(fd);
}

/* Periodic stalls of all open files together leave half of the time. */
static void shares(void)
{
	static const char half[] = "irqs-off 100 every=200 count=3";
	static const char third[] = "irqs-off 100 every=300 after=1000000";
	int first = open_stall(), second = open_stall();

	command(first, third);
	check(write(second, half, sizeof(half) - 1) == -1 && errno == EBUSY, "%s", strerror(errno));
	check(write(second, third, sizeof(third) - 1) == -1 && errno == EBUSY, "%s",
	      strerror(errno));
	check(result(second).done == 0, "a stall that was refused");
	command(second, "irqs-off 100 every=600 after=1000000");
	/* Each has its own share anew, and gives it back: by stop, another kind, or close. */
	command(second, "irqs-off 100 every=600 after=1000000");
	command(second, "irqs-off 100");
	command(first, half);
	command(first, "stop");
	command(second, half);
	close(second);
	command(first, half);
	close(first);
}

static void refuses(int fd, const char *text, size_t len)
{
	ssize_t ret = write(fd, text, len);

	check(ret == -1 && errno == EINVAL, "'%.40s' gave %zd, %s", text, ret, strerror(errno));
}

static void bad_input(void)
{
	static const char *const bad[] = { "", " ", "\n", "irqs-off", "irqs-off x", "irqs-off -1",
		"irqs-off 1000001", "irqs-off 18446744073709551616", "irqs-off 5 5", "none 5",
		"irqs-off 500 after=", "irqs-off 500 after", "irqs-off 500 after=x",
		"irqs-off 500 after=1 at=1", "irqs-off 500 at=1 after=1", "irqs-off 500 count=2",
		"irqs-off 500 every=999", "irqs-off 1000000 every=100",
		"irqs-off 1 every=99", "irqs-off 500 every=3600000001",
		"irqs-off 500 after=3600000001", "irqs-off 500 at=9223372036854775807",
		"irqs-off 500 count=1 count=1", "stop now", "irqs-off 500 every=2000 every=2000",
		"irqs-off 500 count=4294967296 every=2000", "IRQS-OFF 5", "irqs-off 500 =5" };
	int fd = open_stall();
	static char text[1 << 20];
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses(fd, bad[i], strlen(bad[i]));
	memset(text, ' ', sizeof(text));
	refuses(fd, text, sizeof(text));
	refuses(fd, "stop\0stop", 9);
	check(write(fd, nowhere(), 9) == -1 && errno == EFAULT, "%s", strerror(errno));
	check(result(fd).done == 0, "a bad write did something");

	/* A process that dies with a stall armed. */
	for (i = 0; i < 20; i++) {
		pid_t child = fork();

		if (!child) {
			fd = open_stall();
			command(fd, i % 2 ? "irqs-off 500 every=1000" : "mutex 500 every=1000");
			pause();
		}
		sleep_until(now() + 2000 * US);
		kill(child, SIGKILL);
		must(waitpid(child, NULL, 0));
	}
	close(fd);
}

int main(void)
{
	unsigned int i;

	setbuf(stdout, NULL);
	must(mlockall(MCL_CURRENT | MCL_FUTURE));
	bad_input();
	fifo(90);
	pin(0);
	for (i = 0; i < KINDS; i++)
		at_once(kinds[i]);
	for (i = 0; i < KINDS; i++)
		sleeper(kinds[i], i == 0 || i == 1 || i == 3);
	for (i = 3; i < KINDS; i++)
		contender(kinds[i]);
	for (i = 0; i < KINDS; i++)
		periodic(kinds[i]);
	shares();
	return conclude("stall");
}
