-- +goose Up
-- Version 8 of the journal's schema. The first step makes all of it. Each statement can be made again, since no transaction
-- holds them together.

-- The steps that were made. A program uses tables whose latest step has an oldest version that it knows.
CREATE TABLE IF NOT EXISTS {db}oncehttp_version (
  version INT NOT NULL PRIMARY KEY,
  oldest  INT NOT NULL,
  applied TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
) ENGINE=InnoDB;

-- Numbers order the records.
CREATE SEQUENCE IF NOT EXISTS {db}oncehttp_seq;

-- A statement that takes a number holds a shared lock on one of these rows until its
-- transaction has ended. A listing waits for those, see the barrier in the program.
CREATE TABLE IF NOT EXISTS {db}oncehttp_gate (
  gate TINYINT NOT NULL PRIMARY KEY
) ENGINE=InnoDB;

INSERT IGNORE INTO {db}oncehttp_gate (gate) VALUES (0), (1), (2), (3), (4), (5), (6), (7);

-- What holds for the journal as a whole, such as its secret, and whether records are sealed. The first that needs a row inserts it.
CREATE TABLE IF NOT EXISTS {db}oncehttp_fact (
  name  VARBINARY(32) NOT NULL PRIMARY KEY,
  value VARBINARY(512) NOT NULL
) ENGINE=InnoDB;

-- One row is one operation. Keys and accounts are bytes, so that no collation makes two of
-- them one. Times are nanoseconds since 1970; 0 is no time. state: 0 pending, 1 held,
-- 2 confirmed, 3 mismatched, 4 settled, 5 abandoned. Listings and claims begin behind number 0: a row that is not numbered yet has none.
--
-- The id is the primary key because a statement that waits for a row of another unique key
-- also keeps others from inserting beside that row, at READ COMMITTED as well. There is no
-- AUTO_INCREMENT because an INSERT with a SELECT locks its counter while it waits.
--
-- The keys record_ready and record_origin hold what is due in the order in which it is due, of all origins or of one with the same needs (what
-- a client must have to act on it, a text that begins with the format of intent and progress): an
-- origin may be longer than an entry of an index. record_sweep holds from when on a sweep may change a row, so that a sweep finds in the index
-- alone which it has to read: the rows lie in the order of their ids, which are hashes, and to look each up costs a page each. sweep_at is
-- negative while the end is owed to OnResult: its amount counts once that is delivered. From owed_from on the end or the hold is owed.
-- The unfinished are counted from record_count alone.
--
-- A row in clear is refused once the journal is sealed, as the facts say. The needs of a sealed record name its keys. The program's INSERT gives
-- such a row a revision that no row has, and the error of the constraint names the table and the way on. An INSERT by hand is not stopped. Rows
-- that stand in clear are changed and ended as before.
CREATE TABLE IF NOT EXISTS {db}oncehttp_record (
  id           BINARY(23) NOT NULL PRIMARY KEY,
  seq          BIGINT,
  revision     BIGINT,
  token        BINARY(16),
  account      MEDIUMBLOB,
  op_key       MEDIUMBLOB,
  fingerprint  BINARY(32),
  generated    TINYINT,
  created      BIGINT,
  sweep_at     BIGINT,
  origin       MEDIUMBLOB,
  needs        VARBINARY(640),
  state        TINYINT NOT NULL,
  unreported   TINYINT,
  swept        TINYINT NOT NULL,
  next_attempt BIGINT,
  finished     BIGINT NOT NULL,
  lease_owner  MEDIUMBLOB,
  lease_until  BIGINT,
  send_until   BIGINT,
  owed_from    BIGINT,
  intent       LONGBLOB,
  progress     LONGBLOB NOT NULL,
  body         LONGBLOB,
  answer       LONGBLOB,
  hold_reason  VARBINARY(255),
  origin_hash  BINARY(32) AS (UNHEX(SHA2(origin, 256))) PERSISTENT,
  orphan       BINARY(32) AS (IF(generated = 1 AND (unreported = 1 OR state < 2), fingerprint, NULL)) PERSISTENT,
  owed         TINYINT AS (IF(owed_from > 0 AND state > 0, 1, NULL)) PERSISTENT,
  KEY record_seq (seq),
  KEY record_open (state, seq),
  KEY record_ready (state, next_attempt, seq),
  KEY record_origin (state, origin_hash, needs, next_attempt, seq),
  KEY record_orphan (orphan, seq),
  KEY record_owed (owed, seq),
  KEY record_count (state, hold_reason, created),
  KEY record_sweep (sweep_at, id),
  CONSTRAINT `the journal is sealed, open it with its keys (oncehttp)` CHECK (revision > 0),
  CONSTRAINT record_whole CHECK (swept = 2 OR (account IS NOT NULL AND revision IS NOT NULL AND token IS NOT NULL AND op_key IS NOT NULL AND fingerprint IS NOT NULL
    AND generated IS NOT NULL AND created IS NOT NULL AND sweep_at IS NOT NULL AND origin IS NOT NULL AND needs IS NOT NULL AND unreported IS NOT NULL
    AND next_attempt IS NOT NULL AND lease_owner IS NOT NULL AND lease_until IS NOT NULL AND send_until IS NOT NULL AND owed_from IS NOT NULL
    AND intent IS NOT NULL AND hold_reason IS NOT NULL)),
  CONSTRAINT record_numbered CHECK (seq > 0)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=binary;

INSERT IGNORE INTO {db}oncehttp_version (version, oldest) VALUES (8, 8);
