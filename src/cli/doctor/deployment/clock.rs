//! Clocks that are apart: tokens are not valid yet or not any more, and records read
//! in the wrong order.

use time::format_description::well_known::Rfc2822;
use time::{Duration, OffsetDateTime};

use crate::cli::doctor::report::{Level, Report, Trouble};
use crate::cli::doctor::web::Page;
use crate::clock::{Clock, SystemClock};

/// Beyond this, what is short-lived is refused here and there.
const NOTICEABLE: Duration = Duration::seconds(3);
/// The leeway of tokens.
const HARMFUL: Duration = Duration::seconds(30);

/// Judges how far `theirs` is from this machine's clock.
pub(super) fn judge(step: &str, whose: &str, ahead: Duration, report: &mut Report) {
    let apart = ahead.abs();
    if apart < NOTICEABLE {
        return report.ok(step, format!("{whose} clock agrees with this machine's"));
    }
    let (seconds, side) = (
        apart.whole_seconds(),
        if ahead.is_positive() {
            "ahead of"
        } else {
            "behind"
        },
    );
    let level = if apart < HARMFUL {
        Level::Warning
    } else {
        Level::Failure
    };
    report.trouble(
        level,
        step,
        Trouble {
            what: &format!("{whose} clock is {seconds} s {side} this machine's"),
            why: "tokens are judged by their times with 30 s of leeway, and the audit's times are believed by people",
            change: "let both machines keep time by NTP",
        },
    );
}

/// Judges the clock of a web server by its `Date` (RFC 9110 §6.6.1), where it has one.
pub(super) fn of_page(step: &str, whose: &str, page: &Page, report: &mut Report) {
    let date = page
        .header("date")
        .and_then(|text| OffsetDateTime::parse(text, &Rfc2822).ok());
    if let Some(date) = date {
        // The header has whole seconds.
        let ahead = date + Duration::milliseconds(500) - SystemClock.now();
        judge(step, whose, ahead, report);
    }
}
