//! Names for threads.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Measure;
use super::teller::Teller;
use crate::walk::{Number, Task};

impl Teller<'_> {
    /// Names for threads: the program in user space, or a kernel thread's own function.
    pub(super) fn threads(&self) -> HashMap<Task, String> {
        let mut threads: HashMap<Task, String> = HashMap::new();
        for span in self.walk.spans.iter().filter(|span| span.user) {
            let text = self.text(span.top);
            if text != "[vdso]" {
                threads.entry(span.task).or_insert_with(|| text.to_owned());
            }
        }
        for (number, activation) in self.walk.activations.iter().enumerate() {
            if threads.contains_key(&activation.task) || activation.task == 0 {
                continue;
            }
            let chain = self
                .walk
                .chain(number as Number)
                .map(|number| self.text(number));
            let known = chain.filter(|name| THREADS.iter().any(|(function, _)| function == name));
            if let Some(name) = known.last() {
                let told = THREADS.iter().find(|(function, _)| *function == name);
                let told = told.map_or(name, |(_, thread)| thread);
                threads.insert(activation.task, told.to_owned());
            }
        }
        self.name_parts(&mut threads);
        threads
    }

    /// Both threads of a handover are the probe's, most likely.
    fn name_parts(&self, threads: &mut HashMap<Task, String>) {
        if self.about.measure != Measure::Handover {
            return;
        }
        for (task, part) in [(self.beginner(), "begins"), (self.task, "ends")] {
            if let Some(name) = threads.get_mut(&task) {
                let _ = write!(name, " ({part})");
            }
        }
    }

    pub(super) fn thread(&self, task: Task) -> &str {
        match self.threads.get(&task) {
            Some(name) => name,
            None if task == self.task => "the probe's thread",
            None => "(a thread of unknown name)",
        }
    }
}

/// Kernel threads, by the function in which they wait.
const THREADS: [(&str, &str); 12] = [
    ("do_idle", "idle"),
    ("cpu_startup_entry", "idle"),
    ("cpuidle_idle_call", "idle"),
    ("irq_thread", "kernel thread (irq_thread)"),
    ("smpboot_thread_fn", "kernel thread (smpboot_thread_fn)"),
    ("worker_thread", "kernel thread (worker_thread)"),
    ("kthread_worker_fn", "kernel thread (kthread_worker_fn)"),
    ("rcu_gp_kthread", "kernel thread (rcu_gp_kthread)"),
    ("kcompactd", "kernel thread (kcompactd)"),
    ("kswapd", "kernel thread (kswapd)"),
    ("kthreadd", "kernel thread (kthreadd)"),
    ("rcu_tasks_kthread", "kernel thread (rcu_tasks_kthread)"),
];
