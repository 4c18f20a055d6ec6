//! What counts as one address. Knows nothing of proxies: the edge has found out
//! who the peer is.

use std::net::{IpAddr, Ipv6Addr};

/// The key of an address: an IPv4 address itself (an IPv4-mapped one too), and the
/// /64 of an IPv6 address, because that much is handed to a single customer.
pub fn address_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}
