//! Whose address a request is from: the peer's, or what trusted proxies say.

use std::net::IpAddr;

use axum::http::HeaderMap;

use super::Base;

/// The caller's address: from the right of `X-Forwarded-For`, the first that is
/// no trusted proxy (RFC 7239 §8.1: what stands left of it can be forged).
pub(super) fn caller(base: &Base, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
    let peer = peer.to_canonical();
    if !base.trusts(peer) {
        return peer;
    }
    let mut address = peer;
    let lines: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|line| line.to_str().ok())
        .collect();
    for hop in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        let Ok(hop) = hop.trim().parse::<IpAddr>() else {
            break;
        };
        address = hop.to_canonical();
        if !base.trusts(address) {
            break;
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_hop_is_not_believed() {
        let base = Base::new(
            None,
            "127.0.0.1:1".parse().unwrap(),
            vec!["10.0.0.0/8".parse().unwrap()],
        );
        let of = |peer: &str, forwarded: &str| {
            let headers: HeaderMap = [(
                "x-forwarded-for".parse().unwrap(),
                forwarded.parse().unwrap(),
            )]
            .into_iter()
            .collect();
            caller(&base, &headers, peer.parse().unwrap()).to_string()
        };
        assert_eq!(of("10.0.0.9", "1.2.3.4, 198.51.100.4"), "198.51.100.4");
        assert_eq!(
            of("10.0.0.9", "1.2.3.4, 198.51.100.4, 10.0.0.7"),
            "198.51.100.4"
        );
        assert_eq!(of("203.0.113.7", "1.2.3.4"), "203.0.113.7");
        assert_eq!(of("10.0.0.9", "nonsense"), "10.0.0.9");
        assert_eq!(of("::ffff:10.0.0.9", "198.51.100.4"), "198.51.100.4");
    }
}
