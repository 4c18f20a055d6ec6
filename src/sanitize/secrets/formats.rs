//! Secrets with a form of their own, as data: a literal that every one has, what
//! stands around it, and what must hold besides. Forms are those that the
//! providers publish; where a checksum is known, it is checked.

use super::judge;
use super::literals::starts_free;

/// Which bytes a run may have.
#[derive(Clone, Copy, Debug)]
enum Of {
    Digit,
    Hex,
    Base32,
    UpperDigit,
    Alnum,
    /// Base64 for URLs.
    Url,
    UrlDot,
    Base64,
    Azure,
    Slack,
}

impl Of {
    fn has(self, b: u8) -> bool {
        match self {
            Self::Digit => b.is_ascii_digit(),
            Self::Hex => b.is_ascii_hexdigit(),
            Self::Base32 => b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b),
            Self::UpperDigit => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Self::Alnum => b.is_ascii_alphanumeric(),
            Self::Url => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
            Self::UrlDot => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'='),
            Self::Base64 => b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='),
            Self::Azure => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'~'),
            Self::Slack => b.is_ascii_alphanumeric() || b == b'-',
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Run(Of, usize, usize),
    Text(&'static str),
}

/// What must hold of the part behind the literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// Varied, and no example.
    Varied,
    /// The last six characters are the CRC-32 of those before, in base 62; or at
    /// least varied, since newer tokens of the family have other tails.
    Github,
    /// Numbers first, a random part last.
    Slack,
    /// The form says enough.
    Form,
}

/// One kind of secret.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub(super) label: &'static str,
    pub(super) literal: &'static str,
    /// A run that must stand before the literal, and belongs to the secret.
    before: Option<(Of, usize, usize)>,
    parts: &'static [Part],
    /// Whether a letter or digit before it makes it something else.
    free: bool,
    /// Whether the literal may stay: it names the place, not the secret.
    keep_literal: bool,
    check: Check,
}

/// Characters behind the prefix of a GitHub token with a checksum.
const GITHUB: usize = 36;

/// Runs longer than this are no secret of any of these formats.
const LONG: usize = 1024;

const fn prefix(label: &'static str, literal: &'static str, parts: &'static [Part]) -> Format {
    Format {
        label,
        literal,
        before: None,
        parts,
        free: true,
        keep_literal: false,
        check: Check::Varied,
    }
}

const fn github(literal: &'static str) -> Format {
    Format {
        check: Check::Github,
        free: false,
        ..prefix("github_token", literal, &[Part::Run(Of::Alnum, GITHUB, LONG)])
    }
}

const fn slack(literal: &'static str) -> Format {
    Format {
        check: Check::Slack,
        ..prefix("slack_token", literal, &[Part::Run(Of::Slack, 20, LONG)])
    }
}

const fn aws(literal: &'static str) -> Format {
    prefix("aws_access_key_id", literal, &[Part::Run(Of::Base32, 16, 16)])
}

const fn gitlab(literal: &'static str) -> Format {
    prefix("gitlab_token", literal, &[Part::Run(Of::UrlDot, 20, LONG)])
}

const URL_20: &[Part] = &[Part::Run(Of::Url, 20, LONG)];
const URL_40: &[Part] = &[Part::Run(Of::Url, 40, LONG)];
const URL_80: &[Part] = &[Part::Run(Of::Url, 80, LONG)];
const ALNUM_16: &[Part] = &[Part::Run(Of::Alnum, 16, LONG)];
const HEX_32: &[Part] = &[Part::Run(Of::Hex, 32, 32)];
const HEX_64: &[Part] = &[Part::Run(Of::Hex, 64, 64)];
const OPENAI: &[Part] = &[Part::Run(Of::Url, 40, LONG)];

