// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names for threads.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::attribution::Attribution;
use crate::names::program;
use crate::walk::Task;
use punctual_model::probe::SampleSpan;

impl Attribution<'_> {
    /// Returns names for threads: the program in user space, or a kernel thread's own function.
    pub(super) fn threads(&self) -> HashMap<Task, String> {
        let mut threads: HashMap<Task, String> = HashMap::new();
        for span in self.walk.spans.iter().filter(|span| span.user) {
            let text = self.text(span.top);
            if text != "[vdso]" {
                let program = program(text).to_owned();
                // A library is no program, if the program is seen, too.
                let name = threads.entry(span.task).or_insert_with(|| program.clone());
                if name.contains(".so") {
                    *name = program;
                }
            }
        }
        for task in &self.walk.idlers {
            threads.insert(*task, "the thread that keeps it awake".to_owned());
        }
        for (task, known) in self.kernel_threads() {
            let (_, name) = THREADS[known];
            threads.entry(task).or_insert_with(|| name.to_owned());
        }
        self.name_parts(&mut threads);
        threads
    }

    /// Returns the index in `THREADS` of each task that ran one of these functions.
    fn kernel_threads(&self) -> HashMap<Task, usize> {
        let mut found: HashMap<Task, usize> = HashMap::new();
        for activation in &self.walk.activations {
            let text = &self.names[activation.func as usize].text;
            let place = THREADS.iter().position(|(function, _)| function == text);
            if let Some(known) = place {
                let best = found.entry(activation.task).or_insert(known);
                *best = known.min(*best);
            }
        }
        found.remove(&0);
        found
    }

    /// Names both threads of a handover. They are the probe's, most likely.
    fn name_parts(&self, threads: &mut HashMap<Task, String>) {
        if self.about.span != SampleSpan::Handover {
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
            None => "(unnamed thread)",
        }
    }
}

/// Kernel threads, by their functions. Functions that several threads have in common come last.
const THREADS: [(&str, &str); 16] = [
    ("do_idle", "idle"),
    ("cpu_startup_entry", "idle"),
    ("cpuidle_idle_call", "idle"),
    ("rcu_cpu_kthread", "kernel thread (rcuc)"),
    ("run_ksoftirqd", "kernel thread (ksoftirqd)"),
    ("run_timersd", "kernel thread (ktimers)"),
    ("cpu_stopper_thread", "kernel thread (migration)"),
    ("irq_thread", "kernel thread (irq_thread)"),
    ("worker_thread", "kernel thread (worker_thread)"),
    ("kthread_worker_fn", "kernel thread (kthread_worker_fn)"),
    ("rcu_gp_kthread", "kernel thread (rcu_gp_kthread)"),
    ("kcompactd", "kernel thread (kcompactd)"),
    ("kswapd", "kernel thread (kswapd)"),
    ("kthreadd", "kernel thread (kthreadd)"),
    ("rcu_tasks_kthread", "kernel thread (rcu_tasks_kthread)"),
    ("smpboot_thread_fn", "kernel thread (smpboot_thread_fn)"),
];
