// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seam: an architecture's own code is in its own file.

use std::path::{Path, PathBuf};

use punctual_model::Architecture;
use punctual_trace::{Block, Insn};

use super::Code;
use crate::blocks::Blocks;
use crate::decode::{Counted, Decoded, Holder, Op, Transfer};
use crate::masks::{Mask, Masking};
use crate::names::{CodeKind, Names};
use crate::symbols::Symbols;
use crate::user_symbols::UserSymbols;

/// Registers, instructions, and names of code that only one architecture's kernel has.
const OWN: &str = "rax rbx rcx rdx rsi rdi rsp rbp gs_base rflags cli sti popf hlt iretq sysret \
    rdtsc mnemonic iced_x86 retpoline pcpu_hot entry_SYSCALL_64 __switch_to_asm \
    x0 x1 x8 x9 x10 x19 x29 x30 xzr wzr sp_el0 elr_el1 daif daifset daifclr eret blr wfi svc \
    cntvct_el0 el1h_64_irq el0t_64_sync cpu_switch_to";
/// The prefixes of such names.
const BEGIN: [&str; 5] = ["asm_", "sysvec_", "native_", "__x86_", "el0t_"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let all = entries.flat_map(|path| {
        if path.is_dir() {
            sources(&path)
        } else {
            vec![path]
        }
    });
    all.collect()
}

/// Returns the words of a source that only one architecture has. Those of its tests do not count.
fn own_words(text: &str) -> Vec<&str> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_own = |word: &&str| {
        OWN.split_whitespace().any(|own| own == *word)
            || BEGIN.iter().any(|begin| word.starts_with(begin))
    };
    words.filter(is_own).collect()
}

#[test]
fn no_other_file_names_a_register_or_an_instruction() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut known = 0;
    for path in sources(&folder) {
        let text = std::fs::read_to_string(&path).unwrap();
        let found = own_words(&text);
        let within = path.strip_prefix(&folder).unwrap();
        if within.starts_with("arch") {
            known += found.len();
        } else if !within.components().any(|part| part.as_os_str() == "tests")
            && !within.ends_with("tests.rs")
        {
            assert_eq!(found, [] as [&str; 0], "{}", within.display());
        }
    }
    assert!(known > 20, "{known}: what is looked for is found in arch");
}

/// Decodes arm64 instructions, one after the other, from the start of this function on.
fn ops(function: &str, words: &[u32]) -> (Vec<(u32, Op)>, Transfer) {
    ops_behind(function, &[], words)
}

/// The same for a block to which others lead, of the same function from its start on.
fn ops_behind(function: &str, before: &[u32], words: &[u32]) -> (Vec<(u32, Op)>, Transfer) {
    let kallsyms = format!("ffff800080010000 T _text\nffff800080020000 t {function}\n");
    let symbols = Symbols::parse(Architecture::Arm64, &kallsyms).unwrap();
    let all = before.iter().chain(words).zip(0..);
    let mut all: Vec<Insn> = all
        .map(|(word, number)| Insn {
            address: 0xffff_8000_8002_0000 + 4 * number,
            bytes: word.to_le_bytes().to_vec(),
        })
        .collect();
    let (number, insns) = (0, all.split_off(before.len()));
    let decoded = Decoded::of(&Block { number, insns }, &all, &symbols);
    (decoded.ops, decoded.last)
}

fn flag(masking: Masking) -> Op {
    Op::Mask(Mask::Flag, masking)
}

