// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual-wire echo`: the other end of the probe `packet` on another machine. It sends back
//! whatever frames, datagrams and connections bring, from threads with a real-time priority.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use anyhow::{Context as _, Result, ensure};
use lexopt::{Arg, Parser};
use punctual_model::{CpuId, Reason};

use crate::network::{ETHERTYPE, PORTS};
use crate::probes::packet::stamped;
use crate::rt;
use crate::sys::net;
use crate::sys::sched::Policy;
use crate::threads;

const HELP: &str = "\
The other end of the probe `packet` on another machine: sends frames back.

Usage: punctual-wire echo [OPTIONS]

  --priority N   SCHED_FIFO priority of the threads that answer (default 81)
  --cpu N        the CPU that they run on (default 0)
  --help         this text

Raw frames of type 0x88B5, and those of kind = \"ptp\", come back on every
interface, datagrams and connections to port 20998 on every address. Until
Ctrl-C. Needs root, or CAP_NET_RAW and CAP_SYS_NICE.

Example, with the other machine's address in the measuring machine's suite:
  punctual-wire echo --cpu 1 &
  punctual run --bench host --probe packet -p kind=udp -p peer=192.0.2.7
";

/// The longest frame, datagram or piece of a connection that comes back.
const ROOM: usize = 65_536;

#[derive(Clone, Copy, Debug)]
struct Options {
    priority: u8,
    cpu: CpuId,
}

/// Runs it, until an error.
pub fn run(arguments: &mut Parser) -> Result<()> {
    let mut options = Options {
        priority: 81,
        cpu: CpuId(0),
    };
    while let Some(given) = arguments.next()? {
        let number = |arguments: &mut Parser| -> Result<u32> {
            let text = arguments.value()?.to_string_lossy().into_owned();
            text.parse()
                .with_context(|| format!("expected a number, found {text}"))
        };
        match given {
            Arg::Long("priority") => {
                let priority = number(arguments)?;
                ensure!(
                    (1..=99).contains(&priority),
                    "--priority {priority}: expected 1 to 99"
                );
                options.priority = priority as u8;
            }
            Arg::Long("cpu") => options.cpu = CpuId(number(arguments)?),
            Arg::Short('h') | Arg::Long("help") => {
                return Ok(io::stdout().write_all(HELP.as_bytes())?);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    answer(options)
}

/// Opens all sockets before the first thread waits, so that what is printed holds.
fn answer(options: Options) -> Result<()> {
    let place = (Ipv4Addr::UNSPECIFIED, PORTS[1]);
    let datagrams = UdpSocket::bind(place).with_context(|| format!("UDP port {}", PORTS[1]))?;
    let listener = TcpListener::bind(place).with_context(|| format!("TCP port {}", PORTS[1]))?;
    let frames = net::frames_of_all(ETHERTYPE).context("raw frames")?;
    let stamped = net::frames_of_all(stamped::ETHERTYPE).context("raw frames")?;
    // Messages of clocks are not its own.
    stamped::only_own(&stamped).context("SO_ATTACH_FILTER")?;
    let prepared = move || -> Result<(), Reason> {
        rt::lock_memory()?;
        rt::pin(options.cpu)?;
        rt::schedule(Policy::Fifo, options.priority)
    };
    // What it lacks is told before it says that it answers.
    threads::alone(prepared).map_err(|reason| anyhow::anyhow!("{reason}"))?;
    let ended: Result<(), Reason> = std::thread::scope(|scope| {
        let lives: [Box<dyn FnOnce() -> io::Result<()> + Send + '_>; 4] = [
            Box::new(|| echo_frames(&frames)),
            Box::new(|| echo_frames(&stamped)),
            Box::new(|| echo_datagrams(&datagrams)),
            Box::new(|| echo_connections(&listener)),
        ];
        let live = |life: Box<dyn FnOnce() -> io::Result<()> + Send + '_>| {
            prepared()?;
            life().map_err(|error| error.to_string().into())
        };
        let threads = threads::start_all(scope, None, lives, live)?;
        eprintln!(
            "punctual-wire: echo at priority {} on {}: raw frames, UDP and TCP port {}",
            options.priority, options.cpu, PORTS[1]
        );
        threads.into_iter().try_for_each(|thread| thread.join()?)
    });
    ended.map_err(|reason| anyhow::anyhow!("{reason}"))
}

fn echo_frames(socket: &UdpSocket) -> io::Result<()> {
    const ADDRESS: usize = 6;
    let mut room = vec![0; ROOM];
    loop {
        let (length, mut from) = net::frame_from(socket, &mut room)?;
        // What this machine sends itself on other interfaces comes by here, too.
        if from.sll_pkttype == libc::PACKET_OUTGOING || length < 2 * ADDRESS {
            continue;
        }
        let (to, rest) = room.split_at_mut(ADDRESS);
        to.swap_with_slice(&mut rest[..ADDRESS]);
        from.sll_halen = ADDRESS as u8;
        // An interface that was switched off meanwhile: the frame is lost.
        let _ = net::send_frame(socket, &room[..length], &from);
    }
}

fn echo_datagrams(socket: &UdpSocket) -> io::Result<()> {
    let mut room = vec![0; ROOM];
    loop {
        let (length, from) = socket.recv_from(&mut room)?;
        let _ = socket.send_to(&room[..length], from);
    }
}

/// One connection after another: while one is measured there is no other.
fn echo_connections(listener: &TcpListener) -> io::Result<()> {
    let mut room = vec![0; ROOM];
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        while let Ok(length @ 1..) = stream.read(&mut room) {
            if stream.write_all(&room[..length]).is_err() {
                break;
            }
        }
    }
}