/// All of them. Literals of one first letter stand longest first.
pub(super) const FORMATS: &[Format] = &[
    github("ghp_"),
    github("gho_"),
    github("ghu_"),
    github("ghs_"),
    github("ghr_"),
    prefix("github_token", "github_pat_", &[
        Part::Run(Of::Alnum, 22, 22),
        Part::Text("_"),
        Part::Run(Of::Alnum, 59, 59),
    ]),
    gitlab("glpat-"),
    gitlab("gldt-"),
    gitlab("glrt-"),
    gitlab("glptt-"),
    gitlab("glft-"),
    gitlab("glsoat-"),
    gitlab("glcbt-"),
    gitlab("glimt-"),
    gitlab("glagent-"),
    gitlab("gloas-"),
    aws("AKIA"),
    aws("ASIA"),
    aws("ABIA"),
    aws("ACCA"),
    prefix("google_api_key", "AIza", &[Part::Run(Of::Url, 35, 35)]),
    prefix("google_oauth_secret", "GOCSPX-", &[Part::Run(Of::Url, 28, 28)]),
    prefix("google_oauth_token", "ya29.", URL_40),
    slack("xoxb-"),
    slack("xoxp-"),
    slack("xoxa-"),
    slack("xoxr-"),
    slack("xoxs-"),
    slack("xapp-"),
    prefix("slack_token", "xoxe.xox", URL_80),
    Format {
        free: false,
        keep_literal: true,
        ..prefix("slack_webhook", "hooks.slack.com/services/", &[
            Part::Run(Of::UpperDigit, 8, 16),
            Part::Text("/"),
            Part::Run(Of::UpperDigit, 8, 16),
            Part::Text("/"),
            Part::Run(Of::Alnum, 20, 32),
        ])
    },
    prefix("stripe_key", "sk_live_", ALNUM_16),
    prefix("stripe_key", "sk_test_", ALNUM_16),
    prefix("stripe_key", "rk_live_", ALNUM_16),
    prefix("stripe_key", "rk_test_", ALNUM_16),
    prefix("stripe_key", "whsec_", &[Part::Run(Of::Base64, 32, LONG)]),
    prefix("anthropic_key", "sk-ant-api", URL_80),
    prefix("anthropic_key", "sk-ant-admin", URL_80),
    prefix("anthropic_key", "sk-ant-oat", URL_80),
    prefix("anthropic_key", "sk-ant-ort", URL_80),
    prefix("anthropic_key", "sk-ant-sid", URL_80),
    prefix("openai_key", "sk-proj-", OPENAI),
    prefix("openai_key", "sk-svcacct-", OPENAI),
    prefix("openai_key", "sk-admin-", OPENAI),
    Format {
        before: Some((Of::Url, 20, 200)),
        ..prefix("openai_key", "T3BlbkFJ", URL_20)
    },
    prefix("npm_token", "npm_", &[Part::Run(Of::Alnum, 36, 36)]),
    Format { free: false, ..prefix("pypi_token", "pypi-AgEI", URL_40) },
    Format { free: false, ..prefix("pypi_token", "pypi-AgEN", URL_40) },
    prefix("docker_pat", "dckr_pat_", URL_20),
    prefix("docker_pat", "dckr_oat_", URL_20),
    prefix("digitalocean_token", "dop_v1_", HEX_64),
    prefix("digitalocean_token", "doo_v1_", HEX_64),
    prefix("digitalocean_token", "dor_v1_", HEX_64),
    prefix("vault_token", "hvs.", URL_20),
    prefix("vault_token", "hvb.", URL_20),
    prefix("vault_token", "hvr.", URL_20),
    prefix("databricks_token", "dapi", HEX_32),
    prefix("shopify_token", "shpat_", HEX_32),
    prefix("shopify_token", "shpca_", HEX_32),
    prefix("shopify_token", "shppa_", HEX_32),
    prefix("shopify_token", "shpss_", HEX_32),
    prefix("atlassian_token", "ATATT3", &[Part::Run(Of::UrlDot, 40, LONG)]),
    prefix("linear_key", "lin_api_", &[Part::Run(Of::Alnum, 32, LONG)]),
    prefix("linear_key", "lin_oauth_", &[Part::Run(Of::Alnum, 32, LONG)]),
    prefix("grafana_token", "glsa_", &[
        Part::Run(Of::Alnum, 32, 32),
        Part::Text("_"),
        Part::Run(Of::Hex, 8, 8),
    ]),
    prefix("grafana_token", "glc_", &[Part::Run(Of::Base64, 32, LONG)]),
    prefix("newrelic_key", "NRAK-", &[Part::Run(Of::UpperDigit, 27, 27)]),
    Format {
        free: false,
        ..prefix("age_secret_key", "AGE-SECRET-KEY-1", &[Part::Run(Of::UpperDigit, 58, 58)])
    },
    Format {
        free: false,
        keep_literal: true,
        ..prefix("azure_storage_key", "AccountKey=", &[Part::Run(Of::Base64, 86, 88)])
    },
    prefix("huggingface_token", "hf_", &[Part::Run(Of::Alnum, 34, 40)]),
    prefix("sendgrid_key", "SG.", &[
        Part::Run(Of::Url, 22, 22),
        Part::Text("."),
        Part::Run(Of::Url, 43, 43),
    ]),
    Format {
        before: Some((Of::Digit, 8, 10)),
        ..prefix("telegram_token", ":AA", &[Part::Run(Of::Url, 33, 33)])
    },
    prefix("twilio_key", "SK", HEX_32),
    Format {
        before: Some((Of::Azure, 4, 4)),
        ..prefix("azure_client_secret", "Q~", &[Part::Run(Of::Azure, 31, 34)])
    },
];

