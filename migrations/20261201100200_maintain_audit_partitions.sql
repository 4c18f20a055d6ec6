-- Upkeep of the daily partitions (audit/upkeep.rs, store/audit_partitions.rs): one day a
-- call, so that every lock is held for a moment and a run that is cut short leaves whole
-- days. Both functions may be run side by side and again.

-- Makes the partitions of `day` where they are missing, and moves there what lies in the
-- default partition of it. Says how many rows it moved; null, and nothing is done, where
-- more than `most` rows of a day that is still being written would have to be moved: the
-- writers would wait for it.
CREATE FUNCTION audit_make_partition(day date, most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    -- In the order in which the writers' statement comes to them.
    parents CONSTANT text[] := ARRAY['audit_callers', 'audit_bodies', 'audit_events'];
    parent text;
    part   text;
    span   text;
    low    text;
    high   text;
    rows   bigint;
    moved  bigint := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('toolgate.audit.partitions', 0));
    FOREACH parent IN ARRAY parents LOOP
        CONTINUE WHEN to_regclass(parent || to_char(day, '_YYYYMMDD')) IS NOT NULL;
        CONTINUE WHEN day < (now() AT TIME ZONE 'UTC')::date;
        EXECUTE format('SELECT count(*) FROM (SELECT FROM %I WHERE %s LIMIT %s) AS counted',
            parent || '_default', audit_day_span(parent, day), most::bigint + 1) INTO rows;
        IF rows > most THEN
            RETURN NULL;
        END IF;
    END LOOP;
    FOREACH parent IN ARRAY parents LOOP
        part := parent || to_char(day, '_YYYYMMDD');
        CONTINUE WHEN to_regclass(part) IS NOT NULL;
        span := audit_day_span(parent, day);
        IF parent = 'audit_events' THEN
            low  := quote_literal(day::timestamp AT TIME ZONE 'UTC');
            high := quote_literal((day + 1)::timestamp AT TIME ZONE 'UTC');
        ELSE
            low  := quote_literal(day);
            high := quote_literal(day + 1);
        END IF;
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, parent);
        -- Attached rather than made in place: inserts into other days go on. Nobody may put
        -- a row of this day into the default partition between moving and attaching.
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_default');
        EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %s RETURNING *) INSERT INTO %I SELECT * FROM moved',
            parent || '_default', span, part);
        GET DIAGNOSTICS rows = ROW_COUNT;
        moved := moved + rows;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
            parent, part, low, high);
    END LOOP;
    RETURN moved;
END
$$;

-- The rows of a day, as a condition.
CREATE FUNCTION audit_day_span(parent text, day date) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE parent
        WHEN 'audit_events' THEN format('at >= %L AND at < %L',
            day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC')
        ELSE format('day = %L', day)
    END
$$;

-- Drops the partitions of `day`, and says whether there were any.
CREATE FUNCTION audit_drop_partition(day date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    parent  text;
    part    text;
    dropped boolean := false;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('toolgate.audit.partitions', 0));
    FOREACH parent IN ARRAY ARRAY['audit_callers', 'audit_bodies', 'audit_events'] LOOP
        part := parent || to_char(day, '_YYYYMMDD');
        CONTINUE WHEN to_regclass(part) IS NULL;
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, part);
        EXECUTE format('DROP TABLE %I', part);
        dropped := true;
    END LOOP;
    RETURN dropped;
END
$$;
