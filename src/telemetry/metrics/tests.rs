//! What a scrape shows.

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// The value of a series, by its whole text before the value.
fn value(metrics: &Metrics, series: &str) -> Option<String> {
    metrics.render().lines().find_map(|line| {
        line.strip_prefix(series)?
            .strip_prefix(' ')
            .map(str::to_owned)
    })
}

const SHOWN: &[(&str, &str)] = &[
    (
        r#"mcp_server_operation_duration_seconds_count{method="tools/call",upstream="search",tool="find",outcome="ok",error_type=""}"#,
        "1",
    ),
    (
        r#"mcp_server_operation_duration_seconds_bucket{le="0.02",method="tools/call",upstream="search",tool="find",outcome="ok",error_type=""}"#,
        "1",
    ),
    (
        r#"mcp_server_operation_duration_seconds_count{method="tools/list",upstream="",tool="",outcome="refused",error_type="-32602"}"#,
        "1",
    ),
    (
        r#"toolgate_calls_total{upstream="search",tool="find",outcome="ok"}"#,
        "1",
    ),
    (
        r#"toolgate_calls_total{upstream="",tool="other",outcome="refused"}"#,
        "1",
    ),
    (
        r#"mcp_client_operation_duration_seconds_count{method="tools/call",upstream="search",tool="find",transport="tcp",error_type="timeout"}"#,
        "1",
    ),
    (
        r#"mcp_server_session_duration_seconds_count{version="2025-11-25"}"#,
        "1",
    ),
    (
        r#"mcp_client_session_duration_seconds_count{upstream="search",version="2025-11-25",transport="pipe"}"#,
        "1",
    ),
    (
        r#"toolgate_tenant_calls_total{tenant="acme",outcome="ok"}"#,
        "1",
    ),
    (r#"toolgate_refusals_total{reason="limit"}"#, "1"),
    (
        r#"toolgate_authentication_failures_total{reason="expired"}"#,
        "1",
    ),
    (
        r#"toolgate_sanitize_findings_total{label="github_token"}"#,
        "2",
    ),
    ("toolgate_audit_batch_size_sum", "3.0"),
    ("toolgate_audit_commit_seconds_count", "1"),
    ("toolgate_audit_failures_total", "1"),
    ("toolgate_audit_lag_seconds_count", "1"),
    ("toolgate_audit_lost_total", "1"),
    ("toolgate_audit_orphans_closed_total", "2"),
    ("toolgate_audit_partitions_ahead", "7"),
    ("toolgate_audit_default_rows", "0"),
    ("toolgate_audit_restricted", "1"),
    ("toolgate_inflight_calls", "1"),
    ("toolgate_open_streams", "1"),
    (r#"toolgate_upstream_up{upstream="search"}"#, "1"),
    (r#"toolgate_config_reloads_total{result="refused"}"#, "1"),
    ("process_start_time_seconds", "1700000000"),
];

#[test]
fn every_metric_is_shown_under_its_name() {
    let metrics = Metrics::with(1_700_000_000, true, &Losses::default());
    let search = UpstreamId::new("search");
    metrics
        .tool(&search, &ToolName::new("find"))
        .took(CallOutcome::Ok, "", MILLISECOND * 15);
    metrics
        .tool(&search, &ToolName::new("find"))
        .count(CallOutcome::Ok);
    metrics.unresolved().count(CallOutcome::Refused);
    metrics.operation("tools/list", "refused", "-32602", MILLISECOND);
    let sent = SentMessage {
        upstream: &search,
        transport: "tcp",
        method: "tools/call",
        tool: Some("find"),
        error_type: "timeout",
    };
    metrics.sent(sent, MILLISECOND);
    metrics.session_ended("2025-11-25", MILLISECOND);
    metrics.upstream_session_ended(&search, "2025-11-25", "pipe", MILLISECOND);
    metrics.tenant_call(&crate::ids::TenantId::new("acme"), CallOutcome::Ok);
    metrics.refusal("limit");
    metrics.authentication_failure("expired");
    metrics.findings("github_token", 2);
    metrics.audit_committed(3, MILLISECOND, MILLISECOND);
    metrics.audit_lost();
    metrics.audit_orphans_closed(2);
    metrics.audit_queued("started", 4);
    metrics.audit_unsigned("started", 2);
    metrics.audit_partitions(7, 0);
    metrics.audit_restricted(true);
    metrics.audit_failed();
    metrics.upstream_up(&search, true);
    metrics.config_reload(false);
    let _call = metrics.inflight_call();
    let _stream = metrics.open_stream();
    for (series, expected) in SHOWN {
        let shown = value(&metrics, series);
        assert_eq!(
            shown.as_deref(),
            Some(*expected),
            "{series}\n{}",
            metrics.render()
        );
    }
    assert!(metrics.render().ends_with("# EOF\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn cpu_time_and_file_handles_of_the_process_grow_with_their_use() {
    let metrics = Metrics::new(0);
    let number = |name| value(&metrics, name).unwrap().parse::<f64>().unwrap();
    let (handles, cpu) = (
        number("process_open_fds"),
        number("process_cpu_seconds_total"),
    );
    let opened: Vec<_> = (0..64)
        .map(|_| std::fs::File::open("/dev/null").unwrap())
        .collect();
    // Other tests close some of theirs meanwhile.
    assert!(number("process_open_fds") > handles + 16.0);
    drop(opened);
    let mut work = 0_u64;
    while number("process_cpu_seconds_total") <= cpu {
        work = work.wrapping_add(1);
    }
    assert!(work < 1_000_000);
}

#[test]
fn the_memory_of_the_process_is_shown_in_bytes() {
    let shown = value(&Metrics::new(0), "process_resident_memory_bytes").unwrap();
    assert!(shown.parse::<i64>().unwrap() > 1 << 20, "{shown}");
}

#[test]
fn what_ends_is_no_longer_counted() {
    let metrics = Metrics::new(0);
    let search = UpstreamId::new("search");
    drop(metrics.inflight_call());
    drop(metrics.open_stream());
    metrics.upstream_up(&search, true);
    metrics.upstream_gone(&search);
    assert_eq!(
        value(&metrics, "toolgate_inflight_calls").as_deref(),
        Some("0")
    );
    assert_eq!(
        value(&metrics, "toolgate_open_streams").as_deref(),
        Some("0")
    );
    assert!(!metrics.render().contains("toolgate_upstream_up{"));
}

#[test]
fn the_first_five_hundred_tools_have_series_of_their_own() {
    let metrics = Metrics::new(0);
    let (one, two) = (UpstreamId::new("one"), UpstreamId::new("two"));
    for number in 0..600 {
        let tool = ToolName::new(format!("tool_{number}"));
        metrics.tool(&one, &tool).count(CallOutcome::Ok);
    }
    // A name that has its own keeps it, with another upstream too.
    for (upstream, tool) in [(&one, "tool_0"), (&two, "tool_0"), (&two, "new")] {
        metrics
            .tool(upstream, &ToolName::new(tool))
            .count(CallOutcome::Ok);
    }
    for (series, expected) in [
        (
            r#"toolgate_calls_total{upstream="one",tool="tool_0",outcome="ok"}"#,
            Some("2"),
        ),
        (
            r#"toolgate_calls_total{upstream="one",tool="tool_499",outcome="ok"}"#,
            Some("1"),
        ),
        (
            r#"toolgate_calls_total{upstream="one",tool="tool_500",outcome="ok"}"#,
            None,
        ),
        (
            r#"toolgate_calls_total{upstream="one",tool="other",outcome="ok"}"#,
            Some("100"),
        ),
        (
            r#"toolgate_calls_total{upstream="two",tool="tool_0",outcome="ok"}"#,
            Some("1"),
        ),
        (
            r#"toolgate_calls_total{upstream="two",tool="other",outcome="ok"}"#,
            Some("1"),
        ),
    ] {
        assert_eq!(value(&metrics, series).as_deref(), expected, "{series}");
    }
}

#[test]
fn tenants_are_no_label_unless_the_operator_says_so() {
    let metrics = Metrics::new(0);
    metrics.tenant_call(&crate::ids::TenantId::new("acme"), CallOutcome::Ok);
    assert!(!metrics.render().contains("acme"));
}

#[test]
fn the_handle_of_a_tool_is_made_once() {
    let metrics = Metrics::new(0);
    let (upstream, tool) = (UpstreamId::new("one"), ToolName::new("find"));
    assert!(Arc::ptr_eq(
        &metrics.tool(&upstream, &tool),
        &metrics.tool(&upstream, &tool)
    ));
}

#[test]
fn every_outcome_has_a_place_and_a_word_of_its_own() {
    let words: std::collections::HashSet<_> = CallOutcome::ALL
        .iter()
        .map(|outcome| outcome.as_str())
        .collect();
    assert_eq!(words.len(), CallOutcome::ALL.len());
    for (place, outcome) in CallOutcome::ALL.into_iter().enumerate() {
        assert_eq!(outcome as usize, place);
    }
}