/// Code of Debian's `_raw_spin_lock_irqsave` and `_raw_spin_unlock_irqrestore`, and a counter in
/// another structure, at the same place.
#[test]
fn what_arm64_masks_and_counts_is_seen_and_nothing_else() {
    let (locks, _) = ops(
        "_raw_spin_lock_irqsave",
        &[
            0xd53b_4233, // mrs x19, daif
            0xd503_43df, // msr daifset, #0x3
            0xd538_4102, // mrs x2, sp_el0
            0xb940_0841, // ldr w1, [x2, #8]
            0x1100_0421, // add w1, w1, #0x1
            0xb900_0841, // str w1, [x2, #8]
            0xb940_0e61, // ldr w1, [x19, #12]
            0x1100_0421, // add w1, w1, #0x1
            0xb900_0e61, // str w1, [x19, #12]
        ],
    );
    let up = Op::At(Holder::Register(2), Counted::Preempt(1));
    let expected = [
        (0, flag(Masking::Read)),
        (1, flag(Masking::Set)),
        (2, Op::Point(2)),
        (5, up),
    ];
    assert_eq!(locks, expected);
    let (unlocks, last) = ops(
        "_raw_spin_unlock_irqrestore",
        &[
            0xd51b_4221, // msr daif, x1
            0xd538_4101, // mrs x1, sp_el0
            0xf940_0420, // ldr x0, [x1, #8]
            0xd100_0400, // sub x0, x0, #0x1
            0xb900_0820, // str w0, [x1, #8]
            0xd65f_03c0, // ret
        ],
    );
    let down = Op::At(Holder::Register(1), Counted::Preempt(-1));
    assert_eq!(
        unlocks,
        [(0, flag(Masking::Restore)), (1, Op::Point(1)), (4, down)]
    );
    assert_eq!(last, Transfer::Return);
}

/// QEMU ends a block anywhere when a timer is due. Wherever that is, the same is seen.
#[test]
fn a_block_that_ends_anywhere_hides_nothing() {
    let lock = [
        0xd538_4102, // mrs x2, sp_el0
        0xb940_0841, // ldr w1, [x2, #8]
        0x1100_0421, // add w1, w1, #0x1
        0xb900_0841, // str w1, [x2, #8]
    ];
    let switch = [
        0xd281_840a, // mov x10, #0xc20
        0x8b0a_0008, // add x8, x0, x10
        0x9100_03e9, // mov x9, sp
        0xa881_5113, // stp x19, x20, [x8], #16
        0xa881_251d, // stp x29, x9, [x8], #16
    ];
    let leave = Op::LeaveStack(0xc30);
    let up = Op::At(Holder::Register(2), Counted::Preempt(1));
    let known: [(&str, &[u32], Op); 2] = [("any", &lock, up), ("cpu_switch_to", &switch, leave)];
    for (function, words, op) in known {
        for end in 1..words.len() {
            let (before, rest) = words.split_at(end);
            let (found, _) = ops_behind(function, before, rest);
            assert_eq!(
                found.last().map(|(_, op)| *op),
                Some(op),
                "{function}, {end}"
            );
        }
    }
    // Who jumps there comes with another register.
    assert_eq!(ops("any", &lock[3..]).0, []);
}

/// Code of `pipe_write`: much is between the load of the count and its store. A branch ends a block
/// everywhere, so that instructions before one may not have led here.
#[test]
fn a_count_is_stored_long_after_it_was_loaded() {
    let load = 0xb940_0822; // ldr w2, [x1, #8]
    let add = 0x1100_0442; // add w2, w2, #0x1
    let between = [0xaa04_03e5; 8]; // mov x5, x4
    let store = [0xb900_0822]; // str w2, [x1, #8]
    let up = Op::At(Holder::Register(1), Counted::Preempt(1));
    let before = [&[load, add], &between[..]].concat();
    assert_eq!(ops_behind("pipe_write", &before, &store).0, [(0, up)]);
    // cbnz, b.ne, bl, b, tbz, br, ret, svc
    for branch in [
        0x3500_0064,
        0x5400_0061,
        0x9400_0010,
        0x1400_0004,
        0x3600_0064,
        0xd61f_0000,
        0xd65f_03c0,
        0xd400_0001,
    ] {
        let before = [&[load, add], &between[..], &[branch]].concat();
        let (found, _) = ops_behind("pipe_write", &before, &store);
        assert_eq!(found, [], "{branch:x}");
    }
}

