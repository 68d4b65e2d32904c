//! Which network addresses a request on somebody else's behalf may go to.
//!
//! A model, a page or a hook file may name an address that only looks like the public web: this machine, a
//! neighbour, the cloud's metadata service. [`zone`] says what an address is, [`CheckedResolver`] gives a client
//! only addresses that were checked, and [`check_host`] checks those that are written out in a URL (no resolver is
//! asked for them). A client that uses both connects to nothing else.

use hookgate_core::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// A host of the public internet.
    Public,
    /// This machine or a network around it; the text says which kind. May be allowed.
    Private(&'static str),
    /// Never a host to be fetched from; the text says why. Cannot be allowed.
    Never(&'static str),
}

/// An address that must not be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The host as it was written.
    pub host: String,
    /// The address, and what it is.
    pub address: (IpAddr, &'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, what) = self.address;
        if self.host.trim_matches(['[', ']']) == address.to_string() {
            write!(f, "{address} is {what}, which is not allowed")
        } else {
            write!(f, "`{}` is at {address}, {what}, which is not allowed", self.host)
        }
    }
}

impl Error for Refused {}

const METADATA: &str = "a cloud metadata service";
const LOOPBACK: &str = "a loopback address";
const PRIVATE: &str = "a private address";
const LINK_LOCAL: &str = "a link-local address";
const SHARED: &str = "a carrier's shared address";
const TRANSLATED: &str = "an address that is translated on the way";
const SPECIAL: &str = "a special-purpose address";
const MANY: &str = "no address of one host";

/// Services that hand out a machine's credentials, wherever they are.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// What this address is. An IPv6 form of an IPv4 address is what that is.
pub fn zone(address: IpAddr) -> Zone {
    match address {
        IpAddr::V4(address) => zone_v4(address),
        IpAddr::V6(address) => zone_v6(address),
    }
}

fn zone_v4(address: Ipv4Addr) -> Zone {
    if METADATA_V4.contains(&address) {
        return Zone::Never(METADATA);
    }
    match address.octets() {
        [0, 0, 0, 0] | [127, ..] => Zone::Private(LOOPBACK),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Zone::Private(PRIVATE),
        [169, 254, ..] => Zone::Never(LINK_LOCAL),
        [100, 64..=127, ..] => Zone::Private(SHARED),
        [0, ..] | [192, 0, 0, _] | [198, 18..=19, ..] => Zone::Private(SPECIAL),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Zone::Private(SPECIAL),
        [192, 88, 99, _] => Zone::Private(TRANSLATED),
        [224..=255, ..] => Zone::Never(MANY),
        _ => Zone::Public,
    }
}

fn zone_v6(address: Ipv6Addr) -> Zone {
    if METADATA_V6.contains(&address) {
        return Zone::Never(METADATA);
    }
    if let Some(mapped) = address.to_ipv4_mapped() {
        return zone_v4(mapped);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Zone::Private(LOOPBACK),
        [0xff00..=0xffff, ..] => Zone::Never(MANY),
        [0xfc00..=0xfdff, ..] => Zone::Private(PRIVATE),
        [0xfe80..=0xfebf, ..] => Zone::Never(LINK_LOCAL),
        [0xfec0..=0xfeff, ..] => Zone::Private(PRIVATE),
        // NAT64, well-known and local, and the old IPv4-compatible form: the last 32 bits are an IPv4 address
        [0x64, 0xff9b, .., high, low] | [0, 0, 0, 0, 0, 0, high, low] => translated(high, low),
        // IPv4-translated (SIIT)
        [0, 0, 0, 0, 0xffff, 0, high, low] => translated(high, low),
        // 6to4
        [0x2002, high, low, ..] => translated(high, low),
        // Teredo and its neighbours
        [0x2001, 0..=0x1ff, ..] => Zone::Private(TRANSLATED),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x100, ..] | [0x5f00, ..] => Zone::Private(SPECIAL),
        // everything else outside of 2000::/3 is not given out
        [0x2000..=0x3fff, ..] => Zone::Public,
        _ => Zone::Private(SPECIAL),
    }
}