impl Format {
    /// Whether what follows the literal in raw bytes can be the secret's first
    /// part: a cheap look for the prefilter, which may err towards yes.
    pub(super) fn may_start(&self, bytes: &[u8], at: usize) -> bool {
        let Some(Part::Run(of, ..)) = self.parts.first() else {
            return true;
        };
        let from = at + self.literal.len();
        let look = bytes.get(from..).unwrap_or_default();
        look.iter().take(4).all(|b| of.has(*b) || !b.is_ascii_graphic() || matches!(b, b'\\' | b'"'))
    }

    /// The secret whose literal stands at `at`. `seams` are offsets where blocks
    /// meet: what follows one need not belong to what stands before.
    pub(super) fn matches(&self, text: &str, at: usize, seams: &[usize]) -> Option<std::ops::Range<usize>> {
        let bytes = text.as_bytes();
        let start = self.start(bytes, at)?;
        if self.free && !starts_free(bytes, start) && !seams.contains(&start) {
            return None;
        }
        let body = at + self.literal.len();
        let mut end = body;
        let mut last = None;
        for part in self.parts {
            end = match part {
                Part::Text(literal) => {
                    bytes.get(end..)?.starts_with(literal.as_bytes()).then_some(end + literal.len())?
                }
                Part::Run(of, min, max) => {
                    let len = run(bytes, end, *of, *max);
                    last = Some(*of);
                    (len >= *min).then_some(end + len)?
                }
            };
        }
        // The full stop of a sentence is no part of a token.
        while bytes.get(..end).is_some_and(|head| head.ends_with(b".")) && end > body {
            end -= 1;
        }
        if self.check == Check::Github
            && let Some(exact) = text.get(body..body + GITHUB)
            && has_github_checksum(exact)
        {
            return Some(start..body + GITHUB);
        }
        let goes_on = bytes.get(end).is_some_and(|b| {
            (*b != b'.' && last.is_some_and(|of| of.has(*b))) || b.is_ascii_alphanumeric()
        });
        if goes_on && seams.binary_search(&end).is_err() {
            return None;
        }
        self.holds(text.get(body..end)?)
            .then_some(if self.keep_literal { body } else { start }..end)
    }

    fn start(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let Some((of, min, max)) = self.before else {
            return Some(at);
        };
        let head = bytes.get(..at)?;
        let len = head.iter().rev().take(max).take_while(|b| of.has(**b)).count();
        (len >= min).then(|| at - len)
    }

    fn holds(&self, body: &str) -> bool {
        match self.check {
            Check::Form => true,
            Check::Varied => judge::is_varied(body),
            Check::Github => has_github_checksum(body) || judge::is_varied(body),
            Check::Slack => {
                let first = body.split('-').find(|part| part.len() > 1).unwrap_or_default();
                let last = body.rsplit('-').next().unwrap_or_default();
                first.len() >= 8
                    && first.bytes().take(8).all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
                    && last.len() >= 16
                    && last.bytes().any(|b| b.is_ascii_digit())
                    && judge::is_varied(last)
            }
        }
    }
}

fn run(bytes: &[u8], from: usize, of: Of, max: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.iter().take(max).take_while(|b| of.has(**b)).count()
}

/// The checksum of GitHub's tokens: CRC-32 of the first 30 characters in base 62.
fn has_github_checksum(body: &str) -> bool {
    if body.len() != GITHUB {
        return false;
    }
    let (random, checksum) = body.split_at(30);
    let mut rest = crc32(random.as_bytes());
    checksum.bytes().rev().all(|byte| {
        let digit = rest % 62;
        rest /= 62;
        base62(byte) == Some(digit)
    })
}

fn base62(byte: u8) -> Option<u32> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'A'..=b'Z' => byte - b'A' + 10,
        b'a'..=b'z' => byte - b'a' + 36,
        _ => return None,
    };
    Some(u32::from(digit))
}

/// CRC-32 as in IEEE 802.3; a bit at a time is enough for thirty bytes.
fn crc32(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 }
        })
    });
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn githubs_checksum_is_known() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert!(has_github_checksum("dGlMoiyrlfxX1rTnyFf3vA7NUtFOY64WuYlz"));
        assert!(!has_github_checksum("dGlMoiyrlfxX1rTnyFf3vA7NUtFOY64WuYly"));
    }
}
