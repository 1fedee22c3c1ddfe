//! Instructions as time.

use punctual_model::Nanos;

/// How long an instruction takes in the guest's own time.
///
/// Each takes a fixed number of virtual nanoseconds, and the time stamp counter counts those.
/// The guest has measured how fast that counter is: at boot, off by a few millionths, and once
/// more and better in its second second. Its nanoseconds are longer or shorter by as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestClock {
    /// Virtual nanoseconds per instruction.
    pub ns_per_insn: u32,
    /// The counter's rate, as the guest takes it, in kHz.
    pub khz: u64,
}

/// The counter's real rate, in kHz: one a virtual nanosecond.
const REAL_KHZ: i128 = 1_000_000;

impl GuestClock {
    /// The last that the guest's console says of the counter; the real rate where it says
    /// nothing.
    pub fn of_console(console: &str, ns_per_insn: u32) -> Self {
        let khz = console.lines().rev().find_map(rate);
        let khz = khz.unwrap_or(REAL_KHZ as u64);
        Self { ns_per_insn, khz }
    }

    /// The time that so many instructions take, rounded to a nanosecond.
    pub fn time(self, instructions: u64) -> Nanos {
        let ticks = i128::from(instructions) * i128::from(self.ns_per_insn);
        let khz = i128::from(self.khz);
        Nanos(((ticks * REAL_KHZ + khz / 2) / khz) as i64)
    }

    /// How many instructions fit into a time.
    pub fn instructions(self, time: Nanos) -> u64 {
        let ticks = i128::from(time.0.max(0)) * i128::from(self.khz) / REAL_KHZ;
        (ticks / i128::from(self.ns_per_insn)) as u64
    }
}

/// The rate in a line of the kernel's, in kHz: three digits follow the point.
fn rate(line: &str) -> Option<u64> {
    let said = [
        "tsc: Detected ",
        "tsc: Refined TSC clocksource calibration: ",
    ];
    let rest = said
        .iter()
        .find_map(|said| Some(line.split_once(said)?.1))?;
    let (whole, part) = rest.split_once(" MHz")?.0.split_once('.')?;
    format!("{whole}{part}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_nanoseconds_are_those_of_its_clock() {
        let console = "[    0.0] tsc: Fast TSC calibration using PIT\n\
            [    0.000000] tsc: Detected 999.993 MHz processor\n";
        let scale = GuestClock::of_console(console, 2);
        assert_eq!(scale.khz, 999_993);
        assert_eq!(scale.time(1_000_000), Nanos(2_000_014));
        assert_eq!(scale.instructions(Nanos(2_000_014)), 999_999);
        let refined = "[    1.8] tsc: Refined TSC clocksource calibration: 999.999 MHz\n";
        let scale = GuestClock::of_console(&format!("{console}{refined}"), 1);
        assert_eq!(scale.khz, 999_999);
        assert_eq!(GuestClock::of_console("", 1).time(7), Nanos(7));
    }
}
