// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scope's eye: a QEMU TCG plugin that records which instructions ran in a window.
//!
//! This crate only connects QEMU and [`punctual_trace::Watcher`], which decides what is watched and
//! writes it down.

mod api;
mod entry;
mod own;
mod ram;
mod turn;
