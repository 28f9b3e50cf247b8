// Package crash_test holds what is left when a process is killed: nothing is sent before its record is durable, and each order
// has one effect, whatever dies.
package crash_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// The environment of a child that is to die.
const crashEnv = "ONCEHTTP_TEST_CRASH"

// dying is a transport that kills its own process: before it sends, or when the
// answer is there.
type dying struct{ send bool }

func (d dying) RoundTrip(req *http.Request) (*http.Response, error) {
	if d.send {
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	die()
	return nil, wiretest.ErrLost
}

// die is kill -9: nothing is flushed, closed or deferred.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// TestCrashChild is the child: it does what its environment says, and dies of it.
// In a run of its own it does nothing.
func TestCrashChild(t *testing.T) {
	t.Parallel()
	how, path, url := os.Getenv(crashEnv), os.Getenv(crashEnv+"_PATH"), os.Getenv(crashEnv+"_URL")
	if how == "" || how == "silent" {
		return
	}
	c, err := oncehttp.Open(path, oncehttp.Config{Transport: dying{send: how == "after" || how == "keyless"}})
	if err != nil {
		t.Fatal(err)
	}
	req := clienttest.Request(t, "POST", url+"/payments", crashBody)
	switch how {
	case "before", "after":
		_, err = c.DoKey(req, crashKey)
	case "keyless":
		_, err = c.Do(req)
	case "enqueue":
		if err = c.Enqueue(req, crashKey); err == nil {
			die()
		}
	case "resume":
		if err = c.Enqueue(req, crashKey); err == nil {
			for range c.Resume(context.Background()) {
				continue
			}
		}
	}
	t.Fatalf("%s: still alive: %v", how, err)
}

// TestSilentChild fails at everything, with no Logger.
func TestSilentChild(t *testing.T) {
	t.Parallel()
	if os.Getenv(crashEnv) != "silent" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}, {Status: 500, Cut: true}, {Refused: true}}}
		c, _ := clienttest.New(t, w, nil)
		for _, method := range []string{"POST", "GET", "PUT"} {
			if _, err := c.Do(clienttest.Request(t, method, "https://api.example.com/", "")); err == nil {
				t.Error("no error")
			}
		}
		for range c.Resume(t.Context()) {
			continue
		}
	})
}

// TestSilent: without a Logger nothing is printed anywhere; go-retryablehttp would
// print every request with its URL.
func TestSilent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSilentChild$", "-test.timeout=50s")
	cmd.Env = append(os.Environ(), crashEnv+"=silent")
	out, err := cmd.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || strings.Split(got, "\n")[0] != "PASS" || strings.Contains(got, "example.com") {
		t.Errorf("%v; a silent client printed:\n%s", err, got)
	}
}

const (
	crashKey  = oncehttp.Key("idemp:order:crash")
	crashBody = `{"amount":1}`
)

// crash runs a child until it has died.
func crash(t *testing.T, how, path, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCrashChild$", "-test.timeout=50s")
	cmd.Env = append(os.Environ(), crashEnv+"="+how, crashEnv+"_PATH="+path, crashEnv+"_URL="+url)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() || ctx.Err() != nil {
		t.Fatalf("the child was not killed: %v\n%s", err, out)
	}
}

// TestKillBetweenJournalAndWire: whatever moment a process dies at, its operation
// is in the file, and whoever opens that sends it with the same key and bytes, so
// that it takes effect once.
func TestKillBetweenJournalAndWire(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		how       string
		maybeSent bool
		sends     int // that the server has seen when the child is dead
	}{{"before", true, 0}, {"after", true, 1}, {"enqueue", false, 0}, {"resume", true, 0}, {"keyless", true, 1}} {
		t.Run(r.how, func(t *testing.T) {
			t.Parallel()
			server := mockserver.New(mockserver.Config{})
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			path := filepath.Join(t.TempDir(), "j.db")
			crash(t, r.how, path, server.URL())

			c, err := oncehttp.Open(path, oncehttp.Config{Transport: wiretest.Transport(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var found []persist.Record
			for rec, err := range c.Unfinished(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, rec)
			}
			if len(found) != 1 {
				t.Fatalf("%d records in the file, want 1", len(found))
			}
			rec := found[0]
			if rec.MaybeSent != r.maybeSent || rec.State != persist.StatePending || string(rec.Body) != crashBody || rec.FirstSent.IsZero() == r.maybeSent {
				t.Errorf("the record is %v, maybe sent %v, with %s", rec.State, rec.MaybeSent, rec.Body)
			}
			if got := server.Ledger().Sends(rec.Key); got != r.sends {
				t.Errorf("the server has seen %d sends, want %d", got, r.sends)
			}
			if r.how == "keyless" {
				_, err := c.Do(clienttest.Request(t, "POST", server.URL()+"/payments", crashBody))
				var e *oncehttp.Error
				if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &e) || string(e.Key) != rec.Key {
					t.Errorf("the same request without a key: %v, want a refusal that names %s", err, rec.Key)
				}
			}
			n := 0
			for res, err := range c.Resume(t.Context()) {
				n++
				if err != nil || res.Outcome != oncehttp.OutcomeConfirmed || string(res.Key) != rec.Key {
					t.Errorf("resumed: %+v, %v", res, err)
				}
			}
			if n != 1 || server.Ledger().Effects(rec.Key) != 1 || server.Ledger().Sends(rec.Key) != r.sends+1 {
				t.Errorf("%d resumed, %d effects, %d sends; want 1, 1 and %d", n, server.Ledger().Effects(rec.Key), server.Ledger().Sends(rec.Key), r.sends+1)
			}
			if err := server.Err(); err != nil && r.sends == 0 { // it cannot know that the client died of its answer
				t.Errorf("the referee: %v", err)
			}
		})
	}
}

