-- +goose Up
-- Version 9 of the journal's schema. The first step makes all of it. Each statement can be made again, since no transaction
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
  revision     BIGINT NOT NULL,
  token        BINARY(16) NOT NULL,
  account      MEDIUMBLOB NOT NULL,
  op_key       MEDIUMBLOB NOT NULL,
  fingerprint  BINARY(32) NOT NULL,
  generated    TINYINT NOT NULL,
  created      BIGINT NOT NULL,
  sweep_at     BIGINT NOT NULL,
  origin       MEDIUMBLOB NOT NULL,
  needs        VARBINARY(640) NOT NULL,
  state        TINYINT NOT NULL,
  unreported   TINYINT NOT NULL,
  swept        TINYINT NOT NULL,
  next_attempt BIGINT NOT NULL,
  finished     BIGINT NOT NULL,
  lease_owner  MEDIUMBLOB NOT NULL,
  lease_until  BIGINT NOT NULL,
  send_until   BIGINT NOT NULL,
  owed_from    BIGINT NOT NULL,
  intent       LONGBLOB NOT NULL,
  progress     LONGBLOB NOT NULL,
  body         LONGBLOB,
  answer       LONGBLOB,
  hold_reason  VARBINARY(255) NOT NULL,
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
  CONSTRAINT record_numbered CHECK (seq > 0)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=binary;

-- A used key is an ended record without its text: its row says hardly more than that the key was used. A sweep moves it here from the table of records, where
-- each null of it would have a place in eight indexes. account has the hashes of the accounts around its account, and sweep_at is null if the key is kept for ever.
-- Whoever inserts a record looks here behind the INSERT, in the same transaction: an INSERT by hand does not.
CREATE TABLE IF NOT EXISTS {db}oncehttp_used (
  id       BINARY(23) NOT NULL PRIMARY KEY,
  state    TINYINT NOT NULL,
  finished BIGINT NOT NULL,
  sweep_at BIGINT,
  account  MEDIUMBLOB,
  progress LONGBLOB NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=binary;

-- From when on a sweep removes a used key, for those that are not kept for ever: an index of oncehttp_used by its sweep_at would have each null, too.
CREATE TABLE IF NOT EXISTS {db}oncehttp_used_until (
  sweep_at BIGINT NOT NULL,
  id       BINARY(23) NOT NULL,
  PRIMARY KEY (sweep_at, id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=binary;

INSERT IGNORE INTO {db}oncehttp_version (version, oldest) VALUES (9, 9);
