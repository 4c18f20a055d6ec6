//! Which addresses may be connected to. What is not known to be public is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::IpNet;

/// How far a client may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Public addresses, and `outgoing.allow_networks`.
    Public,
    /// Private, shared and loopback addresses too. Link-local ones, where clouds
    /// keep their metadata, need `outgoing.allow_networks` even so.
    Private,
}

/// The one decision on an address.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    reach: Reach,
    allow: Arc<[IpNet]>,
}

impl Guard {
    pub(super) fn new(reach: Reach, allow: Arc<[IpNet]>) -> Self {
        Self { reach, allow }
    }

    pub(super) fn permits(&self, address: IpAddr) -> bool {
        let address = plain(address);
        self.allow.iter().any(|network| network.contains(&address))
            || match scope(address) {
                Scope::Public => true,
                Scope::Private => self.reach == Reach::Private,
                Scope::Other => false,
            }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Reachable from the whole internet.
    Public,
    /// Within an organisation or a host.
    Private,
    /// Everything else: link-local, multicast, documentation, tunnels, reserved.
    Other,
}

/// The IPv4 address where one is written as IPv6: mapped (RFC 4291 §2.5.5.2) and
/// NAT64 (RFC 6052 §2.1) reach the very same host.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let mapped = v6.to_ipv4_mapped();
    let nat64 = || match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        _ => None,
    };
    mapped.or_else(nat64).map_or(address, IpAddr::V4)
}

fn scope(address: IpAddr) -> Scope {
    match address {
        IpAddr::V4(v4) => scope_v4(v4),
        IpAddr::V6(v6) => scope_v6(v6),
    }
}

/// After the IANA special-purpose address registry.
fn scope_v4(address: Ipv4Addr) -> Scope {
    match address.octets() {
        [10 | 127, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [100, 64..=127, ..]
        | [198, 18 | 19, ..] => Scope::Private,
        [0 | 224..=255, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Scope::Other,
        _ => Scope::Public,
    }
}

/// Only what is assigned to the internet is public: `2000::/3` without the parts
/// that are tunnels (Teredo, 6to4), documentation or protocol assignments.
fn scope_v6(address: Ipv6Addr) -> Scope {
    if address.is_loopback() || address.is_unique_local() {
        return Scope::Private;
    }
    match address.segments() {
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => Scope::Other,
        [0x2000..=0x3fff, ..] => Scope::Public,
        _ => Scope::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(reach: Reach, allow: &[&str]) -> Guard {
        Guard::new(
            reach,
            allow.iter().map(|net| net.parse().unwrap()).collect(),
        )
    }

    #[test]
    fn public_addresses_are_permitted() {
        for address in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "198.20.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
        ] {
            let address = address.parse().unwrap();
            assert!(guard(Reach::Public, &[]).permits(address), "{address}");
        }
    }

    #[test]
    fn private_addresses_need_a_setting_in_whatever_form_they_come() {
        for address in [
            "127.0.0.1",
            "127.255.255.254",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "198.18.0.1",
            "::1",
            "fc00::1",
            "fd00:ec2::254",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::7f00:1",
        ] {
            let address = address.parse().unwrap();
            assert!(!guard(Reach::Public, &[]).permits(address), "{address}");
            assert!(guard(Reach::Private, &[]).permits(address), "{address}");
        }
    }

    #[test]
    fn what_no_service_lives_at_is_refused_even_to_a_private_reach() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "192.0.0.192",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "192.88.99.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::7f00:1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a00:1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "100::1",
            "4000::1",
        ] {
            let address = address.parse().unwrap();
            assert!(!guard(Reach::Public, &[]).permits(address), "{address}");
            assert!(!guard(Reach::Private, &[]).permits(address), "{address}");
        }
    }

    #[test]
    fn an_allowed_network_is_permitted_and_nothing_beside_it() {
        let guard = guard(
            Reach::Public,
            &["10.1.0.0/16", "169.254.169.254/32", "fd00::/8"],
        );
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "169.254.169.254", "fd12::1"] {
            assert!(guard.permits(address.parse().unwrap()), "{address}");
        }
        for address in ["10.2.0.1", "169.254.169.253", "fc00::1"] {
            assert!(!guard.permits(address.parse().unwrap()), "{address}");
        }
    }
}
