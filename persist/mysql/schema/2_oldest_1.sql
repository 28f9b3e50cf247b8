-- Version 2: what is due is found in the order in which it is due, of all origins or of one,
-- however much waits. An origin may be longer than an entry of an index.
ALTER TABLE {db}oncehttp_record
  ADD COLUMN IF NOT EXISTS origin_hash BINARY(32) AS (UNHEX(SHA2(origin, 256))) PERSISTENT;

ALTER TABLE {db}oncehttp_record
  ADD KEY IF NOT EXISTS record_ready (state, next_attempt, seq),
  ADD KEY IF NOT EXISTS record_origin (state, origin_hash, next_attempt, seq),
  DROP KEY IF EXISTS record_due;
