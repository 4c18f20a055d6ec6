#!/usr/bin/env python3
"""The Grafana dashboard as code: prints helm/toolgate/files/dashboard.json.

    helm/dashboard.py > helm/toolgate/files/dashboard.json
"""
import json

JOB = 'job=~"$job",namespace=~"$namespace"'
ids = iter(range(1, 1000))


def target(expr, legend, instant=False):
    return {
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "expr": expr.replace("$sel", JOB),
        "legendFormat": legend,
        "exemplar": "_bucket{" in expr and not instant,
        "refId": chr(65 + next(refs)),
        "instant": instant,
        "range": not instant,
    }


def panel(kind, title, description, unit, *exprs, width=8, height=8, stack=False, steps=None):
    global refs
    refs = iter(range(26))
    custom = {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": True}
    if stack:
        custom["stacking"] = {"mode": "normal"}
        custom["fillOpacity"] = 40
    defaults = {"unit": unit, "min": 0, "custom": custom}
    if steps:
        defaults["thresholds"] = {"mode": "absolute", "steps": [{"color": c, "value": v} for v, c in steps]}
    options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    if kind == "stat":
        defaults.pop("custom")
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "area"}
    return {
        "id": next(ids),
        "type": kind,
        "title": title,
        "description": description,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [target(expr, legend) for expr, legend in exprs],
        "gridPos": {"w": width, "h": height},
    }


def p(quantile, metric, by, only=""):
    return f"histogram_quantile({quantile}, sum by (le{',' + by if by else ''}) (rate({metric}_bucket{{$sel{only}}}[$__rate_interval])))"


CALLS = ',method="tools/call"'


