// SPDX-License-Identifier: GPL-2.0
/* Does /dev/backfire do what uapi/backfire.h says? */

#include "check.h"
#include "../backfire/uapi/backfire.h"

static volatile ns_t handled_at;
static volatile pid_t handled_by;

static void handler(int signo)
{
	(void)signo;
	handled_at = now();
	handled_by = syscall(SYS_gettid);
}

static ns_t sent(int fd, long long *day_us)
{
	char text[64] = "";
	long long seconds, micros, mono;

	must(read(fd, text, sizeof(text) - 1));
	check(sscanf(text, "%lld,%lld\n%lld\n", &seconds, &micros, &mono) == 3, "'%s'", text);
	*day_us = seconds * 1000000 + micros;
	return mono;
}

static void *round_trips(void *count)
{
	int fd = open(BACKFIRE_DEVICE, O_RDWR);
	struct figures to = {}, from = {};
	long i;

	must(fd);
	signal(SIGUSR1, handler);
	for (i = 0; i < (long)count; i++) {
		struct timespec day;
		long long day_us;
		ns_t before, mono;

		handled_at = 0;
		before = now();
		must(write(fd, "10", 2));
		while (!handled_at)
			;
		mono = sent(fd, &day_us);
		clock_gettime(CLOCK_REALTIME, &day);
		check(handled_by == syscall(SYS_gettid), "thread %d", handled_by);
		check(before <= mono && mono <= handled_at, "%lld", (long long)mono);
		check(llabs(day.tv_sec * 1000000LL + day.tv_nsec / 1000 - day_us) < 1000000,
		      "time of day %lld", day_us);
		figure(&to, mono - before);
		figure(&from, handled_at - mono);
	}
	show("to", &to);
	show("from", &from);
	close(fd);
	return NULL;
}

static void refuses(int fd, const char *text, size_t len)
{
	ssize_t ret = write(fd, text, len);

	check(ret == -1 && errno == EINVAL, "'%.16s' gave %zd, %s", text, ret, strerror(errno));
}

/* Opens the device as another user; user IDs are the thread's, below libc. */
static void *open_as_another(void *fd)
{
	must(syscall(SYS_setresuid, 1000, 1000, 1000));
	*(int *)fd = open(BACKFIRE_DEVICE, O_RDWR);
	return NULL;
}

/* Who got the file from another user is not signalled, nor is who has become another. */
static void users(void)
{
	int fd = open(BACKFIRE_DEVICE, O_RDWR), given = -1, status;
	pthread_t thread;
	pid_t child;

	must(fd);
	/* The device node is this guest's own: nobody else could see it otherwise. */
	must(chmod(BACKFIRE_DEVICE, 0666));
	pthread_create(&thread, NULL, open_as_another, &given);
	pthread_join(thread, NULL);
	must(given);
	signal(SIGTERM, handler);
	handled_at = 0;
	check(write(given, "15", 2) == -1 && errno == EPERM && !handled_at, "%s", strerror(errno));
	close(given);

	child = fork();
	must(child);
	if (!child) {
		ssize_t ret;

		signal(SIGTERM, SIG_DFL);
		must(setresuid(1000, 1000, 1000));
		ret = write(fd, "15", 2);
		_exit(ret == -1 && errno == EPERM ? 0 : 1);
	}
	must(waitpid(child, &status, 0));
	check(status == 0, "status %x", status);
	check(write(fd, "15", 2) == 2 && handled_at, "its own");
	close(fd);
}

int main(void)
{
	static char long_text[1 << 20];
	static const char *const bad[] = { "0", "32", "-1", "-9", "text", "", "\n", "1 2", "1x",
		"99999999", "4294967297", "1\n\n", "0x1", " ", "1,", "123456789" };
	int fd = open(BACKFIRE_DEVICE, O_RDWR);
	long long day_us;
	pthread_t thread;
	unsigned int i, ignored = 0;
	pid_t child;
	int status;

	setbuf(stdout, NULL);
	must(fd);
	check(sent(fd, &day_us) == 0 && day_us == 0, "nothing was sent");

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses(fd, bad[i], strlen(bad[i]));
	memset(long_text, '1', sizeof(long_text));
	refuses(fd, long_text, sizeof(long_text));
	check(write(fd, nowhere(), 2) == -1 && errno == EFAULT, "%s", strerror(errno));
	check(pread(fd, nowhere(), 2, 0) == -1 && errno == EFAULT, "%s", strerror(errno));
	check(pread(fd, long_text, 9, 0) == 9 && !memcmp(long_text, "0,000000\n", 9), "'%.9s'",
	      long_text);

	signal(SIGUSR1, handler);
	check(write(fd, "10\n", 3) == 3 && handled_at, "with a newline");
	check(read(fd, long_text, 64) > 0 && read(fd, long_text, 64) == 0, "end of file");

	users();

	round_trips((void *)1000);
	/* The signal is the thread's, not the process's. */
	pthread_create(&thread, NULL, round_trips, (void *)100);
	pthread_join(thread, NULL);

	/* Two at once. */
	for (i = 0; i < 2; i++)
		if (!fork()) {
			round_trips((void *)1000);
			exit(failures != 0);
		}
	for (i = 0; i < 2; i++) {
		must(wait(&status));
		check(status == 0, "status %x", status);
	}

	/* Those that die of it or are stopped by it, with the file open. */
	for (i = 1; i <= 31; i++) {
		char text[8];

		sprintf(text, "%u", i);
		child = fork();
		if (!child) {
			signal(i, SIG_DFL);
			must(write(fd, text, strlen(text)));
			_exit(0);
		}
		must(waitpid(child, &status, WUNTRACED));
		if (WIFSTOPPED(status)) {
			check(WSTOPSIG(status) == (int)i, "status %x for %u", status, i);
			kill(child, SIGKILL);
			must(waitpid(child, &status, 0));
		} else if (WIFSIGNALED(status)) {
			check(WTERMSIG(status) == (int)i, "status %x for %u", status, i);
		} else {
			ignored |= 1u << i;
		}
	}
	/* The terminal's stops do nothing where no shell could continue the process. */
	ignored &= ~(1u << SIGTSTP | 1u << SIGTTIN | 1u << SIGTTOU);
	check(ignored == (1u << SIGCHLD | 1u << SIGCONT | 1u << SIGURG | 1u << SIGWINCH),
	      "ignored %x", ignored);
	close(fd);
	return conclude("backfire");
}
