-- Version 3: one statement begins and changes several records, in one transaction. It is a function, so that a session
-- plans its parts once, also behind a pooler that allows no prepared statements. Its parameters are the bound of a wait for
-- a lock in milliseconds; the records that are begun, their bytes and their numbers: of each column a row, in the order of
-- the table; and in the same way the changes, of which the first five columns are what is compared, and the others what is
-- set. The result is the token and the number of each record that was written. The settings, and "state + 0", leave only
-- the primary key to find a record by: the plan is kept while the table grows.
CREATE FUNCTION {schema}.write_records (text, bytea[], bigint[], bytea[], bigint[])
RETURNS TABLE (written bytea, numbered bigint) LANGUAGE plpgsql
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
      $2[1:1], $3[1:1], $3[2:2], $2[2:2], $2[3:3], $2[4:4], $2[5:5], $3[3:3], $3[4:4], $3[5:5], $2[6:6],
      $3[6:6], $3[7:7], $3[8:8], $3[9:9], $3[10:10], $2[7:7], $3[11:11], $2[8:8], $2[9:9], $2[10:10], $2[11:11]
    ) AS v (
      id, seq, revision, token, account, op_key, fingerprint, generated, created, keep_window, origin, state,
      unreported, swept, next_attempt, finished, lease_owner, lease_until, intent, progress, body, answer
    ) ON CONFLICT (id) DO NOTHING RETURNING token, seq;
  END IF;
  IF cardinality($4) > 0 THEN
    RETURN QUERY UPDATE {schema}.record r SET revision = r.revision + 1,
      token = v.token, state = v.state, unreported = v.unreported, swept = v.swept,
      next_attempt = v.next_attempt, finished = v.finished, lease_owner = v.lease_owner,
      lease_until = v.lease_until, progress = v.progress, answer = v.answer
    FROM unnest(
      $4[1:1], $5[1:1], $5[2:2], $5[3:3], $4[2:2], $4[3:3], $5[4:4], $5[5:5], $5[6:6], $5[7:7], $5[8:8],
      $4[4:4], $5[9:9], $4[5:5], $4[6:6]
    ) AS v (
      id, seq, revision, created, fingerprint, token, state, unreported, swept, next_attempt, finished,
      lease_owner, lease_until, progress, answer
    ) WHERE r.id = v.id AND r.revision = v.revision AND r.state + 0 < 2 AND (v.seq IS NULL OR r.seq = v.seq)
      AND r.created = v.created AND r.fingerprint = v.fingerprint RETURNING r.token, r.seq;
  END IF;
END
$$;
