package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// awayLimit is the limit of a call while the standby is away. A third of it bounds one try.
const awayLimit = 3 * time.Second

// standby is a server of the test's own, whose synchronous standby can be away. There never is one.
type standby struct {
	t   *testing.T
	url string
	db  *sql.DB
}

func newStandby(t *testing.T) *standby {
	t.Helper()
	url := "postgres://postgres@" + ownServer(t).Address + "/postgres"
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := postgres.Migrate(t.Context(), url, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	return &standby{t, url, db}
}

// open opens a journal whose calls end soon.
func (s *standby) open() *postgres.Journal {
	return open(s.t, s.url, postgres.Options{CallTimeout: awayLimit})
}

// set changes the server's setting, which each process of the server learns by itself.
func (s *standby) set(change string) {
	s.t.Helper()
	for _, statement := range []string{"ALTER SYSTEM " + change, "SELECT pg_reload_conf()"} {
		if _, err := s.db.Exec(statement); err != nil {
			s.t.Fatal(err)
		}
	}
}

// away returns once commits wait for a standby that does not come.
func (s *standby) away() {
	s.t.Helper()
	s.set("SET synchronous_standby_names = 'nobody'")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		_, err := s.db.ExecContext(ctx, "SELECT pg_logical_emit_message(true, 'test', ''::text)")
		cancel()
		if err != nil {
			return
		}
	}
	s.t.Fatal("commits do not wait for the standby")
}

// back lets commits wait for nobody any more, those included that wait already.
func (s *standby) back() {
	s.t.Helper()
	s.set("RESET synchronous_standby_names")
	if _, err := s.db.Exec("SELECT pg_logical_emit_message(true, 'test', ''::text)"); err != nil {
		s.t.Fatal(err)
	}
}

// until returns once the condition holds in what is committed.
func (s *standby) until(condition string) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var holds bool
		if err := s.db.QueryRow("SELECT " + condition).Scan(&holds); err != nil {
			s.t.Fatal(err)
		}
		if holds {
			return
		}
	}
	s.t.Fatalf("it does not become true that %s", condition)
}

// begun begins a record and fails the test if that is not possible.
func (s *standby) begun(j persist.Journal, key string, generated bool) persist.Record {
	s.t.Helper()
	rec := sqltest.Record("a", key)
	rec.Generated = generated
	rec, created, err := j.Begin(s.t.Context(), rec)
	if err != nil || !created {
		s.t.Fatalf("Begin of %q: created %t, error %v", key, created, err)
	}
	return rec
}

// TestStandbyAway: no write says that it has succeeded while the synchronous standby is away, although the server shows each
// of them to everybody once the try that made it has ended ("committed locally").
func TestStandbyAway(t *testing.T) {
	t.Parallel()
	s := newStandby(t)
	j, ctx := s.open(), t.Context()
	update, finish, forget := s.begun(j, "update", false), s.begun(j, "finish", false), s.begun(j, "forget", false)
	report, other := sqltest.Finished(s.begun(j, "report", true)), s.begun(j, "begun by another", false)
	report.Unreported = true
	if err := j.Finish(ctx, report); err != nil {
		t.Fatal(err)
	}
	begin := func(key string) error {
		_, _, err := j.Begin(ctx, sqltest.Record("a", key))
		return err
	}
	s.away()
	var running sync.WaitGroup
	for name, call := range map[string]func() error{
		"Begin":                  func() error { return begin("begin") },
		"Begin of what is there": func() error { return begin(other.Key) },
		"Update":                 func() error { _, err := j.Update(ctx, update); return err },
		"Finish":                 func() error { return j.Finish(ctx, sqltest.Finished(finish)) },
		"Forget":                 func() error { return j.Forget(ctx, forget) },
		"MarkReported":           func() error { return j.MarkReported(ctx, report.ID) },
	} {
		running.Go(func() {
			if err := call(); !errors.Is(err, persist.ErrUncertain) {
				t.Errorf("%s: %v, want ErrUncertain", name, err)
			}
		})
	}
	running.Wait()
	if err := begin("begin"); !errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin once more, by another call: %v, want ErrUncertain", err)
	}
	s.back()
	if _, created, err := j.Begin(ctx, sqltest.Record("a", "begin")); err != nil || created {
		t.Errorf("Begin after the standby has come back: created %t, error %v; want the record of the first call", created, err)
	}
	if _, err := j.Update(ctx, update); !errors.Is(err, persist.ErrStale) {
		t.Errorf("Update after the standby has come back: %v, want ErrStale by the first call", err)
	}
	if now, err := j.Get(ctx, finish.ID); err != nil || now.State != persist.StateConfirmed || now.Revision != 2 {
		t.Errorf("Get of what was finished: state %v, revision %d, error %v", now.State, now.Revision, err)
	}
	if _, err := j.Get(ctx, forget.ID); !errors.Is(err, persist.ErrNotFound) {
		t.Errorf("Get of what was forgotten: %v, want ErrNotFound", err)
	}
}

