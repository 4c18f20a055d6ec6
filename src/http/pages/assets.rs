//! The style sheet and the icon, each under a name that holds its digest, so that
//! browsers keep them for ever and a new release's are new.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::http::router::not_found;

const STYLE: &str = include_str!("../../../templates/assets/style.css");
const ICON: &str = include_str!("../../../templates/assets/icon.svg");

static STYLE_NAME: LazyLock<String> = LazyLock::new(|| name("style", STYLE, "css"));
static ICON_NAME: LazyLock<String> = LazyLock::new(|| name("icon", ICON, "svg"));

/// The path of the style sheet.
pub(super) fn style_path() -> String {
    format!("/assets/{}", *STYLE_NAME)
}

/// The path of the icon.
pub(super) fn icon_path() -> String {
    format!("/assets/{}", *ICON_NAME)
}

/// `GET /assets/{file}`
pub(in crate::http) async fn asset(Path(file): Path<String>) -> Response {
    let (text, kind) = if file == *STYLE_NAME {
        (STYLE, "text/css; charset=utf-8")
    } else if file == *ICON_NAME {
        (ICON, "image/svg+xml")
    } else {
        return not_found().await;
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=31536000, immutable"),
        ),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
        ),
    ];
    (headers, text).into_response()
}

fn name(stem: &str, text: &str, ending: &str) -> String {
    use std::fmt::Write as _;
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    let mut name = format!("{stem}-");
    for byte in digest.as_ref().iter().take(8) {
        // Writing to a String does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    format!("{name}.{ending}")
}
