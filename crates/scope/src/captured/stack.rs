// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads from a stack the place where something came to an end. The innermost function comes first.

use crate::arch::is_interrupt;

/// Returns true for functions of the tracer and the scheduler themselves, at the top of the stack
/// of a switch.
fn is_scheduler(function: &str) -> bool {
    let starts = [
        "trace_event_raw_event_",
        "__ftrace_trace_stack",
        "__trace_stack",
        "probe_wakeup",
        "__traceiter_",
        "__schedule",
        "schedule",
        "preempt_schedule",
        "__preempt_schedule",
        "__cond_resched",
        "dynamic_cond_resched",
        "raw_irqentry_exit_cond_resched",
        "irqentry_exit",
        "preempt_count_sub",
        "exit_to_user_mode",
        "syscall_exit_to_user_mode",
    ];
    starts.iter().any(|start| function.starts_with(start))
}

/// Returns true for functions that only give back a lock, or open interrupts or preemption.
fn is_release(function: &str) -> bool {
    is_lock_release(function)
        || [
            "__local_bh_enable_ip",
            "__local_bh_enable",
            "local_bh_enable",
            "preempt_count_sub",
            "migrate_enable",
            "trace_hardirqs_on",
        ]
        .contains(&function)
}

/// Returns true if a function only takes or gives back a lock, or turns interrupts or preemption on
/// or off, so that its caller is the place.
pub fn is_release_or_lock(function: &str) -> bool {
    let starts = [
        "_raw_spin_",
        "_raw_read_",
        "_raw_write_",
        "__local_bh_",
        "trace_",
        "tracer_",
        "irq_enter",
    ];
    is_release(function) || starts.iter().any(|start| function.starts_with(start))
}

/// Returns true for functions that give back a spinning lock.
fn is_lock_release(function: &str) -> bool {
    let starts = ["_raw_spin_unlock", "_raw_read_unlock", "_raw_write_unlock"];
    starts.iter().any(|start| function.starts_with(start))
}

/// A place in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The function.
    pub function: &'a str,
    /// The function that called it.
    pub caller: Option<&'a str>,
    /// True if it had just given back a spinning lock.
    pub gave_lock_back: bool,
}

/// Returns the code that an interrupt interrupted, from the stack of its handler; `None` if that
/// was in user space.
pub fn interrupted(stack: &[String]) -> Option<Place<'_>> {
    let entry = stack.iter().position(|one| is_interrupt(one))?;
    place(below_entry(&stack[entry..]))
}

/// Leaves out an interrupt's entry at the top of a stack. On some architectures that is two
/// functions.
fn below_entry(stack: &[String]) -> &[String] {
    let own = stack.iter().take_while(|one| is_interrupt(one)).count();
    &stack[own..]
}

/// Returns true if the stack goes as far as the interrupt's entry, so that the interrupted code can
/// be determined.
pub fn has_entry(stack: &[String]) -> bool {
    stack.iter().any(|one| is_interrupt(one))
}

/// Returns true if a thread gave the CPU away when it went back to user space.
pub fn is_return_to_user(stack: &[String]) -> bool {
    let ends = ["exit_to_user_mode", "syscall_exit_to_user_mode"];
    stack
        .iter()
        .any(|one| ends.iter().any(|end| one.contains(end)))
}

/// Returns the code that gave the CPU away, from the stack of a switch.
pub fn switched(stack: &[String]) -> Option<Place<'_>> {
    let begin = stack.iter().position(|one| !is_scheduler(one))?;
    let rest = &stack[begin..];
    // Preempted at the end of an interrupt: what it had come to.
    match rest.iter().position(|one| is_interrupt(one)) {
        Some(entry) if entry < 4 => place(below_entry(&rest[entry..])),
        _ => place(rest),
    }
}

fn place(stack: &[String]) -> Option<Place<'_>> {
    let begin = stack.iter().position(|one| !is_release(one))?;
    let name = |place: usize| stack.get(place).map(String::as_str);
    Some(Place {
        function: name(begin)?,
        caller: name(begin + 1),
        gave_lock_back: stack[..begin].iter().any(|one| is_lock_release(one)),
    })
}
