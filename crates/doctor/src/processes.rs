// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes on a machine, and permissions of this one.

use punctual_model::Reason;

use crate::machine::Machine;

/// A thread.
#[derive(Debug)]
pub struct Thread {
    /// The process that the thread belongs to.
    pub process: u32,
    /// Name of the thread.
    pub name: String,
    /// True if it is a kernel thread.
    pub is_kernel: bool,
    /// The real-time priority, 1 to 99; 0 if it has none.
    pub priority: u32,
}

/// `PF_KTHREAD`, in `include/linux/sched.h`.
const KERNEL_THREAD: u32 = 0x0020_0000;

impl Machine {
    /// The processes, by number. An error if some are hidden: `hidepid`, or a container.
    pub(crate) fn processes(&self) -> Result<Vec<u32>, Reason> {
        let names = self.names("/proc")?;
        let numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        // Process 2 is the kernel's, and seen only where all are.
        match self.find("/proc/2/comm")?.as_deref() {
            Some("kthreadd") => Ok(numbers),
            _ => Err(
                "not all processes are seen: this is a container, or /proc is mounted with \
                      hidepid"
                    .into(),
            ),
        }
    }

    /// All threads. One that ends meanwhile is left out.
    pub(crate) fn threads(&self) -> Result<Vec<Thread>, Reason> {
        let mut threads = Vec::new();
        for process in self.processes()? {
            let tasks = self
                .names(&format!("/proc/{process}/task"))
                .unwrap_or_default();
            for task in tasks {
                let path = format!("/proc/{process}/task/{task}/stat");
                let Some(stat) = self.text(&path).ok() else {
                    continue;
                };
                let expected = || Reason::unreadable(&path, format!("found \"{stat}\""));
                threads.push(thread(process, &stat).ok_or_else(expected)?);
            }
        }
        Ok(threads)
    }

    /// Returns true if this process has the capability of this number in the initial user
    /// namespace, where the kernel asks for it (`capable()` in `kernel/capability.c`). That
    /// namespace maps each user to itself; a copy of a machine's files may lack the map.
    pub(crate) fn is_capable(&self, capability: u32) -> Result<bool, Reason> {
        let path = "/proc/self/status";
        let status = self.text(path)?;
        let mut lines = status.lines();
        let mask = lines.find_map(|line| line.strip_prefix("CapEff:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        let mask = mask.ok_or_else(|| Reason::unreadable(path, "expected CapEff"))?;
        if mask >> capability & 1 == 0 {
            return Ok(false);
        }
        let map = self.find("/proc/self/uid_map")?;
        Ok(map.is_none_or(|map| map.split_whitespace().eq(["0", "0", "4294967295"])))
    }

    /// The soft value of this process's limit of this name, from `/proc/self/limits`.
    pub(crate) fn limit(&self, name: &str) -> Result<String, Reason> {
        let path = "/proc/self/limits";
        let limits = self.text(path)?;
        let mut lines = limits.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        let expected = || Reason::unreadable(path, format!("expected \"{name}\""));
        found.map(str::to_owned).ok_or_else(expected)
    }

    /// An error if the outermost control group of version 2 is hidden, as in a container: that one
    /// has no type.
    pub(crate) fn sees_all_groups(&self) -> Result<(), Reason> {
        let hidden = "the control groups above /sys/fs/cgroup are hidden, as in a container";
        match self.find("/sys/fs/cgroup/cgroup.type")? {
            None => Ok(()),
            Some(_) => Err(hidden.into()),
        }
    }

    /// The files `name` of the control groups that this process is in, from its own to the
    /// outermost, with their paths; missing files are left out. For version 1 this is the hierarchy
    /// of the controller cpu, if there is one, in which each group has the file; for version 2 the
    /// outermost group has none.
    pub(crate) fn cpu_groups(&self, v1: &str, v2: &str) -> Result<Vec<(String, String)>, Reason> {
        let mounts = self.text("/proc/self/mounts")?;
        let groups = self.text("/proc/self/cgroup")?;
        let mount = |kind: &str, option: &str| {
            mounts.lines().find_map(|line| {
                let fields: Vec<&str> = line.split(' ').collect();
                let [_, place, own, options, ..] = fields[..] else {
                    return None;
                };
                let is_it = own == kind && (option.is_empty() || has_word(options, option));
                is_it.then(|| place.to_owned())
            })
        };
        let group = |is_it: &dyn Fn(&str) -> bool| {
            groups.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                is_it(controllers).then(|| path.to_owned())
            })
        };
        let (place, path, file) = if let Some(place) = mount("cgroup", "cpu") {
            (place, group(&|names| has_word(names, "cpu")), v1)
        } else {
            let none = "no control groups are mounted: /proc/self/mounts has none";
            let place = mount("cgroup2", "").ok_or(none)?;
            (place, group(&str::is_empty), v2)
        };
        let path = path.ok_or("/proc/self/cgroup names no group of the controller cpu")?;
        let mut path = path.trim_end_matches('/');
        let own = format!("{place}{path}");
        self.names(&own)?;
        let mut found = Vec::new();
        loop {
            if let Some(text) = self.find(&format!("{place}{path}/{file}"))? {
                found.push((format!("{path}/{file}"), text));
            }
            match path.rsplit_once('/') {
                Some((above, _)) => path = above,
                None if found.is_empty() && file == v1 => {
                    return Err(Reason::unreadable(&place, format!("no group has {file}")));
                }
                None => return Ok(found),
            }
        }
    }
}

fn has_word(words: &str, word: &str) -> bool {
    words.split(',').any(|own| own == word)
}

/// Parses a thread's `stat`: proc(5) counts the fields from 1; the name is the second.
fn thread(process: u32, stat: &str) -> Option<Thread> {
    let (head, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u32>().ok();
    Some(Thread {
        process,
        name: head.split_once('(')?.1.to_owned(),
        is_kernel: field(9)? & KERNEL_THREAD != 0,
        priority: field(40)?,
    })
}