// synced keeps what was in a file when it was last made durable: what a power cut
// would leave.
type synced struct {
	mu    sync.Mutex
	bytes []byte
	syncs int
	fail  error
}

func (s *synced) sync(f *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.syncs++
	b, err := os.ReadFile(f.Name())
	s.bytes = b
	return err
}

// TestDurableBeforeTheFirstByte: when a request reaches the transport, what has
// been synced to the disk by then, and nothing else, holds its record, marked as
// maybe sent. A kill does not show that; a power cut would.
func TestDurableBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &synced{}
	journal, err := bolt.Open(filepath.Join(dir, "j.db"), bolt.Options{Sync: s.sync})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	var count atomic.Int32
	w := wiretest.Func(func(req *http.Request) (*http.Response, error) {
		sends := count.Add(1)
		s.mu.Lock()
		left := s.bytes
		s.mu.Unlock()
		path := filepath.Join(dir, fmt.Sprintf("left-%d.db", sends))
		if err := os.WriteFile(path, left, 0o600); err != nil {
			t.Error(err)
			return nil, err
		}
		after, err := bolt.Open(path, bolt.Options{})
		if err != nil {
			t.Errorf("send %d: what was synced is no journal: %v", sends, err)
			return nil, err
		}
		defer after.Close()
		key := req.Header.Get("Idempotency-Key")
		rec, err := after.Get(req.Context(), persist.ID{Key: key})
		if err != nil || !rec.MaybeSent || rec.FirstSent.IsZero() || string(rec.Body) != key+" body" {
			t.Errorf("send %d: %s is on the wire, and on the disk stands %+v, %v", sends, key, rec, err)
		}
		return nil, wiretest.ErrLost
	})
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal, cfg.Retry = journal, clienttest.Quick(2) })
	for i := range 3 {
		key := oncehttp.Key(fmt.Sprint("k", i))
		if _, err := c.DoKey(clienttest.Post(t, string(key)+" body"), key); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err := c.Enqueue(clienttest.Post(t, "q body"), "q"); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Resume(t.Context()) {
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Error(err)
		}
	}
	if count.Load() < 8 {
		t.Errorf("%d sends, want two for each of four operations", count.Load())
	}
}

// TestNoJournalNoSend: a journal that cannot be written stops the send, and one
// whose commit failed is never "no effect" and takes nothing more.
func TestNoJournalNoSend(t *testing.T) {
	t.Parallel()
	s := &synced{}
	path := filepath.Join(t.TempDir(), "j.db")
	journal, err := bolt.Open(path, bolt.Options{Sync: s.sync})
	if err != nil {
		t.Fatal(err)
	}
	sends := 0
	w := wiretest.Func(func(*http.Request) (*http.Response, error) {
		sends++
		return &http.Response{StatusCode: 201}, nil
	})
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal = journal })
	if err := c.Enqueue(clienttest.Post(t, "{}"), "before"); err != nil { // the first commit has a sync before it writes anything
		t.Fatal(err)
	}
	s.mu.Lock()
	s.fail = errors.New("input/output error")
	s.mu.Unlock()
	for i, do := range []func(*http.Request) error{
		func(req *http.Request) error { _, err := c.DoKey(req, "k"); return err },
		func(req *http.Request) error { _, err := c.Do(req); return err },
		func(req *http.Request) error { return c.Enqueue(req, "q") },
		func(req *http.Request) error { _, err := c.DoKey(req, "k"); return err },
	} {
		err := do(clienttest.Post(t, "{}"))
		clienttest.ExactlyOne(t, err)
		if !strings.Contains(err.Error(), s.fail.Error()) || sends != 0 {
			t.Errorf("call %d: %v after %d sends; want the disk's error, and nothing sent", i, err, sends)
		}
		if errors.Is(err, persist.ErrUncertain) != errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("call %d: %v; want it unknown if, and only if, the journal does not know", i, err)
		}
	}
	_ = journal.Close()

	full, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal = journaltest.Broken{Journal: cfg.Journal} })
	_, err = full.DoKey(clienttest.Post(t, "{}"), "k")
	if !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrNotSent) || sends != 0 {
		t.Errorf("definitely not written: %v after %d sends", err, sends)
	}
}
