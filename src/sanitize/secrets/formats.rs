//! Secrets with a form of their own, as data: a literal that every one has, what
//! stands around it, and what must hold besides. Forms are those that the
//! providers publish; where a checksum is known, it is checked. How a row is
//! matched stands in `matching`.

mod matching;

pub(super) use matching::Runs;

/// Which bytes a run may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// One kind of secret.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub(super) label: &'static str,
    pub(super) literal: &'static str,
    /// A run that must stand before the literal, and belongs to the secret.
    before: Option<(Of, usize, usize)>,
    /// What must stand before that run.
    lead: &'static str,
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
pub(super) const LONG: usize = 1024;

const fn prefix(label: &'static str, literal: &'static str, parts: &'static [Part]) -> Format {
    Format {
        label,
        literal,
        before: None,
        lead: "",
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
        ..prefix(
            "github_token",
            literal,
            &[Part::Run(Of::Alnum, GITHUB, LONG)],
        )
    }
}

const fn slack(literal: &'static str) -> Format {
    Format {
        check: Check::Slack,
        ..prefix("slack_token", literal, &[Part::Run(Of::Slack, 20, LONG)])
    }
}

const fn aws(literal: &'static str) -> Format {
    prefix(
        "aws_access_key_id",
        literal,
        &[Part::Run(Of::Base32, 16, 16)],
    )
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
const HEX_64_DASHED: &[Part] = &[
    Part::Run(Of::Hex, 64, 64),
    Part::Text("-"),
    Part::Run(Of::Alnum, 16, 16),
];
const URL_DOT_40: &[Part] = &[Part::Run(Of::UrlDot, 40, LONG)];
const OPENAI: &[Part] = &[Part::Run(Of::Url, 40, LONG)];

/// All of them. Literals of one first letter stand longest first.
pub(super) const FORMATS: &[Format] = &[
    github("ghp_"),
    github("gho_"),
    github("ghu_"),
    github("ghs_"),
    github("ghr_"),
    Format {
        free: false,
        ..prefix(
            "github_token",
            "github_pat_",
            &[
                Part::Run(Of::Alnum, 22, 22),
                Part::Text("_"),
                Part::Run(Of::Alnum, 59, 59),
            ],
        )
    },
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
    prefix("google_oauth_token", "1//0", URL_40),
    prefix(
        "google_oauth_secret",
        "GOCSPX-",
        &[Part::Run(Of::Url, 28, 28)],
    ),
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
        ..prefix(
            "slack_webhook",
            "hooks.slack.com",
            &[
                Part::Text("/services/"),
                Part::Run(Of::UpperDigit, 8, 16),
                Part::Text("/"),
                Part::Run(Of::UpperDigit, 8, 16),
                Part::Text("/"),
                Part::Run(Of::Alnum, 20, 32),
            ],
        )
    },
    Format {
        free: false,
        keep_literal: true,
        ..prefix(
            "slack_webhook",
            "hooks.slack.com",
            &[
                Part::Text("/workflows/"),
                Part::Run(Of::UpperDigit, 8, 16),
                Part::Text("/"),
                Part::Run(Of::UpperDigit, 8, 16),
                Part::Text("/"),
                Part::Run(Of::Digit, 10, 24),
                Part::Text("/"),
                Part::Run(Of::Alnum, 20, 32),
            ],
        )
    },
    prefix("stripe_key", "sk_live_", ALNUM_16),
    prefix("stripe_key", "sk_org_live_", ALNUM_16),
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
        before: Some((Of::Alnum, 20, 64)),
        lead: "sk-",
        ..prefix("openai_key", "T3BlbkFJ", URL_20)
    },
    prefix("npm_token", "npm_", &[Part::Run(Of::Alnum, 36, 36)]),
    Format {
        free: false,
        ..prefix("pypi_token", "pypi-AgEI", URL_40)
    },
    Format {
        free: false,
        ..prefix("pypi_token", "pypi-AgEN", URL_40)
    },
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
    prefix(
        "atlassian_token",
        "ATATT3",
        &[Part::Run(Of::UrlDot, 40, LONG)],
    ),
    prefix("linear_key", "lin_api_", &[Part::Run(Of::Alnum, 32, LONG)]),
    prefix(
        "linear_key",
        "lin_oauth_",
        &[Part::Run(Of::Alnum, 32, LONG)],
    ),
    prefix(
        "grafana_token",
        "glsa_",
        &[
            Part::Run(Of::Alnum, 32, 32),
            Part::Text("_"),
            Part::Run(Of::Hex, 8, 8),
        ],
    ),
    prefix("grafana_token", "glc_", &[Part::Run(Of::Base64, 32, LONG)]),
    prefix(
        "newrelic_key",
        "NRAK-",
        &[Part::Run(Of::UpperDigit, 27, 27)],
    ),
    Format {
        free: false,
        ..prefix(
            "age_secret_key",
            "AGE-SECRET-KEY-1",
            &[Part::Run(Of::UpperDigit, 58, 58)],
        )
    },
    Format {
        free: false,
        keep_literal: true,
        ..prefix(
            "azure_storage_key",
            "AccountKey=",
            &[Part::Run(Of::Base64, 86, 88)],
        )
    },
    prefix("huggingface_token", "hf_", &[Part::Run(Of::Alnum, 34, 40)]),
    prefix(
        "sendgrid_key",
        "SG.",
        &[
            Part::Run(Of::Url, 22, 22),
            Part::Text("."),
            Part::Run(Of::Url, 43, 43),
        ],
    ),
    Format {
        before: Some((Of::Digit, 8, 10)),
        ..prefix("telegram_token", ":AA", &[Part::Run(Of::Url, 33, 33)])
    },
    prefix("twilio_key", "SK", HEX_32),
    Format {
        before: Some((Of::Azure, 4, 4)),
        ..prefix("azure_client_secret", "Q~", &[Part::Run(Of::Azure, 31, 34)])
    },
    prefix(
        "huggingface_token",
        "api_org_",
        &[Part::Run(Of::Alnum, 34, 34)],
    ),
    prefix(
        "atlassian_token",
        "ATCTT3",
        &[Part::Run(Of::UrlDot, 40, LONG)],
    ),
    prefix("atlassian_token", "ATBB", &[Part::Run(Of::Alnum, 32, 32)]),
    prefix("gitlab_token", "GR1348941", URL_20),
    gitlab("glrtr-"),
    gitlab("glffct-"),
    prefix("newrelic_key", "NRII-", &[Part::Run(Of::Url, 32, 32)]),
    prefix("newrelic_key", "NRRA-", &[Part::Run(Of::Hex, 42, 42)]),
    prefix(
        "sentry_token",
        "sntrys_",
        &[Part::Run(Of::Base64, 60, LONG)],
    ),
    prefix("sentry_token", "sntryu_", HEX_64),
    prefix(
        "postman_key",
        "PMAK-",
        &[
            Part::Run(Of::Hex, 24, 24),
            Part::Text("-"),
            Part::Run(Of::Hex, 34, 34),
        ],
    ),
    prefix("rubygems_token", "rubygems_", &[Part::Run(Of::Hex, 48, 48)]),
    prefix("pulumi_token", "pul-", &[Part::Run(Of::Hex, 40, 40)]),
    prefix("doppler_token", "dp.pt.", &[Part::Run(Of::Alnum, 40, 44)]),
    prefix("doppler_token", "dp.st.", URL_DOT_40),
    prefix("figma_token", "figd_", URL_40),
    prefix("notion_token", "ntn_", &[Part::Run(Of::Alnum, 40, 50)]),
    prefix("brevo_key", "xkeysib-", HEX_64_DASHED),
    prefix("mailgun_key", "key-", HEX_32),
    prefix("square_token", "sq0atp-", &[Part::Run(Of::Url, 22, 22)]),
    prefix("square_token", "sq0csp-", &[Part::Run(Of::Url, 43, 43)]),
    prefix("groq_key", "gsk_", &[Part::Run(Of::Alnum, 48, 56)]),
    prefix("xai_key", "xai-", &[Part::Run(Of::Alnum, 70, 90)]),
    prefix("perplexity_key", "pplx-", &[Part::Run(Of::Alnum, 40, 60)]),
    prefix("replicate_token", "r8_", &[Part::Run(Of::Alnum, 37, 40)]),
    prefix(
        "langsmith_key",
        "lsv2_pt_",
        &[
            Part::Run(Of::Hex, 32, 32),
            Part::Text("_"),
            Part::Run(Of::Hex, 10, 10),
        ],
    ),
    prefix(
        "langsmith_key",
        "lsv2_sk_",
        &[
            Part::Run(Of::Hex, 32, 32),
            Part::Text("_"),
            Part::Run(Of::Hex, 10, 10),
        ],
    ),
    prefix("nvidia_key", "nvapi-", URL_40),
    prefix("supabase_token", "sbp_", &[Part::Run(Of::Hex, 40, 40)]),
    prefix("posthog_key", "phx_", &[Part::Run(Of::Alnum, 40, 60)]),
    prefix("nuget_key", "oy2", &[Part::Run(Of::Alnum, 43, 43)]),
    prefix("artifactory_token", "AKCp", &[Part::Run(Of::Alnum, 60, 80)]),
    prefix(
        "alibaba_access_key",
        "LTAI",
        &[Part::Run(Of::Alnum, 16, 24)],
    ),
    prefix("sourcegraph_token", "sgp_", &[Part::Run(Of::Hex, 40, 40)]),
    prefix(
        "onepassword_token",
        "ops_eyJ",
        &[Part::Run(Of::Base64, 200, LONG)],
    ),
    Format {
        before: Some((Of::Alnum, 14, 14)),
        ..prefix(
            "terraform_token",
            ".atlasv1.",
            &[Part::Run(Of::Url, 60, 70)],
        )
    },
];