/// `__mutex_lock` of Debian's kernel 7.2 loads the count into the register that had the task.
/// Another register has the task, too.
#[test]
fn a_count_is_stored_by_another_register_than_it_was_loaded_by() {
    let mutex = [
        0xd538_4102, // mrs x2, sp_el0
        0xaa02_03e0, // mov x0, x2
        0xb940_0842, // ldr w2, [x2, #8]
        0x1100_0442, // add w2, w2, #0x1
        0xb900_0802, // str w2, [x0, #8]
    ];
    let up = Op::At(Holder::Register(0), Counted::Preempt(1));
    let expected = [(0, Op::Point(2)), (1, Op::Point(0)), (4, up)];
    assert_eq!(ops("__mutex_lock", &mutex).0, expected);
    for end in 3..mutex.len() {
        let (before, rest) = mutex.split_at(end);
        let (found, _) = ops_behind("__mutex_lock", before, rest);
        assert_eq!(found.last().map(|(_, op)| *op), Some(up), "{end}");
    }
    // What is not the task's is not its count.
    assert_eq!(ops("__mutex_lock", &mutex[2..]).0, []);
}

/// `d_alloc_parallel` of Debian's RT kernel keeps the task's place on its stack, and loads it into
/// a register that had it before.
#[test]
fn the_counts_place_may_be_on_the_stack() {
    let (kept, _) = ops(
        "d_alloc_parallel",
        &[
            0xd538_4100, // mrs x0, sp_el0
            0xf900_07e0, // str x0, [sp, #8]
            0xf900_0be2, // str x2, [sp, #16]
            0xa901_83e2, // stp x2, x0, [sp, #24]
        ],
    );
    let keeps = [(1, Op::Keep(8)), (3, Op::Keep(32))];
    assert_eq!(kept, [&[(0, Op::Point(0))], &keeps[..]].concat());
    let counted = |behind: u32| {
        let load = 0xf940_03e1 | (behind / 8) << 10; // ldr x1, [sp, #behind]
        // ldr w0, [x1, #8]; add w0, w0, #0x1; str w0, [x1, #8]
        ops(
            "d_alloc_parallel",
            &[load, 0xb940_0820, 0x1100_0400, 0xb900_0820],
        )
        .0
    };
    let up = |behind| (3, Op::At(Holder::Stack(behind), Counted::Preempt(1)));
    assert_eq!(counted(8), [up(8)]);
    assert_eq!(counted(16), [up(16)]);
    // Only one of them counts: the other is another structure's.
    let kallsyms = "ffff800080010000 T _text\nffff800080020000 t d_alloc_parallel\n";
    let symbols = Symbols::parse(Architecture::Arm64, kallsyms).unwrap();
    let programs = UserSymbols::default();
    let mut blocks = Blocks::new(Names::new(&symbols, &programs));
    let mut learn = |number, words: &[u32]| {
        let address = 0xffff_8000_8002_0000 + 0x100 * u64::from(number);
        let insns = words.iter().zip(0..).map(|(word, behind)| Insn {
            address: address + 4 * behind,
            bytes: word.to_le_bytes().to_vec(),
        });
        let insns = insns.collect();
        blocks.learn(&Block { number, insns });
        blocks.block(number).ops.clone()
    };
    assert_eq!(learn(0, &[0xd538_4100, 0xf900_07e0]), []);
    let count = [0xb940_0820, 0x1100_0400, 0xb900_0820];
    let from = |load: u32| [&[load], &count[..]].concat();
    assert_eq!(learn(1, &from(0xf940_07e1)), [(3, Op::Preempt(1))]);
    assert_eq!(learn(2, &from(0xf940_0be1)), []);
}

/// Code like that of RT's `__rt_mutex_slowlock_locked`: a register that has had the task's place
/// gets another one in the same block. An instruction that only compares gives it nothing.
#[test]
fn what_a_register_was_given_in_the_block_is_no_preemption_count() {
    let count = [
        0xb940_0861, // ldr w1, [x3, #8]
        0x1100_0421, // add w1, w1, #0x1
        0xb900_0861, // str w1, [x3, #8]
    ];
    let up = (2, Op::At(Holder::Register(3), Counted::Preempt(1)));
    assert_eq!(ops("any", &count).0, [up]);
    let behind = |first: u32| ops("any", &[&[first], &count[..]].concat()).0;
    // ldr x3, [x20, #16]; add x3, x20, #0x8; mov x3, x20; mrs x3, sctlr_el1
    for given in [0xf940_0a83, 0x9100_2283, 0xaa14_03e3, 0xd538_1003] {
        assert_eq!(behind(given), [], "{given:x}");
    }
    // ldr x3, [x20, x1]; ldxr x3, [x20]; ldar x3, [x20]; ldadd x1, x3, [x20]; ldr x3, literal;
    // cas x3, x1, [x20]
    let fetched = [
        0xf861_6a83,
        0xc85f_7e83,
        0xc8df_fe83,
        0xf821_0283,
        0x5800_0043,
    ];
    for given in fetched.into_iter().chain([0xc8a3_7e81]) {
        assert_eq!(behind(given), [], "{given:x}");
    }
    let up = (3, Op::At(Holder::Register(3), Counted::Preempt(1)));
    // str x3, [x20]; cmp x3, #0x0; ccmp x19, #0x0, #0x3, ne: its flags are the number 3; str x3,
    // [x20, x1]; stlr x3, [x20]; prfm pldl2strm, [x20, x1]
    for left in [
        0xf900_0283,
        0xf100_007f,
        0xfa40_1a63,
        0xf821_6a83,
        0xc89f_fe83,
        0xf8a1_6a83,
    ] {
        assert_eq!(behind(left), [up], "{left:x}");
    }
}

