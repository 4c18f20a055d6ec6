-- Who may do what with the audit (store/audit_events.rs, store/schema.rs):
--
-- * `toolgate_audit_writer` may insert, and read no more than names, writers and the keys
--   of events. The lanes write as this role.
-- * `toolgate_audit_reader` may select, and sees the rows of the tenants that its session
--   may read. Row-level security decides on the tables; the view `audit_tenant_calls`
--   has the names with them.
-- * `toolgate_service` is for a login that serves without owning anything: everything but
--   the audit, and of the audit only reading.
-- * Whoever owns the tables makes and drops partitions.
--
-- Roles belong to the whole cluster and making them takes a right that the owner need not
-- have. So all of it is one function that may be run again at any time: `toolgate migrate`
-- does, and a DBA may.

-- Row-level security goes by a column of the row's own.
ALTER TABLE audit_bodies ADD COLUMN tenant_id integer;
ALTER TABLE audit_callers ADD COLUMN tenant_id integer;

-- Logins that may read, and which tenants. `*` lets a login name the tenant itself, as the
-- owner may: by `SET toolgate.tenant = '…'`.
CREATE TABLE audit_readers (
    login  name NOT NULL,
    tenant text NOT NULL,
    CONSTRAINT audit_readers_pkey PRIMARY KEY (login, tenant)
);

-- The tenants whose rows this session may read. Runs with its owner's rights: a reader
-- sees neither `audit_readers` nor the dictionary.
CREATE FUNCTION audit_readable_tenants() RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT coalesce(array_agg(tenant), '{}') FROM (
        SELECT tenant FROM audit_readers WHERE login = session_user AND tenant <> '*'
        UNION
        SELECT current_setting('toolgate.tenant', true)
        WHERE EXISTS (SELECT FROM audit_readers WHERE login = session_user AND tenant = '*')
           OR pg_has_role(session_user,
                  (SELECT relowner FROM pg_class WHERE oid = 'audit_events'::regclass), 'MEMBER')
    ) AS readable WHERE tenant <> ''
$$;

CREATE FUNCTION audit_readable_tenant_ids() RETURNS integer[]
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT coalesce(array_agg(name_id), '{}') FROM audit_names
    WHERE name = ANY (audit_readable_tenants())
$$;

-- Nobody's temporary tables stand in for ours.
DO $$
DECLARE
    function text;
BEGIN
    FOREACH function IN ARRAY ARRAY['audit_readable_tenants', 'audit_readable_tenant_ids'] LOOP
        EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', function, current_schema());
    END LOOP;
END
$$;

-- Makes the roles where they are missing, gives them what they may do, and the roles to
-- `login`. Says what could not be done; null when nothing is missing.
CREATE FUNCTION audit_separate_roles(logins name[]) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    role    name;
    grantee name;
    found   record;
BEGIN
    FOREACH role IN ARRAY ARRAY['toolgate_audit_writer', 'toolgate_audit_reader', 'toolgate_service'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = role);
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN
                NULL;
            WHEN insufficient_privilege THEN
                RETURN format('there is no role %s and this login may not make one', role);
        END;
    END LOOP;

    FOR found IN
        SELECT c.relname AS name, c.relname LIKE 'audit\_%' AS audit, c.relkind <> 'v' AS is_table
        FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v')
          AND NOT c.relispartition AND c.relname NOT IN ('audit_readers', 'audit_tenant_calls')
    LOOP
        IF found.audit THEN
            IF found.is_table THEN
                EXECUTE format('GRANT INSERT ON %I TO toolgate_audit_writer', found.name);
            END IF;
            EXECUTE format('GRANT SELECT ON %I TO toolgate_service', found.name);
        ELSIF found.name = '_sqlx_migrations' THEN
            EXECUTE format('GRANT SELECT ON %I TO toolgate_service', found.name);
        ELSE
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO toolgate_service', found.name);
        END IF;
    END LOOP;
    -- For the figure of what lies there, which should be nothing.
    GRANT SELECT ON audit_events_default, audit_bodies_default TO toolgate_service;
    GRANT SELECT ON audit_names, audit_writers TO toolgate_audit_writer;
    GRANT SELECT (call_id, event, at) ON audit_events TO toolgate_audit_writer;
    GRANT SELECT ON audit_events, audit_bodies, audit_callers TO toolgate_audit_reader;

    FOR found IN SELECT unnest(ARRAY['audit_events', 'audit_bodies', 'audit_callers']) AS name LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_policy WHERE polrelid = found.name::regclass);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', found.name);
        EXECUTE format('CREATE POLICY %I ON %I FOR INSERT TO toolgate_audit_writer WITH CHECK (true)',
            found.name || '_written', found.name);
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO toolgate_audit_writer, toolgate_service USING (true)',
            found.name || '_served', found.name);
        -- In a subquery: asked once a statement, not once a row.
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO toolgate_audit_reader
            USING (tenant_id = ANY ((SELECT audit_readable_tenant_ids())::integer[]))',
            found.name || '_read', found.name);
    END LOOP;

    -- Made anew each time: its columns are those that `audit_calls` has now.
    DROP VIEW IF EXISTS audit_tenant_calls;
    CREATE VIEW audit_tenant_calls WITH (security_barrier) AS
        SELECT * FROM audit_calls WHERE tenant = ANY ((SELECT audit_readable_tenants())::text[]);
    -- Whoever runs this: a superuser's view would be in the way of the owner's next time.
    EXECUTE format('ALTER VIEW audit_tenant_calls OWNER TO %s',
        (SELECT relowner::regrole::text FROM pg_class WHERE oid = 'audit_events'::regclass));
    GRANT SELECT ON audit_tenant_calls TO toolgate_audit_reader, toolgate_service;

    FOREACH role IN ARRAY ARRAY['toolgate_audit_writer', 'toolgate_audit_reader', 'toolgate_service'] LOOP
        IF NOT has_schema_privilege(role, current_schema(), 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role);
        END IF;
        FOREACH grantee IN ARRAY logins LOOP
            CONTINUE WHEN pg_has_role(grantee, role, 'MEMBER') AND
                (current_setting('server_version_num')::integer < 160000
                 OR pg_has_role(grantee, role, 'SET'));
            BEGIN
                EXECUTE format('GRANT %I TO %I', role, grantee);
            EXCEPTION WHEN insufficient_privilege THEN
                RETURN format('%s is no member of %s and this login may not make it one', grantee, role);
            END;
        END LOOP;
    END LOOP;
    RETURN NULL;
END
$$;
