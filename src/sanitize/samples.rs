//! Made-up secrets of every form, for the tests of this module. Random parts come
//! from a fixed seed: nothing here was ever valid.

use std::fmt::Write as _;

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const HEX: &str = "0123456789abcdef";
const DIGITS: &str = "0123456789";

/// `len` characters of `of`, different for each `seed`.
pub(super) fn random(of: &str, len: usize, seed: u64) -> String {
    let letters: Vec<char> = of.chars().collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(state >> 33).unwrap() % letters.len();
            letters[at]
        })
        .collect()
}

/// One secret: its label, a text that holds it, and the part that must be gone.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) label: &'static str,
    pub(super) text: String,
    pub(super) secret: String,
}

/// Parts of a sample: letters and how many of them, or a literal.
enum Part {
    Of(&'static str, usize),
    Is(&'static str),
}

use Part::{Is, Of};

const PREFIXED: &[(&str, &[Part])] = &[
    ("github_token", &[Is("ghs_"), Of(ALNUM, 36)]),
    (
        "github_token",
        &[Is("github_pat_"), Of(ALNUM, 22), Is("_"), Of(ALNUM, 59)],
    ),
    ("gitlab_token", &[Is("glpat-"), Of(ALNUM, 20)]),
    ("aws_access_key_id", &[Is("AKIA"), Of(BASE32, 16)]),
    ("google_api_key", &[Is("AIza"), Of(ALNUM, 35)]),
    ("google_oauth_secret", &[Is("GOCSPX-"), Of(ALNUM, 28)]),
    (
        "slack_token",
        &[
            Is("xoxb-"),
            Of(DIGITS, 12),
            Is("-"),
            Of(DIGITS, 12),
            Is("-"),
            Of(ALNUM, 24),
        ],
    ),
    ("stripe_key", &[Is("sk_live_"), Of(ALNUM, 24)]),
    ("openai_key", &[Is("sk-proj-"), Of(ALNUM, 74)]),
    (
        "openai_key",
        &[Is("sk-"), Of(ALNUM, 20), Is("T3BlbkFJ"), Of(ALNUM, 20)],
    ),
    (
        "anthropic_key",
        &[Is("sk-ant-api03-"), Of(ALNUM, 93), Is("AA")],
    ),
    ("npm_token", &[Is("npm_"), Of(ALNUM, 36)]),
    ("pypi_token", &[Is("pypi-AgEIcHlwaS5vcmc"), Of(ALNUM, 80)]),
    (
        "sendgrid_key",
        &[Is("SG."), Of(ALNUM, 22), Is("."), Of(ALNUM, 43)],
    ),
    ("twilio_key", &[Is("SK"), Of(HEX, 32)]),
    ("huggingface_token", &[Is("hf_"), Of(ALNUM, 34)]),
    ("docker_pat", &[Is("dckr_pat_"), Of(ALNUM, 27)]),
    ("digitalocean_token", &[Is("dop_v1_"), Of(HEX, 64)]),
    ("vault_token", &[Is("hvs."), Of(ALNUM, 90)]),
    ("databricks_token", &[Is("dapi"), Of(HEX, 32)]),
    ("shopify_token", &[Is("shpat_"), Of(HEX, 32)]),
    ("atlassian_token", &[Is("ATATT3"), Of(ALNUM, 186)]),
    ("linear_key", &[Is("lin_api_"), Of(ALNUM, 40)]),
    (
        "grafana_token",
        &[Is("glsa_"), Of(ALNUM, 32), Is("_"), Of(HEX, 8)],
    ),
    ("newrelic_key", &[Is("NRAK-"), Of(UPPER, 27)]),
    ("age_secret_key", &[Is("AGE-SECRET-KEY-1"), Of(UPPER, 58)]),
    (
        "telegram_token",
        &[Of(DIGITS, 10), Is(":AA"), Of(ALNUM, 33)],
    ),
    (
        "azure_client_secret",
        &[Of(ALNUM, 3), Is("8Q~"), Of(ALNUM, 34)],
    ),
];

fn built(parts: &[Part], seed: u64) -> String {
    let mut out = String::new();
    for (nth, part) in (0..).zip(parts) {
        match part {
            Is(literal) => out.push_str(literal),
            Of(letters, len) => out.push_str(&random(letters, *len, seed * 31 + nth)),
        }
    }
    out
}

/// Secrets with a form of their own: the text is the secret.
pub(super) fn formats() -> Vec<Sample> {
    let mut samples: Vec<Sample> = (1..)
        .zip(PREFIXED)
        .map(|(seed, (label, parts))| {
            let secret = built(parts, seed);
            Sample {
                label,
                text: secret.clone(),
                secret,
            }
        })
        .collect();
    samples.push(token());
    samples
}

/// A JSON Web Token.
fn token() -> Sample {
    let secret = format!(
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{}.{}",
        random(ALNUM, 60, 71),
        random(ALNUM, 43, 72)
    );
    Sample {
        label: "jwt",
        text: secret.clone(),
        secret,
    }
}

/// A PKCS #8 key of no mathematics.
pub(super) fn private_key() -> String {
    let mut key = String::from("-----BEGIN PRIVATE KEY-----\n");
    for line in 0..12 {
        // Writing to a String does not fail.
        let _ = writeln!(key, "{}", random(ALNUM, 64, 900 + line));
    }
    key.push_str("-----END PRIVATE KEY-----");
    key
}

fn row(label: &'static str, text: String, secret: &str) -> Sample {
    Sample {
        label,
        text,
        secret: secret.to_owned(),
    }
}

/// Secrets that their surroundings give away.
pub(super) fn in_context() -> Vec<Sample> {
    let passwords = [
        ("password", "DB_PASSWORD=hunter2", "hunter2"),
        (
            "password",
            "password: Sunset2011$\nnext: line",
            "Sunset2011$",
        ),
        (
            "password",
            "Your new admin password is: 9PZfXcUR0Jo",
            "9PZfXcUR0Jo",
        ),
        (
            "url_password",
            "postgres://app:h0FABEVlyFk@db:5432/x",
            "h0FABEVlyFk",
        ),
        (
            "basic_auth",
            "Authorization: Basic YWxpY2U6czNjcjN0LXBhc3M=",
            "YWxpY2U6czNjcjN0LXBhc3M=",
        ),
    ];
    let mut samples: Vec<Sample> = passwords
        .into_iter()
        .map(|(label, text, secret)| row(label, text.to_owned(), secret))
        .collect();
    samples.extend(keys_in_context());
    samples
}

fn keys_in_context() -> Vec<Sample> {
    let key = random(ALNUM, 32, 401);
    let aws_id = format!("AKIA{}", random(BASE32, 16, 402));
    let aws = format!(
        "{}/{}+{}",
        random(ALNUM, 20, 403),
        random(ALNUM, 10, 404),
        random(ALNUM, 8, 405)
    );
    let storage = format!("{}==", random(ALNUM, 86, 406));
    let hook = random(ALNUM, 24, 407);
    let team = format!("T{}/B{}", random(UPPER, 8, 1), random(UPPER, 10, 2));
    vec![
        row(
            "generic_secret",
            format!("API_KEY = '{key}'  # rotate"),
            &key,
        ),
        row(
            "generic_secret",
            format!("client_secret={key} region=eu"),
            &key,
        ),
        row("bearer_token", format!("Authorization: Bearer {key}"), &key),
        row(
            "bearer_token",
            format!("https://files.example/d?sig=1&access_token={key}"),
            &key,
        ),
        row(
            "session_cookie",
            format!("Set-Cookie: sid={key}; Path=/; HttpOnly"),
            &key,
        ),
        row(
            "aws_secret_access_key",
            format!("old key {aws_id} / {aws}, still active"),
            &aws,
        ),
        row(
            "azure_storage_key",
            format!("AccountName=st;AccountKey={storage};EndpointSuffix=x"),
            &storage,
        ),
        row(
            "slack_webhook",
            format!("https://hooks.slack.com/services/{team}/{hook}"),
            &hook,
        ),
        row(
            "private_key",
            format!("deploy key:\n\n{}\n\nbye", private_key()),
            &random(ALNUM, 64, 905),
        ),
    ]
}

/// All of them.
pub(super) fn all() -> Vec<Sample> {
    let mut samples = formats();
    samples.extend(in_context());
    samples
}
