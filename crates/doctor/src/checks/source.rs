// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources of the checks.

/// The configuration that the kernel's documentation expects of a real-time kernel (2026-08).
pub const KERNEL_CONFIGURATION: &str =
    "https://docs.kernel.org/next/core-api/real-time/kernel-configuration.html";
/// The same documentation on hardware and firmware.
pub const HARDWARE: &str = "https://docs.kernel.org/next/core-api/real-time/hardware.html";
/// The kernel's detector of time that the firmware takes.
pub const HWLAT: &str = "https://docs.kernel.org/trace/hwlat_detector.html";
/// Boot arguments.
pub const KERNEL_PARAMETERS: &str = "https://docs.kernel.org/admin-guide/kernel-parameters.html";
/// Control groups and real time.
pub const RT_GROUP: &str = "https://github.com/LinuxCNC/linuxcnc/issues/2821";
/// Quotas of CPU time.
pub const CFS_BANDWIDTH: &str = "https://docs.kernel.org/scheduler/sched-bwc.html";
/// Sources of time.
pub const TIMEKEEPING: &str = "https://docs.kernel.org/timers/timekeeping.html";
/// tuned's profile `realtime`.
pub const TUNED_REALTIME: &str =
    "https://github.com/redhat-performance/tuned/blob/master/profiles/realtime/tuned.conf";
/// Parent of [`TUNED_REALTIME`].
pub const TUNED_NETWORK_LATENCY: &str =
    "https://github.com/redhat-performance/tuned/blob/master/profiles/network-latency/tuned.conf";
/// Parent of [`TUNED_NETWORK_LATENCY`].
pub const TUNED_LATENCY: &str = "https://github.com/redhat-performance/tuned/blob/master/profiles/latency-performance/tuned.conf";
/// tuned's profile `cpu-partitioning`.
pub const TUNED_PARTITIONING: &str =
    "https://github.com/redhat-performance/tuned/blob/master/profiles/cpu-partitioning/tuned.conf";
/// The checks of rtcqs 0.6.7.
pub const RTCQS: &str = "https://codeberg.org/rtcqs/rtcqs";
/// On another thread of the highest priority.
pub const FIFO_99: &str = "https://github.com/ros-realtime/ros-realtime-rpi4-image/issues/30";
/// On a kernel that was only called -rt.
pub const RT_NAME: &str = "https://github.com/kdoren/linux/issues/1";
/// The fair server replaces throttling (Linux 6.12).
pub const FAIR_SERVER: &str =
    "https://github.com/torvalds/linux/commit/5f6bd380c7bdbe10f7b4e8ddcceed60ce0714c6d";
/// Only two preemption models are left (Linux 7.0).
pub const PREEMPTION: &str =
    "https://github.com/torvalds/linux/commit/7dadeaa6e851e7d67733f3e24fc53ee107781d0f";
