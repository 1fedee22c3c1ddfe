// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's wire: two network cards that are connected, each with a network namespace of its own,
//! as two machines would have.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use punctual_model::Nanos;
use punctual_model::network::{FAR, NAMESPACE, NEAR};

use crate::init;
use crate::sys::{net, time};
use crate::threads::{self, Started};

/// The directory where the bench puts the driver, if the guest is to have a wire.
const MODULES: &str = "/lib/modules/network";

/// The directory where namespaces have names, as in ip-netns(8).
const NAMESPACES: &str = "/run/netns";

/// The kernel's switch for IPv6. With IPv6, each end would send frames by itself when it comes up.
const IPV6_OFF: &str = "/proc/sys/net/ipv6/conf/default/disable_ipv6";

/// The groups that may send echo requests by an ICMP socket: the guest's only group.
const PINGS: &str = "/proc/sys/net/ipv4/ping_group_range";

/// Addresses in the block that is reserved for tests of network devices (RFC 2544).
const NEAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const FAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// The time within which the cards must agree on a speed, or they count as not connected.
const PATIENCE: Nanos = Nanos::from_millis(30_000);
const POLL: Nanos = Nanos::from_millis(10);

/// The reason why there is no wire although the bench has brought its driver along.
static FAILURE: OnceLock<String> = OnceLock::new();

/// Loads the driver, if there is one, and switches both ends on. If that fails, the probes
/// that need the wire report it.
pub fn set_up() {
    if let (true, Err(error)) = (Path::new(MODULES).is_dir(), join()) {
        eprintln!("punctual-target: no wire: {error}");
        FAILURE.get_or_init(|| error);
    }
}

/// Returns the reason why the guest's wire could not be set up, if it failed.
pub fn failure() -> Option<&'static str> {
    FAILURE.get().map(String::as_str)
}

fn join() -> Result<(), String> {
    switch_off_ipv6();
    _ = fs::write(PINGS, "0 0");
    init::load_modules(Path::new(MODULES))?;
    let failed = |error: io::Error| format!("the cards cannot be set up: {error}");
    for (number, name) in [NEAR, FAR].into_iter().enumerate() {
        net::rename(&format!("eth{number}"), name).map_err(failed)?;
    }
    let namespace = make_namespace().map_err(failed)?;
    net::move_to(FAR, &namespace).map_err(failed)?;
    net::set_address(NEAR, NEAR_ADDRESS).map_err(failed)?;
    net::switch_on(NEAR).map_err(failed)?;
    within(NAMESPACE, || {
        net::set_address(FAR, FAR_ADDRESS)?;
        net::switch_on(FAR)?;
        wait_for(FAR)
    })
    .map_err(failed)?;
    wait_for(NEAR).map_err(failed)
}

/// Runs `body` in the network namespace of this name; in the thread's own, if the name is empty.
pub fn within<T: Send>(
    namespace: &str,
    body: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    if namespace.is_empty() {
        return body();
    }
    let place = place(namespace);
    let entered = || {
        net::enter(&File::open(place)?)?;
        body()
    };
    in_a_thread(entered)
}

fn place(namespace: &str) -> PathBuf {
    Path::new(NAMESPACES).join(namespace)
}

/// Runs `body` in a thread of its own, which keeps the namespace that it enters until it ends.
fn in_a_thread<T: Send>(body: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let ended = thread::scope(|scope| threads::start(scope, body).and_then(Started::join));
    ended.map_err(|reason| io::Error::other(reason.to_string()))?
}

fn make_namespace() -> io::Result<File> {
    fs::create_dir_all(NAMESPACES)?;
    let place = place(NAMESPACE);
    File::create(&place)?;
    in_a_thread(|| {
        net::enter_new(&place)?;
        switch_off_ipv6();
        net::switch_on_loopback()?;
        File::open(&place)
    })
}

/// Switches IPv6 off. A kernel may have none.
fn switch_off_ipv6() {
    _ = fs::write(IPV6_OFF, "1");
}

fn wait_for(end: &str) -> io::Result<()> {
    let until = time::now() + PATIENCE;
    while !net::is_joined(end)? {
        if time::now() > until {
            let text = format!(
                "{end} has found no other end in {} s",
                PATIENCE.0 / 1_000_000_000
            );
            return Err(io::Error::other(text));
        }
        time::sleep(POLL);
    }
    Ok(())
}

/// The type of raw frames: one that IEEE 802 reserves for experiments.
pub const ETHERTYPE: u16 = 0x88b5;
/// The ports of datagrams and connections: of the sending end, and of the receiving one.
pub const PORTS: [u16; 2] = [20_997, 20_998];

/// The commands that make a pair of interfaces if there is none.
pub const MAKE_A_PAIR: &str = "ip netns add wire && \
    ip link add wire0 type veth peer name wire1 netns wire && \
    ip addr add 198.18.0.1/24 dev wire0 && ip link set wire0 up && \
    ip -n wire addr add 198.18.0.2/24 dev wire1 && ip -n wire link set wire1 up";
