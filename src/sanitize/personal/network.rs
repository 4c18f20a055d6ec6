//! Addresses of machines: public ones of the internet, and those of network cards
//! where a word says so.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::cues::Cue;

/// An address and what it is.
pub(super) struct Address {
    pub(super) label: &'static str,
    pub(super) end: usize,
    public: bool,
}

impl Address {
    /// Whether it is one to be hidden.
    pub(super) fn counts(&self, cue: Option<&Cue>) -> bool {
        match self.label {
            "mac_address" => cue.is_some_and(|cue| cue.is("mac_address")),
            _ => self.public,
        }
    }
}

/// The address at `at`.
pub(super) fn address(text: &str, at: usize) -> Option<Address> {
    let rest = text.get(at..)?;
    let word = rest
        .bytes()
        .take(5)
        .take_while(u8::is_ascii_hexdigit)
        .count();
    match rest.as_bytes().get(word) {
        Some(b'.') => version_4(text, at),
        Some(b':' | b'-') if word <= 4 => card(text, at).or_else(|| version_6(text, at)),
        _ => None,
    }
}

fn version_4(text: &str, at: usize) -> Option<Address> {
    let rest = text.get(at..)?;
    let len = rest
        .bytes()
        .take(16)
        .take_while(|b| b.is_ascii_digit() || *b == b'.')
        .count();
    let written = rest.get(..len)?.trim_end_matches('.');
    let address: Ipv4Addr = written.parse().ok()?;
    let end = at + written.len();
    let tail = text.as_bytes().get(end..).unwrap_or_default();
    let goes_on = match tail {
        [b'.', next, ..] => next.is_ascii_alphanumeric(),
        [b'-', next, ..] => next.is_ascii_alphanumeric(),
        [b'_' | b'@', ..] => true,
        [next, ..] => next.is_ascii_alphabetic(),
        [] => false,
    };
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let inside = matches!(before, [.., b'.' | b'-' | b'+' | b'~' | b'^' | b'v']);
    (!goes_on && !inside).then(|| Address {
        label: "ip_address",
        end,
        public: is_public_4(address) && !is_network(tail),
    })
}

/// `/24` and shorter prefixes are networks, not machines.
fn is_network(tail: &[u8]) -> bool {
    let [b'/', rest @ ..] = tail else {
        return false;
    };
    let digits: Vec<u8> = rest
        .iter()
        .copied()
        .take_while(u8::is_ascii_digit)
        .collect();
    let prefix = std::str::from_utf8(&digits)
        .ok()
        .and_then(|prefix| prefix.parse::<u8>().ok());
    prefix.is_some_and(|prefix| prefix <= 24)
}

/// Neither private, shared, local, reserved, a netmask nor for many.
fn is_public_4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = match a {
        0 | 10 | 127 | 224..=255 => true,
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => b == 168 || (b == 0 && c == 0),
        198 => matches!(b, 18 | 19),
        _ => false,
    };
    !reserved
}

fn version_6(text: &str, at: usize) -> Option<Address> {
    let rest = text.get(at..)?;
    let len = rest
        .bytes()
        .take(46)
        .take_while(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'))
        .count();
    let written = rest.get(..len)?.trim_end_matches(['.', ':']);
    let address: Ipv6Addr = written.parse().ok()?;
    let end = at + written.len();
    let goes_on = text
        .as_bytes()
        .get(end)
        .is_some_and(|next| next.is_ascii_alphanumeric() || *next == b'_');
    // Global unicast (RFC 4291 §2.4, as far as it is given out).
    let public = matches!(address.segments(), [0x2000..=0x3fff, ..]);
    (!goes_on).then_some(Address {
        label: "ip_address",
        end,
        public,
    })
}

/// Six pairs of hexadecimal digits.
fn card(text: &str, at: usize) -> Option<Address> {
    let written = text.get(at..at + 17)?;
    let separator = written.chars().nth(2)?;
    let pairs: Vec<&str> = written.split(separator).collect();
    let formed = pairs.len() == 6
        && pairs
            .iter()
            .all(|pair| pair.len() == 2 && pair.bytes().all(|b| b.is_ascii_hexdigit()));
    let goes_on = text
        .as_bytes()
        .get(at + 17)
        .is_some_and(|next| next.is_ascii_alphanumeric() || matches!(next, b':' | b'-'));
    (formed && !goes_on).then_some(Address {
        label: "mac_address",
        end: at + 17,
        public: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> Option<usize> {
        address(text, 0)
            .filter(|found| found.counts(None))
            .map(|found| found.end)
    }

    #[test]
    fn public_addresses_count() {
        for text in [
            "62.126.67.69",
            "203.0.113.9",
            "2a01:4f8:aec3:70c6:20dd::2887",
            "2001:db8:1:2:3:4:5:6",
        ] {
            assert_eq!(public(text), Some(text.len()), "{text}");
        }
        assert_eq!(public("62.126.67.69:443"), Some(12));
        assert_eq!(public("62.126.67.69. Then"), Some(12));
    }

    #[test]
    fn what_stays_at_home_stays() {
        for text in [
            "10.0.40.242",
            "127.0.0.1",
            "192.168.1.1",
            "172.20.0.1",
            "255.255.255.0",
            "0.0.0.0",
            "224.0.0.1",
            "100.64.1.1",
            "169.254.169.254",
            "192.30.252.0/22",
            "1.2.3.4.5",
            "1.2.3",
            "300.1.1.1",
            "fe80::1",
            "fd00::1",
            "10:30:05",
            "1.2.3.4-beta",
            "00:1b:44:11:3a:b7",
        ] {
            assert_eq!(public(text), None, "{text}");
        }
    }
}
