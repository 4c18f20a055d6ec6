//! Cursors of lists: sealed, bound to the caller and the list, so that they are
//! neither read nor made nor swapped by a client.

use crate::identity::Principal;
use crate::seal::Sealer;

/// A cursor that continues behind `name`.
pub(super) fn seal(sealer: &Sealer, principal: &Principal, list: &str, name: &str) -> String {
    sealer.seal(name.as_bytes(), &bound_to(principal, list))
}

/// The name that a cursor continues behind; `None` where it is not this caller's cursor of this list.
pub(super) fn open(
    sealer: &Sealer,
    principal: &Principal,
    list: &str,
    cursor: &str,
) -> Option<String> {
    String::from_utf8(sealer.open(cursor, &bound_to(principal, list)).ok()?).ok()
}

fn bound_to(principal: &Principal, list: &str) -> Vec<u8> {
    [principal.key().as_bytes(), list.as_bytes()].concat()
}
