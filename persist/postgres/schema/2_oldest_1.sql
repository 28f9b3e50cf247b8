-- Version 2: what is due is found in the order in which it is due, of all origins or of one,
-- however much waits. An origin may be longer than an entry of an index.
CREATE INDEX record_ready_idx ON {schema}.record (next_attempt, seq) WHERE state = 0;

CREATE INDEX record_origin_idx ON {schema}.record (sha256(origin), next_attempt, seq) WHERE state = 0;

DROP INDEX {schema}.record_due_idx;
