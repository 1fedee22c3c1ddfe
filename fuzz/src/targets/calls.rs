// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of system calls, and the kinds of calls that users add.

use std::sync::LazyLock;

use punctual_calls::Grammar;

use super::{text, texts};
use crate::Target;

static OWN: LazyLock<Grammar> = LazyLock::new(Grammar::default);

/// Kinds of calls.
pub const GRAMMAR: Target = Target {
    name: "grammar",
    seeds: || {
        texts(&[
            "[[call]]\nname = \"fork\"\ndoes = \"\"\nsyscall = \"fork\"\nblock = true\n\
             times = [1, 256]\n[[call]]\nname = \"ioctl\"\ndoes = \"\"\nsyscall = \"ioctl\"\n\
             args = [\"#file\", 7, { u64 = [\"index*8\", 1] }]\nsize = [1, 64]\n\
             takes = \"file\"\nroot = true\n",
        ])
    },
    run: |bytes| Grammar::parse(&text(bytes)).is_ok(),
};

/// A program, which is read again as it was written.
pub const PROGRAM: Target = Target {
    name: "program",
    seeds: || {
        texts(&[
            "semaphores 16384; semaphore-up *1024",
            "create; fork *16 { touch 4096; sleep 1024 }; reap",
        ])
    },
    run: |bytes| {
        let Ok(program) = OWN.program(&text(bytes)) else {
            return false;
        };
        let again = OWN.program(&program.to_string());
        assert_eq!(again.as_ref(), Ok(&program));
        true
    },
};
