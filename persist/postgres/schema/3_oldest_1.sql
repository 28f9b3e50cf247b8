-- Version 3: one statement begins and changes several records, in one transaction. It is a function, so that a session
-- plans its parts once, also behind a pooler that allows no prepared statements. The parameters are the bound of a wait for
-- a lock in milliseconds, the columns of the records that are begun, and the columns of a change: the first five are what
-- is compared, the others what is set. The result is the token and the number of each record that was written.
-- The settings, and "state + 0", leave only the primary key to find a record by: a plan is kept while the table grows.
CREATE FUNCTION {schema}.write_records (
  text,
  bytea[], bigint[], bigint[], bytea[], bytea[], bytea[], bytea[], bigint[], bigint[], bigint[], bytea[],
  bigint[], bigint[], bigint[], bigint[], bigint[], bytea[], bigint[], bytea[], bytea[], bytea[], bytea[],
  bytea[], bigint[], bigint[], bigint[], bytea[], bytea[], bigint[], bigint[], bigint[], bigint[], bigint[],
  bytea[], bigint[], bytea[], bytea[]
) RETURNS TABLE (written bytea, numbered bigint) LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  PERFORM set_config('lock_timeout', $1, true);
  IF cardinality($2) > 0 THEN
    RETURN QUERY INSERT INTO {schema}.record (
      id, seq, revision, token, account, op_key, fingerprint, generated, created, keep_window, origin, state,
      unreported, swept, next_attempt, finished, lease_owner, lease_until, intent, progress, body, answer
    ) SELECT
      v.id, nextval('{schema}.record_seq'), v.revision, v.token, v.account, v.op_key, v.fingerprint,
      v.generated, v.created, v.keep_window, v.origin, v.state, v.unreported, v.swept, v.next_attempt,
      v.finished, v.lease_owner, v.lease_until, v.intent, v.progress, v.body, v.answer
    FROM unnest(
      $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23
    ) AS v (
      id, seq, revision, token, account, op_key, fingerprint, generated, created, keep_window, origin, state,
      unreported, swept, next_attempt, finished, lease_owner, lease_until, intent, progress, body, answer
    ) ON CONFLICT (id) DO NOTHING RETURNING token, seq;
  END IF;
  IF cardinality($24) > 0 THEN
    RETURN QUERY UPDATE {schema}.record r SET revision = r.revision + 1,
      token = v.token, state = v.state, unreported = v.unreported, swept = v.swept, next_attempt =
      v.next_attempt, finished = v.finished, lease_owner = v.lease_owner, lease_until = v.lease_until, progress
      = v.progress, answer = v.answer
    FROM unnest(
      $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38
    ) AS v (
      id, seq, revision, created, fingerprint, token, state, unreported, swept, next_attempt, finished,
      lease_owner, lease_until, progress, answer
    ) WHERE r.id = v.id AND r.revision = v.revision AND r.state + 0 < 2 AND (v.seq IS NULL OR r.seq = v.seq)
      AND r.created = v.created AND r.fingerprint = v.fingerprint RETURNING r.token, r.seq;
  END IF;
END
$$;