ROWS = [
    ("What callers see", [
        panel("stat", "Calls a second", "All tools, all tenants.", "reqps", ("sum(rate(toolgate_calls_total{$sel}[$__rate_interval]))", ""), width=4, height=4),
        panel("stat", "Answered well", "Share of calls that ended `ok`. Tools that report an error count against it.", "percentunit",
              ('sum(rate(toolgate_calls_total{$sel,outcome="ok"}[$__rate_interval])) / sum(rate(toolgate_calls_total{$sel}[$__rate_interval]))', ""),
              width=4, height=4, steps=[(None, "red"), (0.95, "orange"), (0.99, "green")]),
        panel("stat", "Median", "Of a call, the upstream's time included.", "s", (p(0.5, "mcp_server_operation_duration_seconds", "", CALLS), ""), width=4, height=4),
        panel("stat", "99th percentile", "Of a call, the upstream's time included.", "s", (p(0.99, "mcp_server_operation_duration_seconds", "", CALLS), ""), width=4, height=4),
        panel("stat", "Calls in flight", "Over all replicas.", "short", ("sum(toolgate_inflight_calls{$sel})", ""), width=4, height=4),
        panel("stat", "Open streams", "Over all replicas.", "short", ("sum(toolgate_open_streams{$sel})", ""), width=4, height=4),
        panel("timeseries", "Calls by outcome", "The words are those of the audit.", "reqps", ("sum by (outcome) (rate(toolgate_calls_total{$sel}[$__rate_interval]))", "{{outcome}}"), stack=True),
        panel("timeseries", "Duration by upstream, 99th percentile", "Of a call. Points lead to traces, where these are sampled.", "s", (p(0.99, "mcp_server_operation_duration_seconds", "upstream", CALLS), "{{upstream}}")),
        panel("timeseries", "Refused", "Before anything was dispatched.", "reqps", ("sum by (reason) (rate(toolgate_refusals_total{$sel}[$__rate_interval]))", "{{reason}}"), stack=True),
    ]),
    ("Tools and upstreams", [
        panel("timeseries", "Upstreams that answer", "1: it does.", "short", ("min by (upstream) (toolgate_upstream_up{$sel})", "{{upstream}}")),
        panel("timeseries", "Busiest tools", "The first 500 exposed names have series of their own.", "reqps", ("topk(10, sum by (tool) (rate(toolgate_calls_total{$sel}[$__rate_interval])))", "{{tool}}")),
        panel("timeseries", "Failing tools", "Errors of upstreams and time-outs.", "reqps", ('topk(10, sum by (tool) (rate(toolgate_calls_total{$sel,outcome=~"upstream_error|timeout"}[$__rate_interval])))', "{{tool}}")),
    ]),
    ("Messages", [
        panel("timeseries", "From clients", "Requests and notifications by method.", "reqps", ("sum by (method) (rate(mcp_server_operation_duration_seconds_count{$sel}[$__rate_interval]))", "{{method}}"), stack=True),
        panel("timeseries", "Errors told to clients", "`tool_error`, or the code of the JSON-RPC error.", "reqps", ('sum by (error_type) (rate(mcp_server_operation_duration_seconds_count{$sel,error_type!=""}[$__rate_interval]))', "{{error_type}}"), stack=True),
        panel("timeseries", "To upstreams, 99th percentile", "What an upstream itself takes; the rest of a call is Toolgate's.", "s", (p(0.99, "mcp_client_operation_duration_seconds", "upstream"), "{{upstream}}")),
        panel("timeseries", "Errors of upstreams", "By kind.", "reqps", ('sum by (upstream, error_type) (rate(mcp_client_operation_duration_seconds_count{$sel,error_type!=""}[$__rate_interval]))', "{{upstream}} {{error_type}}"), stack=True),
        panel("timeseries", "Calls by tenant", "Where `telemetry.tenant_metrics` is on.", "reqps", ("sum by (tenant) (rate(toolgate_tenant_calls_total{$sel}[$__rate_interval]))", "{{tenant}}"), stack=True),
        panel("timeseries", "Telemetry lost", "Spans, log records and exports that did not reach the collector.", "short", ("sum by (signal, reason) (increase(toolgate_telemetry_lost_total{$sel}[$__rate_interval]))", "{{signal}} {{reason}}")),
    ]),
    ("Security", [
        panel("timeseries", "Refused tokens", "By reason.", "reqps", ("sum by (reason) (rate(toolgate_authentication_failures_total{$sel}[$__rate_interval]))", "{{reason}}"), stack=True),
        panel("timeseries", "Found by sanitising", "By kind; values are kept nowhere.", "short", ("sum by (label) (rate(toolgate_sanitize_findings_total{$sel}[$__rate_interval]))", "{{label}}"), stack=True),
        panel("timeseries", "Changed configurations", "Taken and refused.", "short", ("sum by (result) (increase(toolgate_config_reloads_total{$sel}[$__rate_interval]))", "{{result}}")),
    ]),
    ("Audit", [
        panel("timeseries", "Commit", "A strict call waits for two of them.", "s", (p(0.5, "toolgate_audit_commit_seconds", ""), "median"), (p(0.99, "toolgate_audit_commit_seconds", ""), "99th percentile")),
        panel("timeseries", "Events in a batch", "", "short", ("sum(rate(toolgate_audit_batch_size_sum{$sel}[$__rate_interval])) / sum(rate(toolgate_audit_batch_size_count{$sel}[$__rate_interval]))", "average")),
        panel("timeseries", "Batches that failed", "0 unless the database is away.", "short", ("sum(rate(toolgate_audit_failures_total{$sel}[$__rate_interval]))", "a second")),
    ]),
    ("Replicas", [
        panel("timeseries", "CPU", "", "short", ("rate(process_cpu_seconds_total{$sel}[$__rate_interval])", "{{pod}}")),
        panel("timeseries", "Memory", "Resident.", "bytes", ("process_resident_memory_bytes{$sel}", "{{pod}}")),
        panel("timeseries", "File handles", "", "short", ("process_open_fds{$sel}", "{{pod}}")),
    ]),
]


def variable(name, label, query, **more):
    return {"name": name, "label": label, "type": "query", "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "query": {"query": query, "refId": name}, "refresh": 2, "includeAll": True, "multi": True, "allValue": ".*",
            "current": {"text": "All", "value": "$__all"}, **more}


def laid_out():
    y = 0
    for title, panels in ROWS:
        yield {"id": next(ids), "type": "row", "title": title, "collapsed": False, "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}, "panels": []}
        y += 1
        x = tallest = 0
        for each in panels:
            width, height = each["gridPos"]["w"], each["gridPos"]["h"]
            if x + width > 24:
                x, y, tallest = 0, y + tallest, 0
            each["gridPos"].update(x=x, y=y)
            x, tallest = x + width, max(tallest, height)
            yield each
        y += tallest


print(json.dumps({
    "uid": "toolgate",
    "title": "Toolgate",
    "description": "Calls, tools, security and audit of Toolgate.",
    "tags": ["toolgate", "mcp"],
    "schemaVersion": 39,
    "version": 1,
    "editable": True,
    "graphTooltip": 1,
    "refresh": "30s",
    "time": {"from": "now-3h", "to": "now"},
    "templating": {"list": [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}},
        variable("namespace", "Namespace", "label_values(toolgate_inflight_calls, namespace)"),
        variable("job", "Job", 'label_values(toolgate_inflight_calls{namespace=~"$namespace"}, job)'),
    ]},
    "annotations": {"list": []},
    "panels": list(laid_out()),
}, indent=2))
