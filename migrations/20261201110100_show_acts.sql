-- The view shows acts too: sign-ins, reloads, erasures and the rest, whose numbers begin
-- at 16. Their `tool` is what was done, their `arguments` are details as JSON, their
-- tenant is empty where they belong to none.

CREATE OR REPLACE VIEW audit_calls AS
SELECT s.call_id,
       s.at,
       s.event,
       s.linked_call_id,
       tenant.name                                     AS tenant,
       caller.issuer,
       caller.subject,
       caller.client,
       caller.grant_id,
       caller.token_id,
       caller.address,
       caller.client_info,
       version.name                                    AS version,
       upstream.name                                   AS upstream,
       coalesce(tool.name, body.tool)                  AS tool,
       upstream_tool.name                              AS upstream_tool,
       definition.name                                 AS definition_digest,
       configuration.name                              AS configuration_digest,
       s.arguments_mode,
       body.arguments,
       body.arguments_digest,
       body.marks,
       s.arguments_bytes,
       s.request_bytes,
       s.trace_id,
       coalesce(s.refused_count, 1)                    AS calls,
       coalesce(correction.outcome, finish.outcome, refusal.name, 'unknown') AS outcome,
       coalesce(finish.reason, body.reason)            AS reason,
       coalesce(finish.findings, body.findings)        AS findings,
       finish.at                                       AS finished_at,
       coalesce(finish.upstream_micros, s.upstream_micros) AS upstream_micros,
       coalesce(finish.total_micros, s.total_micros)   AS total_micros,
       coalesce(finish.response_bytes, s.response_bytes) AS response_bytes
FROM audit_events s
JOIN audit_names tenant ON tenant.name_id = s.tenant_id
LEFT JOIN audit_callers caller ON caller.day = (s.at AT TIME ZONE 'UTC')::date
    AND caller.writer_id = s.writer_id AND caller.caller_id = s.caller_id
LEFT JOIN audit_bodies body ON body.day = (s.at AT TIME ZONE 'UTC')::date
    AND body.call_id = s.call_id AND body.event = s.event
LEFT JOIN audit_names version ON version.name_id = s.version_id
LEFT JOIN audit_names upstream ON upstream.name_id = s.upstream_id
LEFT JOIN audit_names tool ON tool.name_id = s.tool_id
LEFT JOIN audit_names upstream_tool ON upstream_tool.name_id = s.upstream_tool_id
LEFT JOIN audit_names definition ON definition.name_id = s.definition_id
LEFT JOIN audit_names configuration ON configuration.name_id = s.configuration_id
LEFT JOIN audit_names refusal ON refusal.name_id = s.outcome_id
LEFT JOIN LATERAL (
    SELECT f.at, outcome.name AS outcome, finish_body.reason, finish_body.findings,
           f.upstream_micros, f.total_micros, f.response_bytes
    FROM audit_events f
    JOIN audit_names outcome ON outcome.name_id = f.outcome_id
    LEFT JOIN audit_bodies finish_body ON finish_body.day = (f.at AT TIME ZONE 'UTC')::date
        AND finish_body.call_id = f.call_id AND finish_body.event = f.event
    WHERE s.event = 1 AND f.call_id = s.call_id AND f.event = 2
        AND f.at >= s.at - interval '1 minute' AND f.at < s.at + interval '8 days'
    LIMIT 1
) finish ON true
LEFT JOIN LATERAL (
    SELECT outcome.name AS outcome
    FROM audit_events c
    JOIN audit_names outcome ON outcome.name_id = c.outcome_id
    WHERE s.event = 1 AND c.call_id = s.call_id AND c.event = 4
        AND c.at >= s.at - interval '1 minute' AND c.at < s.at + interval '9 days'
    LIMIT 1
) correction ON true
WHERE s.event IN (1, 3) OR s.event >= 16;
