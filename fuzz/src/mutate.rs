// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small damage to sound bytes: what is still nearly right gets furthest into a parser.

use fastrand::Rng;

/// No input is longer.
const LENGTH_MAX: usize = 1 << 16;

/// Numbers at which code goes wrong.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "2",
    "255",
    "65536",
    "4294967295",
    "1099511627776",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e308",
    "99999999999999999999999",
];

/// One of the seeds with one to eight changes.
pub fn mutate(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seeds[rng.usize(..seeds.len())].clone();
    for _ in 0..rng.usize(1..=8) {
        change(&mut bytes, seeds, rng);
    }
    bytes.truncate(LENGTH_MAX);
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.usize(..=bytes.len());
    let part = part(bytes.len(), rng);
    match rng.u8(..9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.u8(..8),
        1 if at < bytes.len() => bytes[at] = rng.u8(..),
        2 => bytes.insert(at, rng.u8(..)),
        3 => drop(bytes.drain(part)),
        4 => bytes.truncate(at),
        5 => {
            let again = bytes[part].to_vec();
            bytes.splice(at..at, again);
        }
        6 => {
            let other = &seeds[rng.usize(..seeds.len())];
            let theirs = other[self::part(other.len(), rng)].to_vec();
            bytes.splice(at..at, theirs);
        }
        7 => replace_number(bytes, at, rng),
        _ => replace_word(bytes, at, rng),
    }
}

/// Some part of so many bytes, more often a short one.
fn part(length: usize, rng: &mut Rng) -> std::ops::Range<usize> {
    let start = rng.usize(..=length);
    let most = if rng.bool() { 8 } else { 1024 };
    start..start + rng.usize(..=most.min(length - start))
}

/// Puts another number in place of the first one in text behind `at`.
fn replace_number(bytes: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let Some(start) = bytes[at..]
        .iter()
        .position(is_digit)
        .map(|found| at + found)
    else {
        return;
    };
    let length = bytes[start..]
        .iter()
        .take_while(|byte| is_digit(byte))
        .count();
    let number = NUMBERS[rng.usize(..NUMBERS.len())];
    bytes.splice(start..start + length, number.bytes());
}

/// Overwrites two, four or eight bytes with a number in binary.
fn replace_word(bytes: &mut [u8], at: usize, rng: &mut Rng) {
    let numbers = [0, 1, u64::MAX, u64::MAX >> 1, 1 << 31, 1 << 20, rng.u64(..)];
    let number = numbers[rng.usize(..numbers.len())].to_le_bytes();
    let length = 1 << rng.usize(1..=3);
    if let Some(place) = bytes.get_mut(at..at + length) {
        place.copy_from_slice(&number[..length]);
    }
}
