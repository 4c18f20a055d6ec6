//! Addresses of cryptocurrencies, by their checks.

use aws_lc_rs::digest::{SHA256, digest};

/// Where the wallet's address of the word at `at` ends.
pub(super) fn wallet(text: &str, at: usize, end: usize) -> Option<usize> {
    let word = text.get(at..end)?;
    let is_one = match word.as_bytes() {
        [b'1' | b'3' | b'L' | b'M' | b'D' | b'A' | b'9', ..] => {
            (26..=35).contains(&word.len()) && is_base58_checked(word)
        }
        [b'b', b'c', b'1', ..] | [b'B', b'C', b'1', ..] => is_bech32(word, "bc"),
        [b'l', b't', b'c', b'1', ..] => is_bech32(word, "ltc"),
        [b't', b'b', b'1', ..] => is_bech32(word, "tb"),
        [b'0', b'x', rest @ ..] => rest.len() == 40 && rest.iter().all(u8::is_ascii_hexdigit),
        _ => false,
    };
    let goes_on = matches!(text.as_bytes().get(end), Some(b'_'));
    (is_one && !goes_on).then_some(end)
}

/// Base58 with four bytes of a double SHA-256, under the versions of Bitcoin,
/// Litecoin and Dogecoin.
fn is_base58_checked(word: &str) -> bool {
    const ALPHABET: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut number = [0_u8; 25];
    for b in word.bytes() {
        let Some(digit) = ALPHABET.iter().position(|c| *c == b) else {
            return false;
        };
        let mut carry = u32::try_from(digit).unwrap_or(0);
        for byte in number.iter_mut().rev() {
            carry += u32::from(*byte) * 58;
            let [.., low] = carry.to_be_bytes();
            *byte = low;
            carry >>= 8;
        }
        if carry > 0 {
            return false;
        }
    }
    let (payload, check) = number.split_at(21);
    let hash = digest(&SHA256, digest(&SHA256, payload).as_ref());
    matches!(number[0], 0x00 | 0x05 | 0x30 | 0x32 | 0x1e | 0x16) && hash.as_ref().starts_with(check)
}

/// Bech32 and its successor (BIP 173, BIP 350).
fn is_bech32(word: &str, prefix: &str) -> bool {
    const ALPHABET: &[u8] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    if !(14..=90).contains(&word.len()) {
        return false;
    }
    let lower = word.to_ascii_lowercase();
    let mixed = word.bytes().any(|b| b.is_ascii_lowercase())
        && word.bytes().any(|b| b.is_ascii_uppercase());
    let Some(data) = lower
        .strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('1'))
    else {
        return false;
    };
    let mut values: Vec<u32> = prefix.bytes().map(|b| u32::from(b >> 5)).collect();
    values.push(0);
    values.extend(prefix.bytes().map(|b| u32::from(b & 31)));
    for b in data.bytes() {
        match ALPHABET.iter().position(|c| *c == b) {
            Some(value) => values.push(u32::try_from(value).unwrap_or(0)),
            None => return false,
        }
    }
    let check = values.into_iter().fold(1_u32, |check, value| {
        let top = check >> 25;
        let mut next = (check & 0x01ff_ffff) << 5 ^ value;
        for (bit, generator) in [
            0x3b6a_57b2,
            0x2650_8e6d,
            0x1ea1_19fa,
            0x3d42_33dd,
            0x2a14_62b3,
        ]
        .iter()
        .enumerate()
        {
            if top >> bit & 1 == 1 {
                next ^= generator;
            }
        }
        next
    });
    !mixed && matches!(check, 1 | 0x2bc8_30a3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_tell_addresses_from_other_words() {
        for good in [
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
            "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
            "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr",
            "0x52908400098527886E0F7030069857D2E4169EE7",
        ] {
            assert_eq!(wallet(good, 0, good.len()), Some(good.len()), "{good}");
            let mut bad: Vec<u8> = good.bytes().collect();
            if !good.starts_with("0x") {
                let at = bad.len() - 5;
                bad[at] = if bad[at] == b'q' { b'p' } else { b'q' };
                let bad = String::from_utf8(bad).unwrap();
                assert_eq!(wallet(&bad, 0, bad.len()), None, "{bad}");
            }
        }
        let hash = "00d97c52a1f0d97c52a1f0d97c52a1f0d97c52a1";
        assert_eq!(wallet(hash, 0, hash.len()), None);
    }
}
