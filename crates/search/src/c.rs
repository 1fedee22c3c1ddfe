// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a program of system calls in C, for people who do not have Punctual. It makes the same
//! calls as `punctual-calls`, each round in a process and a directory of its own.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use punctual_calls::{Argument, Call, Grammar, Kind, Program};

use crate::Asked;

/// The text before the calls. `STATE`, `COPY` and `HELPERS` are replaced.
const BEFORE: &str = r"#define _GNU_SOURCE
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Things that calls have made: descriptors, mappings, processes. */
struct things {
	long count;
	struct { long value, size; } *all;
};

/* What a process or a thread has. */
struct state {
	struct things STATE;
	long names;
	int out[8];
};

/* A page that forked processes share, and memory of a process's own. */
static char *shared, *memory;
/* One moment for all. */
static struct timespec soon;
HELPERS";

/// Helpers, each with the name by which calls use it.
const HELPERS: [(&str, &str); 9] = [
    (
        "put(",
        r"
static void put(struct things *t, long value, long size)
{
	/* Room doubles. */
	if ((t->count & (t->count - 1)) == 0)
		t->all = realloc(t->all, (t->count ? 2 * t->count : 1) * sizeof *t->all);
	t->all[t->count].value = value;
	t->all[t->count++].size = size;
}
",
    ),
    (
        "NEXT(",
        r"
/* The last one first, and so on. */
#define NEXT(t, i) ((t).all[(t).count - 1 - (i) % (t).count])
",
    ),
    (
        "LAST(",
        r"
#define LAST(t) ((t).all[(t).count - 1])
",
    ),
    (
        "touch(",
        r"
static long touch(long from, long size, long most)
{
	for (long at = 0; at < size && at < most; at += 4096)
		*(volatile char *)(from + at) = 1;
	return 0;
}
",
    ),
    (
        "start(",
        r"
static struct things copied(const struct things *t)
{
	/* Room for at least as many as the next doubling expects. */
	struct things own = { t->count, malloc(2 * (t->count + 1) * sizeof *t->all) };

	if (t->count)
		memcpy(own.all, t->all, t->count * sizeof *t->all);
	return own;
}

static long start(void *(*body)(void *), const struct state *s)
{
	struct state *own = malloc(sizeof *own);
	pthread_attr_t attributes;
	pthread_t thread;

	*own = *s;
COPY	own->children = (struct things){ 0 };
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	return pthread_create(&thread, &attributes, body, own) ? -1 : 0;
}
",
    ),
    (
        "ring_has",
        r"
/* A struct io_uring_params: where in its memory a ring has what. */
static unsigned ring_has[30];
",
    ),
    (
        "submit(",
        r"
/* So often the same, as many at once as the ring has room for. */
static long submit(const unsigned *has, int fd, long room, long count, const unsigned long *what)
{
	/* Mapped for as long as it takes: a ring that is mapped does not end when it is closed. */
	const int access = PROT_READ | PROT_WRITE;
	char *counters = mmap(NULL, 4096, access, MAP_SHARED, fd, 0);
	unsigned *head = (unsigned *)(counters + has[10]), *tail = (unsigned *)(counters + has[11]);
	unsigned long *entry;
	long left = -1, length = 4096;

	/* All entries: their number is the next power of two. */
	while (length < room * 64)
		length *= 2;
	entry = mmap(NULL, length, access, MAP_SHARED, fd, 0x10000000);
	if (counters != MAP_FAILED && entry != MAP_FAILED && has[11]) {
		entry[0] = (unsigned)what[0] | what[1] << 32;
		entry[1] = what[2];
		entry[2] = what[3];
		entry[3] = (unsigned)what[4] | what[5] << 32;
		memcpy(entry + 4, what + 6, 3 * sizeof *entry);
		for (left = count; left > 0;) {
			long some = left < room ? left : room;

			__atomic_fetch_add(tail, some, __ATOMIC_RELEASE);
			if (syscall(SYS_io_uring_enter, fd, some, 0, 0, NULL, 8) != some) {
				__atomic_store_n(tail, __atomic_load_n(head, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
				break;
			}
			left -= some;
		}
	}
	if (counters != MAP_FAILED)
		munmap(counters, 4096);
	if (entry != MAP_FAILED)
		munmap(entry, length);
	return left ? -1 : count;
}
",
    ),
    (
        "complete(",
        r"
/* Takes all completions, and lets the kernel put those there that had no room. */
static long complete(const unsigned *has, int fd)
{
	char *counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned *head = (unsigned *)(counters + has[20]), *tail = (unsigned *)(counters + has[21]);

	if (counters == MAP_FAILED || !has[21])
		return -1;
	__atomic_store_n(head, __atomic_load_n(tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	munmap(counters, 4096);
	return syscall(SYS_io_uring_enter, fd, 0, 0, 1, NULL, 8);
}
",
    ),
    (
        "reap(",
        r"
static void reap(struct things *children)
{
	while (children->count) {
		pid_t child = children->all[--children->count].value;

		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}
",
    ),
];

/// The text after the calls. `ORDINARY` and `MILLIS` are replaced.
const BEHIND: &str = r#"
static int forget(const char *path, const struct stat *s, int flag, struct FTW *at)
{
	return remove(path);
}

int main(int argc, char **argv)
{
	const long rounds = argc > 1 ? atol(argv[1]) : -1;
	const struct rlimit most = { 65536, 65536 };
	const int access = PROT_READ | PROT_WRITE;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	shared = mmap(NULL, 4096, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memory = mmap(NULL, 4096 + (16 << 20), access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long round = 0; round != rounds; round++) {
		char place[] = "/tmp/worst-XXXXXX";
		struct pollfd ended = { .events = POLLIN };
		pid_t child;

		if (!mkdtemp(place))
			return 1;
		if (geteuid() == 0 && chown(place, 65534, 65534))
			return 1;
		memset(shared, 0, 4096);
		clock_gettime(CLOCK_MONOTONIC, &soon);
		soon.tv_nsec += 20000000;
		soon.tv_sec += soon.tv_nsec / 1000000000;
		soon.tv_nsec %= 1000000000;
		child = fork();
		if (child == 0) {
			struct state s = { 0 };
			struct rlimit own;

			setpgid(0, 0);
			if (setrlimit(RLIMIT_NOFILE, &most) && !getrlimit(RLIMIT_NOFILE, &own)) {
				own.rlim_cur = own.rlim_max;
				setrlimit(RLIMIT_NOFILE, &own);
			}
ORDINARY			if (chdir(place))
				_exit(1);
			program(&s);
			_exit(0);
		}
		/* After so many milliseconds it is killed, with all that it has made. */
		ended.fd = syscall(SYS_pidfd_open, child, 0);
		poll(&ended, 1, MILLIS);
		close(ended.fd);
		kill(-child, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0)
			;
		nftw(place, forget, 16, FTW_DEPTH | FTW_PHYS);
		usleep(20000);
		printf("%ld\n", round + 1);
		fflush(stdout);
	}
	return 0;
}
"#;

/// The code with which root becomes an ordinary user.
const ORDINARY: &str =
    "\t\t\tif (geteuid() == 0 && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
\t\t\t    setresuid(65534, 65534, 65534)))
\t\t\t\t_exit(1);
\t\t\tprctl(PR_SET_DUMPABLE, 1);
";

/// Time in milliseconds after which a program is ended, if nobody has asked for another.
const LIMIT_MS: i64 = 50;

/// The code with which a program that makes objects of IPC has them end with it, where it may.
const IPC: &str = "\t\t\tunshare(CLONE_NEWIPC);\n";

/// Returns a program in C, with a comment above it whose lines are given. It runs as root or as an
/// ordinary user, and is ended after a time, as the search has asked.
///
/// # Errors
/// Returns the name of a call that the grammar does not know.
pub fn program(
    program: &Program,
    grammar: &Grammar,
    comment: &[String],
    asked: &Asked,
) -> Result<String, String> {
    let mut writer = Writer {
        grammar,
        things: BTreeSet::new(),
        bodies: Vec::new(),
    };
    let own = writer.calls(&program.calls)?;
    let mut calls = String::new();
    for (number, body) in (1..).zip(&writer.bodies) {
        _ = write!(
            calls,
            "\nstatic __attribute__((noreturn)) void *child_{number}(void *own)\n{{\n\tstruct state *s = own;\n\n{body}\
             \t(void)s;\n\tfor (;;)\n\t\tpause();\n}}\n"
        );
    }
    _ = write!(
        calls,
        "\nstatic void program(struct state *s)\n{{\n{own}\t(void)s;\n}}\n"
    );
    let used = HELPERS.iter().filter(|(name, _)| calls.contains(name));
    let helpers: String = used.map(|(_, text)| *text).collect();
    let names: Vec<&str> = writer.things.iter().map(String::as_str).collect();
    let state = [&["children"], &names[..]].concat().join(", ");
    let copies = names.iter();
    let copies: Vec<String> = copies
        .map(|name| format!("\town->{name} = copied(&s->{name});\n"))
        .collect();
    let comment = comment.iter();
    let comment: Vec<String> = comment
        .map(|line| format!(" * {line}").trim_end().to_owned() + "\n")
        .collect();
    let before = BEFORE
        .replace("STATE", &state)
        .replace("HELPERS", &helpers.replace("COPY", &copies.concat()));
    let ordinary = if asked.root { "" } else { ORDINARY };
    let ipc = if grammar.outlive(&program.calls) {
        IPC
    } else {
        ""
    };
    let limit = asked.each.map_or(LIMIT_MS, |each| each.0 / 1_000_000);
    let behind = BEHIND
        .replace("ORDINARY", &(ipc.to_owned() + ordinary))
        .replace("MILLIS", &limit.to_string());
    Ok(format!(
        "/*\n{} */\n{before}{calls}{behind}",
        comment.concat()
    ))
}

/// Writes calls, and remembers what they need.
struct Writer<'a> {
    grammar: &'a Grammar,
    /// The kinds of things, as C names them.
    things: BTreeSet<String>,
    /// The functions that children run.
    bodies: Vec<String>,
}

/// A call whose arguments are written, with the code that has to run before it.
struct Making<'a> {
    kind: &'a Kind,
    call: &'a Call,
    before: String,
    texts: usize,
}

impl Making<'_> {
    fn unless(&mut self, condition: &str) {
        let line = format!("\t\tif (!{condition})\n\t\t\tbreak;\n");
        if !self.before.contains(&line) {
            self.before += &line;
        }
    }

    /// Adds a file's name.
    fn name(&mut self, expression: &str) -> String {
        let text = format!("name_{}", self.texts);
        self.texts += 1;
        _ = write!(
            self.before,
            "\t\tchar {text}[24];\n\t\tsnprintf({text}, sizeof {text}, \"%ld\", {expression});\n"
        );
        text
    }
}

/// Returns the title of a call for a comment.
fn title(kind: &Kind, call: &Call) -> String {
    let alone = Call {
        body: Vec::new(),
        ..call.clone()
    };
    format!("{alone}: {}", kind.does)
}

fn identifier(kind: &str) -> String {
    kind.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

impl Writer<'_> {
    fn calls(&mut self, calls: &[Call]) -> Result<String, String> {
        let mut text = String::new();
        for call in calls {
            text += &self.call(call)?;
        }
        Ok(text)
    }

    fn call(&mut self, call: &Call) -> Result<String, String> {
        let kind = self
            .grammar
            .kind(&call.name)
            .ok_or_else(|| call.name.clone())?;
        let mut making = Making {
            kind,
            call,
            before: String::new(),
            texts: 0,
        };
        let arguments = match (kind.syscall.as_str(), &kind.args[..]) {
            ("submit", [ring, room, count, what @ ..]) => {
                let what = Argument::Longs { u64: what.to_vec() };
                vec![ring.clone(), room.clone(), count.clone(), what]
            }
            (_, all) => all.to_vec(),
        };
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| self.argument(argument, &mut making))
            .collect();
        let before = making.before;
        let arguments = arguments.join(", ");
        let made = match kind.syscall.as_str() {
            "touch" => format!("touch({arguments})"),
            "exit" => "_exit(0)".to_owned(),
            "reap" => "reap(&s->children)".to_owned(),
            own @ ("submit" | "complete") => format!("{own}(ring_has, {arguments})"),
            "fork" | "thread" => {
                let body = self.calls(&call.body)?;
                self.bodies.push(body);
                let number = self.bodies.len();
                if kind.syscall == "thread" {
                    format!("start(child_{number}, s)")
                } else {
                    return Ok(forks(&title(kind, call), call.times, number));
                }
            }
            name if arguments.is_empty() => format!("syscall(SYS_{name})"),
            name => format!("syscall(SYS_{name}, {arguments})"),
        };
        let kept = self.kept(kind, call);
        let title = title(kind, call);
        let done = if kept.is_empty() {
            format!("\t\t{made};\n")
        } else {
            format!("\t\tlong result = {made};\n\t\tif (result >= 0) {{\n{kept}\t\t}}\n")
        };
        let times = call.times;
        Ok(format!(
            "\t/* {title} */\n\tfor (long i = 0; i < {times}; i++) {{\n{before}{done}\t}}\n"
        ))
    }

    /// Writes what is kept of a call's result, and what is gone.
    fn kept(&mut self, kind: &Kind, call: &Call) -> String {
        let mut text = String::new();
        match kind.takes.as_deref() {
            Some("child") => text += "\t\t\ts->children.count--;\n",
            Some(taken) => _ = writeln!(text, "\t\t\ts->{}.count--;", self.list(taken)),
            None => {}
        }
        let names_it = |argument: &Argument| *argument == Argument::Word("out".to_owned());
        let in_out = kind.args.iter().any(names_it);
        for (number, made) in kind.makes.iter().enumerate() {
            let value = if in_out {
                format!("s->out[{}]", number % 8)
            } else {
                "result".to_owned()
            };
            let (list, size) = (self.list(made), call.size.unwrap_or(0));
            _ = writeln!(text, "\t\t\tput(&s->{list}, {value}, {size}L);");
        }
        text
    }

    fn list(&mut self, kind: &str) -> String {
        let name = identifier(kind);
        self.things.insert(name.clone());
        name
    }

    fn argument(&mut self, argument: &Argument, making: &mut Making<'_>) -> String {
        let mut array = |all: &[Argument], of: &str, least: usize| {
            let values = all.iter();
            let values: Vec<String> = values
                .map(|one| format!("({of}){}", self.argument(one, making)))
                .collect();
            let count = values.len().max(least);
            format!("({of}[{count}]){{ {} }}", values.join(", "))
        };
        match argument {
            Argument::Number(number) => format!("{number}L"),
            Argument::Longs { u64: all } => array(all, "unsigned long", 32),
            Argument::Ints { u32: all } => {
                // A word of 32 bits of a longer one.
                let text = array(all, "unsigned", 64);
                text.replace("(unsigned)s->", "(unsigned)(long)s->")
            }
            Argument::Word(word) => self.word(word, making),
        }
    }

    fn word(&mut self, word: &str, making: &mut Making<'_>) -> String {
        if let Some(text) = word
            .strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\''))
        {
            return format!("\"{}\"", text.escape_default());
        }
        if let Some(kind) = word.strip_prefix('#') {
            let (kind, field) = match kind.strip_suffix(".size") {
                Some(kind) => (kind, "size"),
                None => (kind, "value"),
            };
            let is_taken = making.kind.takes.as_deref() == Some(kind);
            let is_child = kind == "child";
            let list = if is_child {
                "children".to_owned()
            } else {
                self.list(kind)
            };
            making.unless(&format!("s->{list}.count"));
            return if is_taken || is_child {
                format!("LAST(s->{list}).{field}")
            } else {
                format!("NEXT(s->{list}, i).{field}")
            };
        }
        if let Some(factor) = word.strip_prefix("index*") {
            return format!("(i * {factor}L)");
        }
        match word {
            "size" => format!("{}L", making.call.size.unwrap_or(0)),
            "index" => "i".to_owned(),
            "out" => "s->out".to_owned(),
            "path" => making.name("++s->names"),
            "path.old" => {
                making.unless("s->names");
                making.name("s->names - i % s->names")
            }
            "shared" => "shared".to_owned(),
            "shared2" => "(shared + 64)".to_owned(),
            "zeros" => "memory".to_owned(),
            "buffer" => "(memory + 4096)".to_owned(),
            "self" => "(long)getpid()".to_owned(),
            "ring" => "ring_has".to_owned(),
            "soon.s" => "(long)soon.tv_sec".to_owned(),
            // The grammar has no other word.
            _ => "soon.tv_nsec".to_owned(),
        }
    }
}

