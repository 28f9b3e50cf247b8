package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// forUse is an operation of which a sweep leaves a used key.
func forUse(account, key string) persist.Record {
	rec := sqltest.Record(account, key)
	rec.KeepAnswer, rec.KeepText = -1, 500*time.Hour
	return rec
}

// ended begins and ends an operation of which a sweep leaves a used key, and returns it as it was begun.
func ended(t testing.TB, j *journal.Journal, account, key string) persist.Record {
	t.Helper()
	rec, created, err := j.Begin(t.Context(), forUse(account, key))
	if err == nil && !created {
		err = errors.New("it was there already")
	}
	if err == nil {
		err = j.Finish(t.Context(), sqltest.Finished(rec))
	}
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return rec
}

// sweepAll is a sweep behind all times of the records of these tests but that of a key.
func sweepAll(ctx context.Context, j *journal.Journal) (int, error) {
	return j.Sweep(ctx, persist.Limits{Now: time.Now().Add(1000 * time.Hour)})
}

// isolations are those of a caller's own transaction.
var isolations = map[string]sql.IsolationLevel{"READ COMMITTED": sql.LevelReadCommitted, "REPEATABLE READ": sql.LevelRepeatableRead, "SERIALIZABLE": sql.LevelSerializable}

// raceOf is a sweep that is stopped while it moves the record of a used key.
type raceOf struct {
	db     *sql.DB
	opts   journal.Options
	caller *journal.Journal
	rec    persist.Record // that moves
}

// beginIn begins the operation of rec anew in a transaction of this isolation, whose snapshot is older.
func (r *raceOf) beginIn(t *testing.T, level sql.IsolationLevel) (persist.Record, bool, error) {
	tx, err := r.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		return persist.Record{}, false, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRow("SELECT COUNT(*) FROM " + r.opts.Database + ".oncehttp_version").Scan(new(int)); err != nil {
		return persist.Record{}, false, err
	}
	got, created, err := r.opts.Begin(t.Context(), tx, forUse(r.rec.Account, r.rec.Key))
	return got, created, errors.Join(err, tx.Commit())
}

// ways returns the ways in which a second operation could get the id of rec.
func (r *raceOf) ways(t *testing.T) map[string]func() error {
	begun := func(got persist.Record, created bool, err error) error {
		switch {
		case err != nil:
			return err
		case created || !got.Erased || got.State != persist.StateConfirmed:
			return fmt.Errorf("created %t, state %v, without its text %t", created, got.State, got.Erased)
		}
		return nil
	}
	all := map[string]func() error{
		"Begin": func() error { return begun(r.caller.Begin(t.Context(), forUse(r.rec.Account, r.rec.Key))) },
	}
	for name, level := range isolations {
		all["Begin at "+name] = func() error { return begun(r.beginIn(t, level)) }
	}
	return all
}

// waits waits until the count of a query is n, or until a call that should not end yet has ended.
func waits(t *testing.T, db *sql.DB, query string, n int, ended <-chan error, args ...any) {
	t.Helper()
	for got := -1; got != n; time.Sleep(5 * time.Millisecond) {
		if err := db.QueryRowContext(t.Context(), query, args...).Scan(&got); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			t.Fatalf("it has not waited: %v", err)
		default:
		}
	}
}

