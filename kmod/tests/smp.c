// SPDX-License-Identifier: GPL-2.0
/* What can go wrong only where there is more than one CPU. */

#include "check.h"

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "../stall/uapi/stall.h"

#define ROUNDS	20
#define SOCKETS	100

static void command(int fd, const char *text)
{
	check(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "'%s': %s", text,
	      strerror(errno));
}

/*
 * Fills the kernel's free memory of 64 bytes on this CPU with filters that a lock in
 * it would take for "locked": whoever uses what he has freed does not go on.
 */
static void fill(int *sockets)
{
	struct sock_filter code[8] = {};
	struct sock_fprog program = { .len = 8, .filter = code };
	int i;

	for (i = 0; i < 7; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 1);
	code[7] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 1);
	for (i = 0; i < SOCKETS; i++) {
		sockets[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
		must(sockets[i]);
		must(setsockopt(sockets[i], SOL_SOCKET, SO_ATTACH_FILTER, &program,
				sizeof(program)));
	}
}

/* A stall that happened on one CPU, then one armed on another, closed before it is due. */
static void rearmed_elsewhere(int first_cpu, int second_cpu)
{
	int fd = open(STALL_DEVICE, O_RDWR), sockets[2][SOCKETS], i;

	must(fd);
	pin(first_cpu);
	command(fd, "mutex 10 after=100");
	sleep_until(now() + 2000000);
	pin(second_cpu);
	command(fd, "mutex 10 after=1000000");
	fill(sockets[0]);
	pin(first_cpu);
	fill(sockets[1]);
	close(fd);
	for (i = 0; i < SOCKETS; i++) {
		close(sockets[0][i]);
		close(sockets[1][i]);
	}
}

/* The same, but both happen. */
static void moved(void)
{
	int fd = open(STALL_DEVICE, O_RDWR), i;
	char text[64] = "";

	must(fd);
	for (i = 0; i < ROUNDS; i++) {
		pin(i % 2);
		command(fd, "mutex 10 after=100");
		sleep_until(now() + 2000000);
		must(pread(fd, text, sizeof(text) - 1, 0));
		check(!strncmp(text, "done=1 ", 7), "'%s'", text);
	}
	close(fd);
}

int main(void)
{
	struct rlimit files = { 1024, 1024 };
	int i;

	setbuf(stdout, NULL);
	must(setrlimit(RLIMIT_NOFILE, &files));
	must(mlockall(MCL_CURRENT | MCL_FUTURE));
	for (i = 0; i < ROUNDS; i++) {
		rearmed_elsewhere(0, 1);
		rearmed_elsewhere(1, 0);
	}
	moved();
	return conclude("smp");
}
