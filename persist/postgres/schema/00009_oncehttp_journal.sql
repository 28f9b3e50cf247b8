-- +goose Up
-- Version 9 of the journal's schema. The first step makes all of it, in a schema that is there.

-- The steps that were made. A program uses tables whose latest step has an oldest version that it knows.
CREATE TABLE {schema}.version (
  version integer     NOT NULL PRIMARY KEY,
  oldest  integer     NOT NULL,
  applied timestamptz NOT NULL DEFAULT now()
);

-- Numbers order the records. CACHE 1 is the default and must stay: a number that a session
-- keeps for later would come back in the wrong order.
CREATE SEQUENCE {schema}.record_seq AS bigint CACHE 1;

-- What holds for the journal as a whole, such as its secret, and whether records are sealed. The first that needs a row inserts it.
CREATE TABLE {schema}.fact (
  name  text  NOT NULL PRIMARY KEY,
  value bytea NOT NULL
);

-- One row is one operation. Keys and accounts are bytes, so that no collation makes two of
-- them one. Times are nanoseconds since 1970; 0 is no time. From sweep_at on a sweep may change the row. It is negative
-- while the end is owed to OnResult: its amount counts once that is delivered. From owed_from on the end or the hold is owed. state: 0 pending, 1 held,
-- 2 confirmed, 3 mismatched, 4 settled, 5 abandoned. Listings and claims begin behind number 0: a row that is not numbered yet has none.
-- swept: 1 a tombstone, 2 a used key, which is a tombstone without its text. A used key has id, finished, state, swept and progress alone, account if that is inside
-- another one, and sweep_at if the key is not kept for ever. The other columns are null. No index but the primary key has it. The columns that it has come first: so
-- nothing is lost between them.
CREATE TABLE {schema}.record (
  id           bytea    NOT NULL PRIMARY KEY,
  seq          bigint   CONSTRAINT record_numbered CHECK (seq > 0),
  finished     bigint   NOT NULL,
  state        smallint NOT NULL,
  swept        smallint NOT NULL,
  progress     bytea    NOT NULL,
  account      bytea,
  revision     bigint,
  token        bytea,
  op_key       bytea,
  fingerprint  bytea,
  generated    smallint,
  created      bigint,
  sweep_at     bigint,
  origin       bytea,
  needs        bytea,
  unreported   smallint,
  next_attempt bigint,
  lease_owner  bytea,
  lease_until  bigint,
  send_until   bigint,
  owed_from    bigint,
  intent       bytea,
  body         bytea,
  answer       bytea,
  hold_reason  bytea,
  CONSTRAINT record_whole CHECK (swept = 2 OR pg_catalog.num_nulls(account, revision, token, op_key, fingerprint, generated, created, sweep_at, origin, needs,
    unreported, next_attempt, lease_owner, lease_until, send_until, owed_from, intent, hold_reason) = 0)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

-- Not unique: a unique column is part of the row's key, and an update of it would wait for
-- transactions that only look at the row.
CREATE INDEX record_seq_idx ON {schema}.record (seq) WHERE seq IS NOT NULL;

CREATE INDEX record_unnumbered_idx ON {schema}.record (id) WHERE seq IS NULL AND swept < 2;

CREATE INDEX record_open_idx ON {schema}.record (state, seq) WHERE state < 2;

-- What is due is found in the order in which it is due, of all origins, or of one with the same needs: what a client must have to act
-- on it, a text that begins with the format of intent and progress. However much waits, a claim reads only what it takes. An origin may be
-- longer than an entry of an index.
CREATE INDEX record_ready_idx ON {schema}.record (next_attempt, seq) WHERE state = 0;

CREATE INDEX record_origin_idx ON {schema}.record (sha256(origin), needs, next_attempt, seq) WHERE state = 0;

CREATE INDEX record_orphan_idx ON {schema}.record (fingerprint) WHERE generated = 1 AND (unreported = 1 OR state < 2);

-- The unfinished are counted from this index alone.
CREATE INDEX record_count_idx ON {schema}.record (state, hold_reason, created) WHERE state < 2;

CREATE INDEX record_owed_idx ON {schema}.record (seq) WHERE owed_from > 0 AND state > 0;

CREATE INDEX record_sweep_idx ON {schema}.record (sweep_at, id) WHERE sweep_at > 0;

-- One statement begins and changes several records, in one transaction. It is a function, so that a session plans its parts
-- once, also behind a pooler that allows no prepared statements. Its parameters are the bound of a wait for a lock in
-- milliseconds; the records that are begun, their bytes and their numbers: of each column a row, in the order of the table;
-- and in the same way the changes, of which the first five columns are compared, and the others set. The result is the token
-- and the number of each record that was written. The settings, and "state + 0", leave only the primary key to find a record
-- by: the plan is kept while the table grows. PL/pgSQL keeps an array that it is given in a form in which each element is
-- found at once, and an expression that is assigned costs less than a PERFORM. Whoever calls it has a search path in which others may
-- make functions of the same names: it has a path of its own.
-- +goose StatementBegin
CREATE FUNCTION {schema}.write_records (text, bytea[], bigint[], bytea[], bigint[])
RETURNS TABLE (written bytea, numbered bigint) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  bound text;
BEGIN
  bound := set_config('lock_timeout', $1, true);
  IF cardinality($2) > 0 THEN
    RETURN QUERY INSERT INTO {schema}.record (
      id, seq, revision, token, account, op_key, fingerprint, generated, created, sweep_at, origin, needs, state,
      unreported, swept, next_attempt, finished, lease_owner, lease_until, send_until, owed_from, intent, progress,
      body, answer, hold_reason
    ) SELECT
      $2[1][i], pg_catalog.nextval('{schema}.record_seq'), $3[2][i], $2[2][i], $2[3][i], $2[4][i], $2[5][i], $3[3][i], $3[4][i],
      $3[5][i], $2[6][i], $2[7][i], $3[6][i], $3[7][i], $3[8][i], $3[9][i], $3[10][i], $2[8][i], $3[11][i], $3[12][i], $3[13][i], $2[9][i],
      $2[10][i], $2[11][i], $2[12][i], $2[13][i]
    FROM generate_series(1, array_length($2, 2)) AS i ON CONFLICT (id) DO NOTHING RETURNING token, seq;
  END IF;
  IF cardinality($4) > 0 THEN
    RETURN QUERY UPDATE {schema}.record r SET revision = r.revision + 1,
      token = $4[3][i], state = $5[4][i], unreported = $5[5][i], swept = $5[6][i], next_attempt = $5[7][i],
      finished = $5[8][i], sweep_at = $5[9][i], lease_owner = $4[4][i], lease_until = $5[10][i], send_until = $5[11][i], owed_from = $5[12][i],
      progress = $4[5][i], answer = $4[6][i], needs = COALESCE($4[7][i], r.needs), hold_reason = $4[8][i],
      intent = COALESCE($4[9][i], r.intent), body = CASE WHEN $4[9][i] IS NULL THEN r.body END
    FROM generate_series(1, array_length($4, 2)) AS i
    WHERE r.id = $4[1][i] AND r.revision = $5[2][i] AND r.state + 0 < 2 AND ($5[1][i] IS NULL OR r.seq = $5[1][i])
      AND r.created = $5[3][i] AND r.fingerprint = $4[2][i] AND r.send_until <= $5[11][i] RETURNING r.token, r.seq;
  END IF;
END
$$;
-- +goose StatementEnd

-- A row in clear is refused once the journal is sealed, whoever inserts it: the facts say so from when a journal is opened with keys on. The
-- needs of a sealed record name its keys. The function runs for rows in clear alone, and as its owner: whoever may insert need not read facts.
-- Rows that stand in clear are changed and ended as before.
-- +goose StatementBegin
CREATE FUNCTION {schema}.refuse_clear () RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF EXISTS (SELECT FROM {schema}.fact WHERE name = 'seal' AND value <> 'plain') THEN
    RAISE EXCEPTION 'table {schema}.record is that of a sealed journal, and the new row is in clear; open the journal with its keys, or seal the record first (package persist/seal of oncehttp)'
      USING ERRCODE = 'check_violation', SCHEMA = '{schema}', TABLE = 'record', CONSTRAINT = 'record_sealed';
  END IF;
  RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER record_sealed BEFORE INSERT ON {schema}.record FOR EACH ROW
  WHEN (position(' seal='::bytea IN NEW.needs) = 0) EXECUTE FUNCTION {schema}.refuse_clear();

INSERT INTO {schema}.version (version, oldest) VALUES (9, 9);