/// A metadata service behind a translation stays one; everything else is refused unless private ones are allowed.
fn translated(high: u16, low: u16) -> Zone {
    let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
    match zone_v4(Ipv4Addr::new(a, b, c, d)) {
        Zone::Never(what) => Zone::Never(what),
        Zone::Public | Zone::Private(_) => Zone::Private(TRANSLATED),
    }
}

/// Why this address must not be connected to, if it must not.
fn objection(address: IpAddr, allow_private: bool) -> Option<&'static str> {
    match zone(address) {
        Zone::Public => None,
        Zone::Private(_) if allow_private => None,
        Zone::Private(what) | Zone::Never(what) => Some(what),
    }
}

/// Checks the host of a URL where it is an address, in the spelling to which URL parsers bring it. A name is fine
/// here: the resolver checks what it stands for.
///
/// # Errors
/// The address is not allowed.
pub fn check_host(host: &str, allow_private: bool) -> Result<(), Refused> {
    let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() else { return Ok(()) };
    match objection(address, allow_private) {
        None => Ok(()),
        Some(what) => Err(Refused { host: host.to_owned(), address: (address, what) }),
    }
}

/// Looks the addresses of a name up. Tests bring their own; it is asked for no written address.
pub trait Lookup: Send + Sync + fmt::Debug {
    /// All addresses of this name.
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A resolver with the answers that are not allowed taken out. An answer with nothing left is an error with a
/// [`Refused`] inside.
#[derive(Debug, Clone)]
pub struct CheckedResolver {
    /// Whether private addresses may be connected to.
    pub allow_private: bool,
    /// Who is asked.
    pub lookup: Arc<dyn Lookup>,
}

impl CheckedResolver {
    /// The system's resolver, checked.
    pub fn system(allow_private: bool) -> CheckedResolver {
        CheckedResolver { allow_private, lookup: Arc::new(SystemLookup) }
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let CheckedResolver { allow_private, lookup } = self.clone();
        Box::pin(async move {
            let found = lookup.lookup(name.as_str()).await?;
            let allowed = keep_allowed(name.as_str(), found, allow_private)?;
            Ok(Box::new(allowed.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// The addresses of a name that may be connected to.
///
/// # Errors
/// There are addresses, and none of them is allowed.
pub fn keep_allowed(host: &str, mut found: Vec<IpAddr>, allow_private: bool) -> Result<Vec<IpAddr>, Refused> {
    let mut refused = None;
    found.retain(|address| match objection(*address, allow_private) {
        None => true,
        Some(what) => {
            refused = Some(Refused { host: host.to_owned(), address: (*address, what) });
            false
        }
    });
    match refused {
        Some(refused) if found.is_empty() => Err(refused),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[(&str, Zone)] = &[
        ("93.184.215.14", Zone::Public),
        ("8.8.8.8", Zone::Public),
        ("172.15.0.1", Zone::Public),
        ("172.32.0.1", Zone::Public),
        ("100.63.255.255", Zone::Public),
        ("100.128.0.1", Zone::Public),
        ("192.0.1.1", Zone::Public),
        ("223.255.255.255", Zone::Public),
        ("2606:4700::1111", Zone::Public),
        ("2a00:1450:4001::1", Zone::Public),
        ("::ffff:8.8.8.8", Zone::Public),
        ("127.0.0.1", Zone::Private(LOOPBACK)),
        ("127.255.255.254", Zone::Private(LOOPBACK)),
        ("0.0.0.0", Zone::Private(LOOPBACK)),
        ("0.1.2.3", Zone::Private(SPECIAL)),
        ("10.0.0.1", Zone::Private(PRIVATE)),
        ("172.16.0.1", Zone::Private(PRIVATE)),
        ("172.31.255.255", Zone::Private(PRIVATE)),
        ("192.168.1.1", Zone::Private(PRIVATE)),
        ("169.254.1.1", Zone::Never(LINK_LOCAL)),
        ("100.64.0.1", Zone::Private(SHARED)),
        ("100.127.255.255", Zone::Private(SHARED)),
        ("192.0.0.192", Zone::Private(SPECIAL)),
        ("192.0.2.1", Zone::Private(SPECIAL)),
        ("198.18.0.1", Zone::Private(SPECIAL)),
        ("198.19.255.255", Zone::Private(SPECIAL)),
        ("203.0.113.9", Zone::Private(SPECIAL)),
        ("192.88.99.1", Zone::Private(TRANSLATED)),
        ("169.254.169.254", Zone::Never(METADATA)),
        ("169.254.170.2", Zone::Never(METADATA)),
        ("100.100.100.200", Zone::Never(METADATA)),
        ("168.63.129.16", Zone::Never(METADATA)),
        ("224.0.0.1", Zone::Never(MANY)),
        ("240.0.0.1", Zone::Never(MANY)),
        ("255.255.255.255", Zone::Never(MANY)),
        ("::", Zone::Private(LOOPBACK)),
        ("::1", Zone::Private(LOOPBACK)),
        ("::ffff:127.0.0.1", Zone::Private(LOOPBACK)),
        ("::ffff:10.0.0.1", Zone::Private(PRIVATE)),
        ("::ffff:169.254.169.254", Zone::Never(METADATA)),
        ("::127.0.0.1", Zone::Private(TRANSLATED)),
        ("::ffff:0:127.0.0.1", Zone::Private(TRANSLATED)),
        ("64:ff9b::7f00:1", Zone::Private(TRANSLATED)),
        ("64:ff9b::808:808", Zone::Private(TRANSLATED)),
        ("64:ff9b::a9fe:a9fe", Zone::Never(METADATA)),
        ("64:ff9b:1::a00:1", Zone::Private(TRANSLATED)),
        ("2002:7f00:1::", Zone::Private(TRANSLATED)),
        ("2002:a9fe:a9fe::1", Zone::Never(METADATA)),
        ("2001::1", Zone::Private(TRANSLATED)),
        ("2001:db8::1", Zone::Private(SPECIAL)),
        ("3fff::1", Zone::Private(SPECIAL)),
        ("100::1", Zone::Private(SPECIAL)),
        ("fc00::1", Zone::Private(PRIVATE)),
        ("fd12:3456::1", Zone::Private(PRIVATE)),
        ("fd00:ec2::254", Zone::Never(METADATA)),
        ("fd20:ce::254", Zone::Never(METADATA)),
        ("fe80::1", Zone::Never(LINK_LOCAL)),
        ("febf::1", Zone::Never(LINK_LOCAL)),
        ("fec0::1", Zone::Private(PRIVATE)),
        ("ff02::1", Zone::Never(MANY)),
        ("4000::1", Zone::Private(SPECIAL)),
    ];

    #[test]
    fn every_address_has_its_zone() {
        for (address, expected) in TABLE {
            assert_eq!(zone(address.parse().unwrap()), *expected, "{address}");
        }
    }

    #[test]
    fn odd_spellings_are_seen_through() {
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "[::ffff:127.0.0.1]",
            "①②⑦.0.0.1",
            "%31%32%37.0.0.1",
            "0",
            "[::]",
        ] {
            let url = reqwest::Url::parse(&format!("http://{host}/")).unwrap();
            let host = url.host_str().unwrap();
            assert!(check_host(host, false).is_err(), "{host}");
            assert_eq!(check_host(host, true), Ok(()), "{host}");
        }
        assert!(check_host("169.254.169.254", true).is_err());
        assert_eq!(check_host("example.com", false), Ok(()));
    }

    #[test]
    fn answers_of_the_resolver_are_filtered() {
        let found = |texts: &[&str]| -> Vec<IpAddr> { texts.iter().map(|a| a.parse().unwrap()).collect() };
        let mixed = found(&["10.0.0.1", "8.8.8.8"]);
        assert_eq!(keep_allowed("x.test", mixed, false), Ok(found(&["8.8.8.8"])));
        let error = keep_allowed("x.test", found(&["10.0.0.1"]), false).unwrap_err();
        assert_eq!(error.to_string(), "`x.test` is at 10.0.0.1, a private address, which is not allowed");
        assert_eq!(keep_allowed("x.test", found(&[]), false), Ok(vec![]));
        assert!(keep_allowed("x.test", found(&["169.254.169.254"]), true).is_err());
    }
}