fn forks(title: &str, times: u64, number: usize) -> String {
    format!(
        "\t/* {title} */\n\tfor (long i = 0; i < {times}; i++) {{\n\t\tpid_t child = fork();\n\n\
         \t\tif (child == 0) {{\n\t\t\ts->children.count = 0;\n\t\t\tchild_{number}(s);\n\t\t}}\n\
         \t\tif (child > 0)\n\t\t\tput(&s->children, child, 0);\n\t}}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn asked(root: bool) -> Asked {
        Asked {
            kernel: String::new(),
            image_sha256: String::new(),
            boot: String::new(),
            seed: 1,
            root,
            random: false,
            grammar: String::new(),
            each: None,
        }
    }

    /// Checks that a C compiler takes it without a warning.
    fn compiles(text: &str) -> Result<(), String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("worst.c");
        std::fs::write(&path, text).unwrap();
        let compiler = Command::new("cc")
            .args(["-Wall", "-Werror", "-O1", "-pthread", "-fsyntax-only"])
            .arg(&path)
            .output()
            .expect("cc");
        if compiler.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&compiler.stderr).into_owned())
    }

    #[test]
    fn each_kind_of_call_is_c_that_compiles() {
        let grammar = Grammar::default();
        let call = |kind: &Kind| {
            let body = if kind.block {
                grammar
                    .program("create; touch-file")
                    .unwrap_or_default()
                    .calls
            } else {
                Vec::new()
            };
            Call {
                name: kind.name.clone(),
                size: kind.size.map(|(_, most)| most),
                times: kind.times.1,
                body,
            }
        };
        let all = Program {
            calls: grammar.kinds().map(call).collect(),
        };
        for root in [false, true] {
            let text = program(&all, &grammar, &["All kinds.".to_owned()], &asked(root)).unwrap();
            compiles(&text).unwrap();
        }
    }

    #[test]
    fn what_is_not_used_is_not_there() {
        let grammar = Grammar::default();
        let calls = grammar
            .program("create; lock-ranges *1024; unlock-range")
            .unwrap();
        let text = program(&calls, &grammar, &["A list.".to_owned()], &asked(false)).unwrap();
        compiles(&text).unwrap();
        for absent in ["start(", "reap(", "touch(", "child_1"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        assert!(text.contains("\t/* lock-ranges *1024: "), "{text}");
        assert!(text.contains("for (long i = 0; i < 1024; i++)"), "{text}");
        assert!(text.contains("setresuid(65534, 65534, 65534)"), "{text}");
        let unknown = Program {
            calls: vec![Call {
                name: "none".into(),
                size: None,
                times: 1,
                body: Vec::new(),
            }],
        };
        assert_eq!(
            program(&unknown, &grammar, &[], &asked(false)),
            Err("none".into())
        );
    }
}
