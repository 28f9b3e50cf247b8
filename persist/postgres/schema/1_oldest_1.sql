-- Version 1 of the journal's schema.

-- Numbers order the records. CACHE 1 is the default and must stay: a number that a session
-- keeps for later would come back in the wrong order.
CREATE SEQUENCE {schema}.record_seq AS bigint CACHE 1;

-- One row is one operation. Keys and accounts are bytes, so that no collation makes two of
-- them one. Times are nanoseconds since 1970; 0 is no time. state: 0 pending, 1 held,
-- 2 confirmed, 3 mismatched, 4 settled, 5 abandoned.
CREATE TABLE {schema}.record (
  id           bytea    NOT NULL PRIMARY KEY,
  seq          bigint,
  revision     bigint   NOT NULL,
  token        bytea    NOT NULL,
  account      bytea    NOT NULL,
  op_key       bytea    NOT NULL,
  fingerprint  bytea    NOT NULL,
  generated    smallint NOT NULL,
  created      bigint   NOT NULL,
  keep_window  bigint   NOT NULL,
  origin       bytea    NOT NULL,
  state        smallint NOT NULL,
  unreported   smallint NOT NULL,
  swept        smallint NOT NULL,
  next_attempt bigint   NOT NULL,
  finished     bigint   NOT NULL,
  lease_owner  bytea    NOT NULL,
  lease_until  bigint   NOT NULL,
  intent       bytea    NOT NULL,
  progress     bytea    NOT NULL,
  body         bytea,
  answer       bytea
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

-- Not unique: a unique column is part of the row's key, and an update of it would wait for
-- transactions that only look at the row.
CREATE INDEX record_seq_idx ON {schema}.record (seq);

CREATE INDEX record_unnumbered_idx ON {schema}.record (id) WHERE seq IS NULL;

CREATE INDEX record_open_idx ON {schema}.record (state, seq) WHERE state < 2;

CREATE INDEX record_due_idx ON {schema}.record (next_attempt) WHERE state = 0;

CREATE INDEX record_orphan_idx ON {schema}.record (fingerprint) WHERE generated = 1 AND (unreported = 1 OR state < 2);

CREATE INDEX record_sweep_idx ON {schema}.record (swept, generated, finished, id) WHERE finished > 0 AND state >= 2;
