// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns on a cluster: a real Slurm on this machine, over loopback, in a directory of the
//! test's own. A node is killed with its job, the controller and the database are restarted, a file
//! is damaged: each run exists exactly once, with the digest that this machine gives.
//!
//! `PUNCTUAL_REPEATS` is the number of seeds of each of the two kernels, 8 by default.
//! `PUNCTUAL_EFFICIENCY` makes this many runs of half a minute, and prints how well the nodes were
//! used, by the tasks and by Slurm's own account.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use punctual_skip::{program, root};
use punctual_tests::server::{Server, Stop};
use punctual_tests::{Ended, KERNELS, Scratch, assert_has, is_alive, number, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SUITE: &str = "name = \"short\"\nsummary = \"wake-ups\"\n[[step]]\nprobe = \"timer\"\n\
    samples = 300\ninterval_us = 100_000\n";

/// A controller and two nodes.
struct Cluster {
    directory: PathBuf,
}

impl Cluster {
    fn start(scratch: &Scratch) -> Self {
        let directory = scratch.path("slurm");
        for name in ["", "state", "n1", "n2"] {
            fs::create_dir_all(directory.join(name)).expect("a directory");
        }
        // munged wants nobody else to write to where its socket is.
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(scratch.path(""), mode.clone()).expect("permissions");
        fs::set_permissions(&directory, mode).expect("permissions");
        let cluster = Self { directory };
        let key: Vec<u8> = (0..1024).map(|_| fastrand::u8(..)).collect();
        let key_file = cluster.path("munge.key");
        fs::write(&key_file, key).expect("a file");
        fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).expect("permissions");
        fs::write(cluster.path("slurm.conf"), cluster.configuration()).expect("a file");
        let option = |name: &str, file: &str| format!("--{name}={}", cluster.path(file).display());
        done(Command::new("/usr/sbin/munged").arg("--force").args([
            option("key-file", "munge.key"),
            option("socket", "munge.sock"),
            option("pid-file", "munge.pid"),
            option("log-file", "munge.log"),
            option("seed-file", "munge.seed"),
        ]));
        cluster.start_controller();
        for node in ["n1", "n2"] {
            let conf = cluster.path("slurm.conf");
            done(
                Command::new("/usr/sbin/slurmd")
                    .arg("-f")
                    .arg(conf)
                    .args(["-N", node]),
            );
        }
        until("both nodes are there", || {
            cluster
                .asked("sinfo", &["-hN", "-o", "%t"])
                .matches("idle")
                .count()
                == 2
        });
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn configuration(&self) -> String {
        let here = self.directory.display();
        let ports: Vec<u16> = free_ports(3);
        let name = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let name = name.trim().split('.').next().expect("a name");
        let (c, n1, n2) = (ports[0], ports[1], ports[2]);
        format!(
            "ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmctldPort={c}\n\
             SlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n\
             AuthInfo=socket={here}/munge.sock\nStateSaveLocation={here}/state\n\
             SlurmctldPidFile={here}/slurmctld.pid\nSlurmctldLogFile={here}/slurmctld.log\n\
             SlurmdSpoolDir={here}/%n\nSlurmdPidFile={here}/%n.pid\n\
             SlurmdLogFile={here}/%n.log\nProctrackType=proctrack/pgid\n\
             TaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nSelectType=select/cons_res\n\
             SelectTypeParameters=CR_CPU\nSchedulerParameters=batch_sched_delay=1\n\
             ReturnToService=2\nSlurmdTimeout=10\nSlurmctldTimeout=10\nKillWait=2\n\
             NodeName=n1 NodeHostname={name} NodeAddr=127.0.0.1 Port={n1} CPUs=1 RealMemory=4096\n\
             NodeName=n2 NodeHostname={name} NodeAddr=127.0.0.1 Port={n2} CPUs=1 RealMemory=4096\n\
             JobCompType=jobcomp/filetxt\nJobCompLoc={here}/completed\n\
             PartitionName=all Nodes=n1,n2 Default=YES State=UP\n"
        )
    }

    fn start_controller(&self) {
        let conf = self.path("slurm.conf");
        done(Command::new("/usr/sbin/slurmctld").arg("-f").arg(conf));
    }

    /// The output of a program of Slurm's; nothing while the controller is away.
    fn asked(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("SLURM_CONF", self.path("slurm.conf"));
        Ended::of(&mut command).stdout
    }

    fn pid(&self, name: &str) -> Option<u32> {
        let text = fs::read_to_string(self.path(&format!("{name}.pid"))).ok()?;
        text.trim().parse().ok()
    }

    fn kill(&self, name: &str, signal: Signal) {
        let pid = self.pid(name).expect("it runs");
        send(pid, signal);
        until("it has ended", || !is_alive(pid));
    }

    /// Kills a node like a power failure: its daemon, and everything that it has started.
    fn lose(&self, node: &str) {
        self.kill(node, Signal::KILL);
        let word = format!("SLURMD_NODENAME={node}\0");
        let conf = format!("{}", self.path("slurm.conf").display());
        for pid in processes() {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment);
            if environment.contains(&word) && environment.contains(&conf) {
                send(pid, Signal::KILL);
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.asked("scancel", &["--state=PENDING", "--user=root"]);
        self.asked("scancel", &["--user=root"]);
        for name in ["n1", "n2", "slurmctld", "munge"] {
            if let Some(pid) = self.pid(name).filter(|pid| is_alive(*pid)) {
                send(pid, Signal::TERM);
            }
        }
    }
}

fn done(command: &mut Command) {
    let ended = Ended::of(command);
    assert_eq!(ended.status, Some(0), "{command:?}: {}", ended.stderr);
}

/// Sends a signal. It is no error if the process has ended already.
fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    _ = kill_process(pid.expect("a process"), signal);
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let names = entries.map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

fn free_ports(count: usize) -> Vec<u16> {
    let bound = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
    let listeners: Vec<TcpListener> = (0..count).map(bound).collect();
    let port = |one: &TcpListener| one.local_addr().expect("an address").port();
    listeners.iter().map(port).collect()
}

/// The finished runs of a store, and their digests.
fn finished(scratch: &Scratch, more: &[&str]) -> BTreeMap<(String, u64), Vec<String>> {
    let ended = scratch.run(&[&["runs", "--json"], more].concat());
    let list: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let mut all: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for run in list["runs"].as_array().expect("runs") {
        if run["state"] == "finished" {
            let name = run["subject"]["name"].as_str().expect("a name").to_owned();
            let seed = run["seed"].as_u64().expect("a seed");
            let digest = run["digest"].as_str().expect("a digest").to_owned();
            all.entry((name, seed)).or_default().push(digest);
        }
    }
    all
}

#[test]
fn a_cluster_delivers_each_run_once_whatever_dies() {
    if !has_slurm() {
        return;
    }
    let scratch = Scratch::with_new_cache();
    let Some(mut server) = Server::new() else {
        return;
    };
    let store = server.database("runs");
    let in_store = ["--db", store.as_str()];
    let cluster = Cluster::start(&scratch);
    let suite = scratch.file("short.toml", SUITE);
    let [stock, rt] = KERNELS;
    let seeds = number("PUNCTUAL_REPEATS", 8);
    let matrix = format!(
        "suites = [\"./short.toml\"]\nkernels = [\"{stock}\", \"{rt}\"]\nseeds = {seeds}\n"
    );
    let campaign = scratch.file("matrix.toml", matrix);
    let shared = scratch.path("shared").display().to_string();
    let words = [&on_slurm(&campaign, &shared)[..], &in_store].concat();
    let begin = || {
        let mut command = scratch.punctual(&words);
        command.env("SLURM_CONF", cluster.path("slurm.conf"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("punctual starts")
    };
    let running = |node: &str| {
        let listed = cluster.asked("squeue", &["-h", "-r", "-t", "RUNNING", "-o", "%N"]);
        listed.lines().any(|line| line.trim() == node)
    };

    // Whoever waits for the results is killed, and somebody else takes them.
    let mut first = begin();
    until("both nodes measure", || running("n1") && running("n2"));
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    let second = begin();
    until("one has been merged", || {
        !finished(&scratch, &in_store).is_empty()
    });
    until("the first node measures", || running("n1"));
    cluster.lose("n1");
    cluster.kill("slurmctld", Signal::TERM);
    damage_results(Path::new(&shared));
    server.stop(Stop::Crash);
    server.start();
    cluster.start_controller();
    let ended: Ended = second.wait_with_output().expect("its output").into();
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let wanted = 2 * seeds as usize;
    assert_has(
        &ended.stdout,
        &[
            &format!("{wanted} of {wanted} runs"),
            "On the cluster guests ran for ",
        ],
    );

    let all = finished(&scratch, &in_store);
    assert_eq!(all.len(), wanted, "{all:?}");
    let local = scratch.path("local.db").display().to_string();
    let run = ["run", &suite, "--kernel", stock, "--kernel", rt, "--quiet"];
    let here = scratch.run(
        &[
            &run[..],
            &["--seeds", &format!("1..{seeds}"), "--db", &local],
        ]
        .concat(),
    );
    assert_eq!(here.status, Some(0), "{}", here.stderr);
    assert_eq!(
        all,
        finished(&scratch, &["--db", &local]),
        "each once, and the same"
    );

    // Nothing is left to be done, and nothing is put again.
    let again: Ended = begin().wait_with_output().expect("its output").into();
    assert_eq!(again.status, Some(0), "{}", again.stderr);
    assert!(
        !again.stderr.contains("are in Slurm's queue"),
        "{}",
        again.stderr
    );
    assert_eq!(finished(&scratch, &in_store), all);
}

/// Each node searches with a seed of its own, by an array of jobs; their findings become one
/// search.
#[test]
fn searches_of_a_cluster_become_one() {
    if !has_slurm() {
        return;
    }
    let scratch = Scratch::new();
    let cluster = Cluster::start(&scratch);
    let of = |seed: &str| {
        scratch
            .path(&format!("search-{seed}"))
            .display()
            .to_string()
    };
    let kernel = ["--kernel", KERNELS[0], "--boot=preempt=full", "--top"];
    let words = [&["search"], &kernel[..], &["0", "--candidates", "24"]].concat();
    let punctual = scratch.punctual(&words);
    let mut job = Command::new("sbatch");
    for (name, value) in punctual.get_envs() {
        if let Some(value) = value {
            job.env(name, value);
        }
    }
    job.env("SLURM_CONF", cluster.path("slurm.conf"));
    let program = punctual.get_program().display();
    let arguments: Vec<_> = punctual
        .get_args()
        .map(|one| one.to_string_lossy())
        .collect();
    let (into, log) = (
        of("$SLURM_ARRAY_TASK_ID"),
        scratch.path("job-%a").display().to_string(),
    );
    let search = format!(
        "exec {program} {} --seed $SLURM_ARRAY_TASK_ID --into {into}",
        arguments.join(" ")
    );
    job.args(["--wait", "--array=1-2", "--output", &log, "--wrap", &search]);
    done(&mut job);

    let kept = |directory: &str| -> Value {
        let text = fs::read_to_string(format!("{directory}/search.json")).expect("a search");
        serde_json::from_str(&text).expect("JSON")
    };
    let places = |directory: &str| {
        let search = kept(directory);
        let place = |entry: &Value| {
            let stretch = &entry["stretch"];
            let name = ["what", "function", "most"].map(|key| stretch[key].to_string());
            (name, stretch["ns"].as_i64().expect("a length"))
        };
        let corpus = search["corpus"].as_array().expect("a corpus").iter();
        corpus.map(place).collect::<BTreeMap<_, _>>()
    };
    let [one, other] = ["1", "2"].map(|seed| places(&of(seed)));
    assert!(!one.is_empty() && one != other, "two seeds find two things");
    let mut both = one;
    for (place, ns) in other {
        let known = both.entry(place).or_default();
        *known = ns.max(*known);
    }
    let (first, second, all) = (of("1"), of("2"), of("all"));
    let take = [
        "1",
        "--candidates",
        "0",
        "--into",
        &all,
        "--from",
        &first,
        &second,
    ];
    let ended = scratch.run(&[&["search"], &kernel[..], &take, &["--json"]].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_eq!(places(&all), both, "of each place the longest of the two");
    // Another kernel's stretches are none of this one's.
    let other = of("other");
    let foreign = [
        "--kernel",
        KERNELS[1],
        "--candidates",
        "0",
        "--from",
        &first,
    ];
    let foreign = [&["search"], &foreign[..], &["--into", &other]].concat();
    let ended = scratch.run(&foreign);
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert_has(&ended.stderr, &["its kernel is \"debian-6.12\""]);
}

/// The words that make a cluster carry a campaign out.
fn on_slurm<'a>(campaign: &'a str, shared: &'a str) -> [&'a str; 8] {
    [
        "campaign",
        campaign,
        "--executor",
        "slurm",
        "--shared",
        shared,
        "--explain",
        "0",
    ]
}

/// Damages the results, which are then delivered again.
fn damage_results(shared: &Path) {
    for task in fs::read_dir(shared.join("tasks")).expect("tasks") {
        let task = task.expect("an entry").path();
        let name = task.file_stem().expect("a key").to_string_lossy();
        let result = shared.join(format!("results/{name}.punctual"));
        if !result.exists() {
            fs::write(result, "x").expect("a file");
        }
    }
}

/// Nothing here asserts any duration; the output is for people.
#[test]
fn how_well_nodes_are_used() {
    let runs = number("PUNCTUAL_EFFICIENCY", 0);
    if runs == 0 || !has("slurmctld") {
        return;
    }
    let scratch = Scratch::with_new_cache();
    let cluster = Cluster::start(&scratch);
    // About half a minute on an idle CPU.
    scratch.file(
        "long.toml",
        "name = \"long\"\nsummary = \"wake-ups\"\n[[step]]\nprobe = \"timer\"\n\
         load = \"stress\"\nsamples = 3_000\n",
    );
    let matrix = format!(
        "suites = [\"./long.toml\"]\nkernels = [\"{}\"]\nseeds = {runs}\n",
        KERNELS[1]
    );
    let campaign = scratch.file("matrix.toml", matrix);
    let shared = scratch.path("shared").display().to_string();
    let words = [&on_slurm(&campaign, &shared)[..], &["--json"]].concat();
    let mut command = scratch.punctual(&words);
    command.env("SLURM_CONF", cluster.path("slurm.conf"));
    let ended = Ended::of(&mut command);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let cluster_used = &report["cluster"];
    assert_eq!(cluster_used["tasks"], runs, "{cluster_used:#}");
    println!("{cluster_used:#}");
    println!(
        "{}",
        fs::read_to_string(cluster.path("completed")).expect("a file")
    );
}

/// Returns true if a cluster can be started here, and jobs submitted.
fn has_slurm() -> bool {
    let daemons = ["slurmctld", "slurmd", "munged"];
    root() && daemons.iter().all(|name| has(name)) && program("sbatch")
}

/// Returns true if a daemon of Debian's packages is installed.
fn has(name: &str) -> bool {
    let is_there = Path::new("/usr/sbin").join(name).is_file();
    if !is_there {
        punctual_skip::skip(&format!("no {name}"));
    }
    is_there
}