// standing requires that every way to a record finds that of r, exactly once.
func (r *raceOf) standing(t *testing.T, when string) {
	t.Helper()
	if rec, err := r.caller.Get(t.Context(), r.rec.ID); err != nil || rec.State != persist.StateConfirmed {
		t.Errorf("%s: Get: %v, %v", when, rec.State, err)
	}
	for name, q := range map[string]persist.Query{
		"of the key": {Account: r.rec.Account, Key: r.rec.Key}, "of the account": {Account: r.rec.Account}, "of what is confirmed": {AllAccounts: true, States: []persist.State{persist.StateConfirmed}},
	} {
		n := 0
		for _, err := range r.caller.List(t.Context(), q) {
			if n++; err != nil {
				t.Errorf("%s: List %s: %v", when, name, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: List %s has %d records, want 1", when, name, n)
		}
	}
}

// inTables requires so many rows in the tables of records and of used keys.
func inTables(t *testing.T, db *sql.DB, opts journal.Options, records, used int) {
	t.Helper()
	var got [2]int
	err := db.QueryRow("SELECT COUNT(*), (SELECT COUNT(*) FROM "+opts.Database+".oncehttp_used) FROM "+opts.Database+".oncehttp_record").Scan(&got[0], &got[1])
	if err != nil || got != [2]int{records, used} {
		t.Errorf("there are %d records and %d used keys, %v; want %d and %d", got[0], got[1], err, records, used)
	}
}

// TestBeginRacesTheMove stops a sweep while it moves a record into the table of used keys: once it has locked the record, and once before its commit. Whoever
// begins the key then waits, and finds the used key: there is no second operation.
func TestBeginRacesTheMove(t *testing.T) {
	t.Parallel()
	for point, trigger := range map[string]string{"before the insert": "BEFORE INSERT ON oncehttp_used", "before the commit": "AFTER DELETE ON oncehttp_record"} {
		for _, way := range []string{"Begin", "Begin at READ COMMITTED", "Begin at REPEATABLE READ", "Begin at SERIALIZABLE"} {
			t.Run(way+", "+point, func(t *testing.T) {
				t.Parallel()
				raceTheMove(t, trigger, way)
			})
		}
	}
}

// raceTheMove is a case of TestBeginRacesTheMove: the trigger stops the sweep.
func raceTheMove(t *testing.T, trigger, way string) {
	root := pool(t, "")
	opts := migrated(t, root)
	opts.LockWait = 15 * time.Second
	db := pool(t, opts.Database)
	db.SetMaxOpenConns(1) // GET_LOCK is of a connection
	sweeper := open(t, server(t), opts)
	r := raceOf{db: root, opts: opts, caller: open(t, server(t), opts)}
	r.rec = ended(t, r.caller, "shop", "raced")
	stopBy(t, db, opts, trigger+" FOR EACH ROW %s")
	swept, done := make(chan error, 1), make(chan error, 1)
	go func() {
		n, err := sweepAll(t.Context(), sweeper)
		if err == nil && n != 1 {
			err = fmt.Errorf("it changed %d", n)
		}
		swept <- err
	}()
	waits(t, root, stopped, 1, swept, opts.Database)
	r.standing(t, "while it moves")
	go func() { done <- r.ways(t)[way]() }()
	waits(t, root, "SELECT COUNT(*) FROM information_schema.processlist WHERE state <> 'User lock' AND time_ms > 200 AND info LIKE CONCAT('%', ?, '%') AND id <> CONNECTION_ID()", 1, done, opts.Database)
	if _, err := db.Exec("DO RELEASE_ALL_LOCKS()"); err != nil {
		t.Fatal(err)
	}
	if err := <-swept; err != nil {
		t.Errorf("Sweep: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("%s: %v", way, err)
	}
	r.standing(t, "behind the move")
	inTables(t, root, opts, 0, 1)
}

// stopped is a query for the number of statements on a database, its parameter, that a trigger of stopBy has stopped.
const stopped = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock' AND info LIKE CONCAT('%', ?, '%') AND id <> CONNECTION_ID()"

// stopBy makes a trigger that stops statements on the database, at its "%s", until db releases its locks. db has one connection.
func stopBy(t *testing.T, db *sql.DB, opts journal.Options, trigger string) {
	t.Helper()
	lock := "DO GET_LOCK('" + opts.Database + "', 60)"
	for _, s := range []string{fmt.Sprintf("CREATE TRIGGER stops "+trigger, lock), lock} {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// TestAssignRacesTheMove stops an Assign behind its look for a record of the account, and before its write. Meanwhile the key is used there, and its record
// moves: the Assign finds that, and changes nothing.
func TestAssignRacesTheMove(t *testing.T) {
	t.Parallel()
	root := pool(t, "")
	opts := migrated(t, root)
	db := pool(t, opts.Database)
	db.SetMaxOpenConns(1) // GET_LOCK is of a connection
	j := open(t, server(t), opts)
	unnamed, _, err := j.Begin(t.Context(), sqltest.Record("", "assigned"))
	if err != nil {
		t.Fatal(err)
	}
	stopBy(t, db, opts, "BEFORE UPDATE ON oncehttp_record FOR EACH ROW IF NEW.id <> OLD.id THEN %s; END IF")
	done := make(chan error, 1)
	go func() {
		_, err := j.Assign(t.Context(), unnamed, "shop")
		done <- err
	}()
	waits(t, root, stopped, 1, done, opts.Database)
	used := ended(t, j, "shop", "assigned")
	if n, err := sweepAll(t.Context(), j); n != 1 || err != nil {
		t.Errorf("Sweep: %d, %v", n, err)
	}
	if _, err := db.Exec("DO RELEASE_ALL_LOCKS()"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, persist.ErrExists) {
		t.Errorf("Assign: %v; want ErrExists", err)
	}
	if rec, err := j.Get(t.Context(), unnamed.ID); err != nil || rec.Revision != unnamed.Revision {
		t.Errorf("the record: revision %d, %v", rec.Revision, err)
	}
	if rec, err := j.Get(t.Context(), used.ID); err != nil || !rec.Erased {
		t.Errorf("the used key: %v, %v", rec.State, err)
	}
}

// TestManyBeginsBesideMoves begins keys in every way, many at once, while sweeps move their records. No key is ever new, none is in two tables, and the sweeps of
// several processes count each once.
func TestManyBeginsBesideMoves(t *testing.T) {
	t.Parallel()
	const keys, callers, sweepers = 120, 8, 3
	db := pool(t, "")
	opts := migrated(t, db)
	caller := open(t, server(t), opts)
	for i := range keys {
		ended(t, caller, "shop", fmt.Sprint("k", i))
	}
	if n, err := caller.Sweep(t.Context(), persist.Limits{Now: time.Now().Add(400 * time.Hour)}); err != nil || n != keys { // the answers
		t.Fatalf("the first sweep changes %d, %v", n, err)
	}
	var moved atomic.Int64
	var all sync.WaitGroup
	for i := range sweepers {
		j := open(t, server(t), opts)
		all.Go(func() {
			for moved.Load() < keys && t.Context().Err() == nil {
				n, err := j.Sweep(t.Context(), persist.Limits{Now: time.Now().Add(1000 * time.Hour), Max: 3 + 4*i})
				if err != nil {
					t.Errorf("Sweep: %v", err)
					return
				}
				moved.Add(int64(n))
			}
		})
	}
	for c := range callers {
		all.Go(func() {
			for i := c; moved.Load() < keys || i < 2*keys; i++ {
				r := raceOf{db: db, opts: opts, caller: caller, rec: forUse("shop", fmt.Sprint("k", i%keys))}
				var got persist.Record
				created, err := false, error(nil)
				if c%2 == 0 {
					got, created, err = caller.Begin(t.Context(), r.rec)
				} else {
					got, created, err = r.beginIn(t, []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead}[c/2%2])
				}
				var my *mysql.MySQLError
				if c%2 == 1 && errors.As(err, &my) && my.Number == 1213 { // two callers of one key: the server has rolled the transaction back, see Options.Begin
					continue
				}
				if created || err != nil || got.State != persist.StateConfirmed {
					t.Errorf("Begin of %s: created %t, %v, %v", r.rec.Key, created, got.State, err)
					return
				}
			}
		})
	}
	all.Wait()
	if n := moved.Load(); n != keys {
		t.Errorf("the sweeps have changed %d, want %d", n, keys)
	}
	inTables(t, db, opts, 0, keys)
}

// TestMoveBesideRepeatableRead: a transaction at REPEATABLE READ that has begun a record keeps a range of the table of used keys until its end. A sweep waits for
// none: it leaves the text, and a later one takes it out.
func TestMoveBesideRepeatableRead(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	opts := migrated(t, db)
	j := open(t, server(t), opts)
	rec, plain := ended(t, j, "shop", "moved"), sqltest.Record("shop", "forgotten")
	plain.KeepAnswer, plain.KeepKey = -1, time.Hour
	plain, _, err := j.Begin(t.Context(), plain)
	_, secretErr := j.Secret(t.Context()) // the transaction keeps others from new facts
	if err := errors.Join(err, secretErr, j.Finish(t.Context(), sqltest.Finished(plain))); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, created, err := opts.Begin(t.Context(), tx, sqltest.Record("shop", "begun")); err != nil || !created {
		t.Fatalf("Begin: %t, %v", created, err)
	}
	started := time.Now()
	if n, err := sweepAll(t.Context(), j); n != 2 || err != nil || time.Since(started) > 10*time.Second {
		t.Errorf("a sweep beside it changes %d, %v, in %v", n, err, time.Since(started))
	}
	if got, err := j.Get(t.Context(), rec.ID); err != nil || !got.Swept || got.Erased {
		t.Errorf("beside it: swept %t, without its text %t, %v", got.Swept, got.Erased, err)
	}
	if _, err := j.Get(t.Context(), plain.ID); !errors.Is(err, persist.ErrNotFound) {
		t.Errorf("a key whose time is over: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n, err := sweepAll(t.Context(), j); n != 1 || err != nil {
		t.Errorf("a sweep behind it changes %d, %v", n, err)
	}
	if got, err := j.Get(t.Context(), rec.ID); err != nil || !got.Erased {
		t.Errorf("behind it: without its text %t, %v", got.Erased, err)
	}
}

// TestTextsStayWithoutTheRight: a role without the right to insert used keys leaves the texts of records, and sweeps the rest.
func TestTextsStayWithoutTheRight(t *testing.T) {
	t.Parallel()
	db := pool(t, "")
	opts := migrated(t, db)
	owner := open(t, server(t), opts)
	rec := ended(t, owner, "shop", "kept")
	if _, err := owner.Secret(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rights []string
	for _, table := range []string{"version", "gate", "fact", "used"} {
		rights = append(rights, "GRANT SELECT ON shop.oncehttp_"+table)
	}
	role := open(t, asUser(t, db, opts, append(rights, "GRANT SELECT, UPDATE, DELETE ON shop.oncehttp_record", "GRANT SELECT ON shop.oncehttp_used_until")), opts)
	if n, err := sweepAll(t.Context(), role); n != 1 || err != nil {
		t.Errorf("the role's Sweep: %d, %v", n, err)
	}
	if got, err := role.Get(t.Context(), rec.ID); err != nil || !got.Swept || got.Erased {
		t.Errorf("the record: swept %t, without its text %t, %v", got.Swept, got.Erased, err)
	}
	inTables(t, db, opts, 1, 0)
}