// TestStandbyComesBack: a call whose first try was ended while it waited for the standby goes on waiting, and succeeds.
func TestStandbyComesBack(t *testing.T) {
	t.Parallel()
	s := newStandby(t)
	ctx := t.Context()
	calls := []struct {
		name, landed string // a condition
		call         func(j persist.Journal, rec persist.Record) error
	}{
		{"begin", "EXISTS (SELECT FROM oncehttp.record WHERE op_key = 'begin')", func(j persist.Journal, _ persist.Record) error {
			rec, created, err := j.Begin(ctx, sqltest.Record("a", "begin"))
			if err == nil && (!created || rec.Revision != 1) {
				err = errors.New("it was not created")
			}
			return err
		}},
		{"update", "(SELECT revision FROM oncehttp.record WHERE op_key = 'update') = 2", func(j persist.Journal, rec persist.Record) error {
			now, err := j.Update(ctx, rec)
			if err == nil && now.Revision != 2 {
				err = errors.New("its revision is wrong")
			}
			return err
		}},
		{"finish", "(SELECT revision FROM oncehttp.record WHERE op_key = 'finish') = 2", func(j persist.Journal, rec persist.Record) error {
			return j.Finish(ctx, sqltest.Finished(rec))
		}},
		{"forget", "NOT EXISTS (SELECT FROM oncehttp.record WHERE op_key = 'forget')", func(j persist.Journal, rec persist.Record) error {
			return j.Forget(ctx, rec)
		}},
	}
	journals, records := make([]persist.Journal, len(calls)), make([]persist.Record, len(calls))
	for i, c := range calls {
		journals[i] = open(t, s.url, postgres.Options{CallTimeout: 4 * awayLimit})
		if c.name != "begin" {
			records[i] = s.begun(journals[i], c.name, false)
		}
	}
	s.away()
	var running sync.WaitGroup
	for i, c := range calls {
		running.Go(func() {
			if err := c.call(journals[i], records[i]); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	for _, c := range calls {
		s.until(c.landed)
	}
	s.until("(SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep') = 4")
	s.back()
	running.Wait()
}

// TestStandbyAwayClient: a client sends nothing, and has enqueued nothing, before the standby has the record.
func TestStandbyAwayClient(t *testing.T) {
	t.Parallel()
	s := newStandby(t)
	var sent atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(api.Close)
	client, err := oncehttp.New(oncehttp.Config{Journal: s.open(), Origins: sqltest.Loopback(), Account: "a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	request := func() *http.Request {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api.URL, strings.NewReader(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		return req
	}
	do := func() error {
		resp, err := client.DoKey(request(), "do")
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	enqueue := func() error { return client.Enqueue(request(), "enqueue") }
	s.away()
	var running sync.WaitGroup
	for name, call := range map[string]func() error{"Do": do, "Enqueue": enqueue} {
		running.Go(func() {
			for _, which := range []string{"first", "second"} {
				if err := call(); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("the %s %s: %v, want ErrOutcomeUnknown", which, name, err)
				}
			}
		})
	}
	running.Wait()
	if n := sent.Load(); n != 0 {
		t.Errorf("%d requests were sent before the standby had their records", n)
	}
	s.back()
	if err := do(); err != nil || sent.Load() != 1 {
		t.Errorf("Do after the standby has come back: %v, and %d requests were sent in all", err, sent.Load())
	}
	if err := enqueue(); err != nil {
		t.Errorf("Enqueue after the standby has come back: %v", err)
	}
	if rec, err := client.Lookup(t.Context(), "enqueue"); err != nil || rec.State != persist.StatePending {
		t.Errorf("Lookup of what was enqueued: state %v, error %v", rec.State, err)
	}
}
