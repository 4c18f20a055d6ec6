-- The record of every tools/call. Written by the lanes of `audit` in one statement a
-- batch (store/audit_events.rs), read back by look-ups of a call id and by scans of a
-- time range, newest call first (store/audit_calls.rs), and per writer in order of
-- sequence when the chain is verified (store/audit_chain.rs).
--
-- * Append-only. A call is `started` (1) and `finished` (2); what was refused before
--   dispatch is one `refused` (3). `corrected` (4) replaces the outcome of a row whose
--   commit was in doubt for so long that its caller had been told it failed. Numbers
--   from 16 on are for events of other kinds (sign-ins, consents, reloads).
-- * Partitioned by day, UTC: retention drops a day's events, bodies and callers together.
-- * Repeated texts are ids of `audit_names`. The chain covers the texts, not the ids, so
--   a renamed entry is found like an altered row.
-- * Who called and what they said are rows of their own with a salt each: erasing means
--   deleting text and salt, and the digest that stays keeps the chain whole.
-- * One index a table. call_id is a UUIDv7, so the primary key is the time index too.
--   A further index costs more than the row does.

CREATE TABLE audit_names (
    name_id integer GENERATED ALWAYS AS IDENTITY,
    name    text    NOT NULL,
    CONSTRAINT audit_names_pkey PRIMARY KEY (name_id),
    CONSTRAINT audit_names_name_key UNIQUE (name)
);

-- A writer is one lane of one process: it owns a chain per tenant.
CREATE TABLE audit_writers (
    writer_id  integer     GENERATED ALWAYS AS IDENTITY,
    replica_id uuid        NOT NULL,
    lane       smallint    NOT NULL,
    started_at timestamptz NOT NULL,
    CONSTRAINT audit_writers_pkey PRIMARY KEY (writer_id),
    CONSTRAINT audit_writers_replica_id_lane_key UNIQUE (replica_id, lane)
);

-- arguments_mode: 1 redacted, 2 full (sealed), 3 digest, 4 none.
CREATE TABLE audit_events (
    at               timestamptz NOT NULL,
    sequence         bigint      NOT NULL,
    call_id          uuid        NOT NULL,
    linked_call_id   uuid,
    upstream_micros  bigint,
    total_micros     bigint,
    refused_count    bigint,
    writer_id        integer     NOT NULL,
    tenant_id        integer     NOT NULL,
    caller_id        integer,
    version_id       integer,
    tool_id          integer,
    upstream_id      integer,
    upstream_tool_id integer,
    definition_id    integer,
    configuration_id integer,
    outcome_id       integer,
    request_bytes    integer,
    arguments_bytes  integer,
    response_bytes   integer,
    event            smallint    NOT NULL,
    arguments_mode   smallint,
    trace_id         bytea,
    leaf             bytea       NOT NULL,
    link             bytea       NOT NULL,
    CONSTRAINT audit_events_pkey PRIMARY KEY (call_id, event, at)
) PARTITION BY RANGE (at);

CREATE TABLE audit_events_default PARTITION OF audit_events DEFAULT;

-- marks: 1 a NUL was written as the six characters \u0000, 2 arguments were cut.
CREATE TABLE audit_bodies (
    call_id          uuid     NOT NULL,
    day              date     NOT NULL,
    event            smallint NOT NULL,
    marks            smallint NOT NULL,
    salt             bytea,
    digest           bytea    NOT NULL,
    arguments_digest bytea,
    arguments        text,
    tool             text,
    reason           text,
    findings         text,
    CONSTRAINT audit_bodies_pkey PRIMARY KEY (call_id, event, day)
) PARTITION BY RANGE (day);

CREATE TABLE audit_bodies_default PARTITION OF audit_bodies DEFAULT;

CREATE TABLE audit_callers (
    day         date    NOT NULL,
    writer_id   integer NOT NULL,
    caller_id   integer NOT NULL,
    salt        bytea,
    digest      bytea   NOT NULL,
    issuer      text,
    subject     text,
    client      text,
    grant_id    text,
    token_id    text,
    address     text,
    client_info text,
    CONSTRAINT audit_callers_pkey PRIMARY KEY (writer_id, caller_id, day)
) PARTITION BY RANGE (day);

CREATE TABLE audit_callers_default PARTITION OF audit_callers DEFAULT;

-- Makes the daily partitions of `days` days from `first_day` on where they are missing,
-- and says how many it made. Partitions are attached, not created in place: attaching
-- lets inserts go on. A day of which rows already lie in the default partition is left
-- to upkeep, which moves them first.
CREATE FUNCTION audit_make_partitions(first_day date, days integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    made       integer := 0;
    day        date;
    parent     text;
    new_name   text;
    low        text;
    high       text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('toolgate.audit.partitions', 0));
    FOR day IN SELECT first_day + n FROM generate_series(0, days - 1) AS n LOOP
        FOREACH parent IN ARRAY ARRAY['audit_events', 'audit_bodies', 'audit_callers'] LOOP
            new_name := parent || to_char(day, '_YYYYMMDD');
            CONTINUE WHEN to_regclass(new_name) IS NOT NULL;
            IF parent = 'audit_events' THEN
                low  := quote_literal(day::timestamp AT TIME ZONE 'UTC');
                high := quote_literal((day + 1)::timestamp AT TIME ZONE 'UTC');
            ELSE
                low  := quote_literal(day);
                high := quote_literal(day + 1);
            END IF;
            BEGIN
                EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', new_name, parent);
                EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
                    parent, new_name, low, high);
                made := made + 1;
            EXCEPTION WHEN check_violation THEN
                RAISE WARNING 'rows of % lie in the default partition of %', day, parent;
            END;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;

-- One row a call: what search, export and a SIEM read.
CREATE VIEW audit_calls AS
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
WHERE s.event IN (1, 3);