/// Behind `ttbr0` there is another structure's count where the kernel has no `ttbr0` there.
#[test]
fn where_an_arm64_kernel_counts_is_told_by_its_image() {
    let kallsyms = "ffff800080000000 T _text\nffff800080000080 t any\n";
    let ops = |image: &[u32], place: u32| {
        let mut symbols = Symbols::parse(Architecture::Arm64, kallsyms).unwrap();
        let image: Vec<u8> = image.iter().flat_map(|word| word.to_le_bytes()).collect();
        symbols.learn(&image);
        let code = [0xb940_0001, 0x1100_0421, 0xb900_0001];
        let code = [code[0] | place << 8, code[1], code[2] | place << 8];
        let insns = code.iter().zip(0..).map(|(word, number)| Insn {
            address: 0xffff_8000_8000_0080 + 4 * number,
            bytes: word.to_le_bytes().to_vec(),
        });
        let (number, insns) = (0, insns.collect());
        Decoded::of(&Block { number, insns }, &[], &symbols)
            .ops
            .len()
    };
    // mrs x2, sp_el0; ldr w1, [x2, #8]; add w1, w1, #0x1; str w1, [x2, #8]
    let image = [0xd538_4102, 0xb940_0841, 0x1100_0421, 0xb900_0841];
    assert_eq!([8, 16].map(|place| ops(&image, place)), [1, 0]);
    assert_eq!([8, 16, 24].map(|place| ops(&[], place)), [1, 1, 0]);
}

#[test]
fn a_mask_that_a_number_sets_is_known() {
    let first = |words: &[u32]| ops("el1_interrupt", words).0;
    // mov x1, #0xc0; msr daif, x1: of interrupts, not of debugging.
    assert_eq!(
        first(&[0xd280_1801, 0xd51b_4221]),
        [(1, flag(Masking::Set))]
    );
    // msr daif, xzr; msr daifclr, #0x3; msr daifset, #0x4: of errors only.
    let opened = [0, 1].map(|number| (number, flag(Masking::Clear)));
    assert_eq!(first(&[0xd51b_423f, 0xd503_43ff, 0xd503_44df]), opened);
    // wfi; mrs x0, cntvct_el0; mrs x30, cntvct_el0
    let others = [(0, Op::Halt), (1, Op::ReadClock)];
    assert_eq!(first(&[0xd503_207f, 0xd53b_e040, 0xd53b_e05e]), others);
}

/// `d_lru_del` of Debian's RT kernel counts down by a register. A loop separates that from the
/// place where the register gets its number.
#[test]
fn what_a_register_was_given_in_another_block_is_counted_by() {
    let (found, _) = ops("d_lru_del", &[0x9280_0003]); // mov x3, #-1
    assert_eq!(found, [(0, Op::Put(3, -1))]);
    let (found, _) = ops(
        "d_lru_del",
        &[
            0xf940_0401, // ldr x1, [x0, #8]
            0x8b03_0021, // add x1, x1, x3
            0xb900_0801, // str w1, [x0, #8]
        ],
    );
    assert_eq!(
        found,
        [(2, Op::At(Holder::Register(0), Counted::PreemptBy(3, true)))]
    );
}

/// `__local_bh_enable_ip` changes the count by an amount that is in a register, plus one.
#[test]
fn an_amount_in_a_register_is_no_number() {
    let (found, _) = ops(
        "__local_bh_enable_ip",
        &[
            0xd538_4102, // mrs x2, sp_el0
            0xb940_0840, // ldr w0, [x2, #8]
            0x4b01_0000, // sub w0, w0, w1
            0x1100_0400, // add w0, w0, #0x1
            0xb900_0840, // str w0, [x2, #8]
            0xb900_0c5f, // str wzr, [x2, #12]
        ],
    );
    let (by, needed) = (Counted::PreemptBy(1, false), Counted::NeedResched(true));
    let expected = [
        (0, Op::Point(2)),
        (4, Op::At(Holder::Register(2), by)),
        (5, Op::At(Holder::Register(2), needed)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn where_arm64_switches_threads_their_tasks_are_known() {
    let switch = [
        0xd281_840a, // mov x10, #0xc20
        0x8b0a_0008, // add x8, x0, x10
        0x9100_03e9, // mov x9, sp
        0xa881_5113, // stp x19, x20, [x8], #16
        0xa881_251d, // stp x29, x9, [x8], #16
        0xf900_011e, // str x30, [x8]
        0x8b0a_0028, // add x8, x1, x10
        0xa8c1_5113, // ldp x19, x20, [x8], #16
        0xa8c1_251d, // ldp x29, x9, [x8], #16
        0xd65f_03c0, // ret
    ];
    let (found, _) = ops("cpu_switch_to", &switch);
    assert_eq!(
        found,
        [(4, Op::LeaveStack(0xc30)), (8, Op::TakeStack(0xc30))]
    );
    assert_eq!(ops("another", &switch).0, []);
}

#[test]
fn where_arm64_goes_on_is_known() {
    let last = |word| ops("any", &[word]).1;
    let known = [
        (0x97ff_ffff, Transfer::Call),    // bl
        (0xd63f_0020, Transfer::Call),    // blr x1
        (0xd61f_0020, Transfer::On),      // br x1
        (0x17ff_ffff, Transfer::On),      // b
        (0xd65f_03c0, Transfer::Return),  // ret
        (0xd69f_03e0, Transfer::Iret),    // eret
        (0xd400_0001, Transfer::Syscall), // svc #0
        (0xd420_0000, Transfer::On),      // brk #0
    ];
    for (word, transfer) in known {
        assert_eq!(last(word), transfer, "{word:x}");
    }
}

/// The CPU comes in by itself at the tables, and not at the code to which they lead. A thread that
/// was never seen to take its task's place into a register is known by the kernel's file.
#[test]
fn entries_of_arm64_are_in_its_tables_and_its_image_tells_of_pointers() {
    let kallsyms = "ffff800080000000 T _text\nffff800080000040 t smpboot_thread_fn\n\
                    ffff800080010800 T vectors\nffff800080011288 t el1h_64_irq\n";
    let mut symbols = Symbols::parse(Architecture::Arm64, kallsyms).unwrap();
    let mut image = vec![0; 0x80];
    image[0x38..0x3c].copy_from_slice(b"ARM\x64");
    // mrs x21, sp_el0
    image[0x48..0x4c].copy_from_slice(&0xd538_4115_u32.to_le_bytes());
    symbols.learn(&image);
    assert_eq!(symbols.pointers(0xffff_8000_8000_0060), 1 << 21);
    assert_eq!(symbols.pointers(0xffff_8000_8000_0020), 0);
    let programs = UserSymbols::default();
    let mut names = Names::new(&symbols, &programs);
    let (interrupt, first) = names.at(0xffff_8000_8001_0a80, &[]);
    assert!(first);
    assert_eq!(names.name(interrupt).kind, CodeKind::Interrupt);
    assert_eq!(names.at(0xffff_8000_8001_0a84, &[]), (interrupt, false));
    assert_eq!(names.at(0xffff_8000_8001_1288, &[]), (interrupt, false));
    let (sync, _) = names.at(0xffff_8000_8001_0c00, &[]);
    assert_eq!(names.name(sync).kind, CodeKind::Exception);
    let call = names.entered(sync, true);
    assert_eq!(names.name(call).kind, CodeKind::Syscall);
    assert_eq!(names.entered(sync, false), sync);
}

#[test]
fn an_arm64_kernel_whose_ways_in_have_other_names_is_refused() {
    let code = Code::of(Architecture::Arm64);
    let told = |release| ((code.refusal)(release).is_some(), (code.must_save)(release));
    assert_eq!(told("6.12.117+deb12-arm64"), (false, false));
    assert_eq!(told("6.3.0"), (false, false));
    assert_eq!(told("6.1.0-56-rt-arm64"), (false, true));
    assert_eq!(told("5.15.170"), (false, true));
    assert_eq!(told("nonsense"), (true, true));
    assert!((code.refusal)("5.10.0-35-arm64").unwrap().contains("5.14"));
}

/// Code of Debian's kernels 6.1 and 6.12 for RT.
#[test]
fn a_mask_that_is_set_already_is_saved_where_the_image_shows_it() {
    let saves = |words: &[u32]| {
        let image: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        (Code::of(Architecture::Arm64).saves)(&image)
    };
    let code = [
        0xd503_201f, // nop
        0xd53b_4233, // mrs x19, daif
        0x1219_0260, // and w0, w19, #0x80
        0x3500_0060, // cbnz w0, the return
        0xd280_0c00, // mov x0, #0x60
        0xd503_43df, // msr daifset, #0x3
        0xd65f_03c0, // ret
    ];
    assert_eq!(saves(&code), [4]);
    // What is set elsewhere, and what is not kept: that is only looked at.
    let mut elsewhere = code.to_vec();
    elsewhere[5] = 0xd503_201f;
    assert!(saves(&elsewhere).is_empty());
    elsewhere.extend([0xd503_43df, 0xd65f_03c0]);
    elsewhere[3] = 0x3500_0080;
    assert_eq!(saves(&elsewhere), [4]);
    elsewhere[7] = 0x9400_0002; // bl, behind the return
    elsewhere.extend([0xd503_43df, 0xd65f_03c0]);
    assert_eq!(saves(&elsewhere), [4]);
    elsewhere[9] = 0xd503_201f;
    assert!(saves(&elsewhere).is_empty());
    // mrs x0, daif; mov w1, w0; str x0, [sp, #120]; and w0, w1, #0x80: kept on the stack.
    let mut stored = vec![0xd53b_4220, 0x2a00_03e1, 0xf900_3fe0, 0x1219_0020];
    stored.extend(&code[3..]);
    assert_eq!(saves(&stored), [0]);
    let looked_at = [
        0xd53b_4220, // mrs x0, daif
        0x3738_1640, // tbnz w0, #7, 0x492bc8
        0x2a02_03f5, // mov w21, w2
        0xd503_43df, // msr daifset, #0x3
    ];
    assert!(saves(&looked_at).is_empty());
    let overwritten = code.map(|word| {
        if word == 0xd53b_4233 {
            0xd53b_4220
        } else {
            word
        }
    });
    let overwritten = overwritten.map(|word| {
        if word == 0x1219_0260 {
            0x1219_0000
        } else {
            word
        }
    });
    assert!(saves(&overwritten).is_empty());
}

#[test]
fn where_the_file_begins_is_known_though_that_is_no_name_of_code() {
    let kallsyms = "ffff800008010000 T _stext\nffff800008010800 t schedule\n";
    let mut symbols = Symbols::parse(Architecture::Arm64, kallsyms).unwrap();
    let mut image = vec![0; 0x1_0880];
    image[0x38..0x3c].copy_from_slice(b"ARM\x64");
    let mut put = |at: usize, words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        image[at..at + bytes.len()].copy_from_slice(&bytes);
    };
    // mrs x19, sp_el0, which a call leaves; mrs x3, sp_el0 for the stack protector's number, and
    // mrs x2, sp_el0 to count: ldr x4, [x3, #1168]; ldr w1, [x2, #16].
    put(0x1_0804, &[0xd538_4113]);
    put(0x1_0810, &[0xd538_4103, 0xf942_4864]);
    put(0x1_0840, &[0xd538_4102, 0xb940_1041]);
    symbols.learn(&image);
    assert_eq!(symbols.pointers(0xffff_8000_0801_0820), 1 << 19 | 1 << 2);
}
