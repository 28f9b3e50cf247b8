package gate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// said is what a logger has said.
type said struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

// count returns how often a text was said.
func (s *said) count(text string) int { return strings.Count(s.String(), text) }

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// leaveGuarded leaves operations in doubt whose credentials no journal keeps, and one more that anybody can send.
func leaveGuarded(t *testing.T, shared enginetest.Shared, change func(*oncehttp.Config)) {
	t.Helper()
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(shared.Open(), clienttest.OneAttempt, change))
	for _, key := range []oncehttp.Key{"guarded", "guarded-too"} {
		req := clienttest.Post(t, "{}")
		req.Header.Set("Authorization", "Bearer x")
		if _, err := c.DoKey(req, key); err == nil {
			t.Fatal("no error")
		}
	}
	if err := c.Enqueue(clienttest.Post(t, "{}"), "free"); err != nil {
		t.Fatal(err)
	}
	shared.FallDue(t)
}

// lacking is a Config of a Run, after another that began the operations.
type lacking struct {
	before, after func(*oncehttp.Config)
	says          string // empty: nothing is lacking
	count         string // of the operations that lack it
	sends         int
}

// TestRunSaysWhatItLacks: a Run that cannot send operations for want of something in its Config goes on with the others, says
// so once, to slog.Default where there is no Logger, and returns it when its context ends.
//
// It sets slog's default, and so runs beside no other test.
func TestRunSaysWhatItLacks(t *testing.T) {
	for name, r := range map[string]lacking{
		"Authorize":           {nothing, nothing, "set Config.Authorize", "2", 1},
		"the pinned region":   {func(c *oncehttp.Config) { c.Region = "eu" }, nothing, `the region "eu"`, "3", 0},
		"the profile":         {func(c *oncehttp.Config) { c.Profile = clienttest.OwnProfile() }, authorized, `profile "own"`, "3", 0},
		"nothing":             {nothing, authorized, "", "", 3},
		"nothing, and a host": {func(c *oncehttp.Config) { c.Region = "eu" }, func(c *oncehttp.Config) { authorized(c); c.Region = "eu" }, "", "", 3},
	} {
		for _, logger := range []bool{false, true} {
			for _, engine := range enginetest.Engines() {
				t.Run(fmt.Sprintf("%s, logger %t, %s", name, logger, engine.Name), func(t *testing.T) {
					engine.Test(t, func(t *testing.T, shared enginetest.Shared) { saysWhatItLacks(t, shared, r, logger) })
				})
			}
		}
	}
}

// saysWhatItLacks is one case of TestRunSaysWhatItLacks. On a server the first hour is all that is waited for.
func saysWhatItLacks(t *testing.T, shared enginetest.Shared, r lacking, logger bool) {
	var byDefault, own said
	restore := defaultLog(&byDefault)
	defer restore()
	leaveGuarded(t, shared, r.before)
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
	c, _ := clienttest.New(t, w, clienttest.On(shared.Open(), r.after, func(cfg *oncehttp.Config) {
		if logger {
			cfg.Logger = slog.New(slog.NewTextHandler(&own, nil))
		}
	}))
	heard, silent := &byDefault, &own
	if logger {
		heard, silent = silent, heard
	}
	stop := clienttest.Start(t, c)
	quoted := strings.ReplaceAll(r.says, `"`, `\"`)
	shared.Await(3*time.Hour+30*time.Minute, func() bool {
		return w.Count() == r.sends && (r.says == "" || heard.count(quoted) > 0)
	})
	err := stop()
	if w.Count() != r.sends || silent.String() != "" {
		t.Errorf("%d sends, want %d; another logger heard %q", w.Count(), r.sends, silent)
	}
	if r.says == "" {
		if err != nil || heard.String() != "" {
			t.Errorf("%v, said %q", err, heard)
		}
		return
	}
	if !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), r.says) || strings.Contains(err.Error(), "\n") {
		t.Errorf("Run returns %v, want ErrConfig that says %s", err, r.says)
	}
	want := 1
	if logger && !shared.Server { // once, and each hour
		want = 4
	}
	if n := heard.count(quoted); n != want || heard.count("operations="+r.count) != want {
		t.Errorf("said %d times, want %d, %q", n, want, heard)
	}
	if r.sends == 1 && clienttest.Lookup(t, c, "free").State != persist.StateConfirmed {
		t.Errorf("what anybody can send was not: %v", clienttest.Lookup(t, c, "free").State)
	}
}

func nothing(*oncehttp.Config) {}

func authorized(cfg *oncehttp.Config) {
	cfg.Authorize = func(req *http.Request) error { req.Header.Set("Authorization", "Bearer x"); return nil }
}

// defaultLog lets slog's default logger write to s, until restore.
func defaultLog(s *said) (restore func()) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(s, nil)))
	return func() { slog.SetDefault(before) }
}

// TestRunForgetsWhatWasSent: what another call, which has the credentials, ended meanwhile is lacking no more.
func TestRunForgetsWhatWasSent(t *testing.T) {
	for _, engine := range enginetest.Engines() {
		t.Run(engine.Name, func(t *testing.T) { engine.Test(t, forgetsWhatWasSent) })
	}
}

func forgetsWhatWasSent(t *testing.T, shared enginetest.Shared) {
	var log said
	defer defaultLog(&log)()
	leaveGuarded(t, shared, nothing)
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(shared.Open()))
	stop := clienttest.Start(t, c)
	if !shared.Await(time.Hour, func() bool { return log.count("set Config.Authorize") == 1 }) {
		t.Errorf("said %q", &log)
	}
	for _, key := range []oncehttp.Key{"guarded", "guarded-too"} {
		req := clienttest.Post(t, "{}")
		req.Header.Set("Authorization", "Bearer x")
		if _, err := c.DoKey(req, key); err != nil {
			t.Fatal(err)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("%v, want nil: nothing is left that lacks anything", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ended); err != nil {
		t.Errorf("another Run: %v", err)
	}
}

// TestRunLacksManyThings: what lacks more things than are remembered is told of, too, in one line an hour.
func TestRunLacksManyThings(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
		j := shared.Open()
		for i := range 12 {
			c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(j, func(c *oncehttp.Config) { c.Region = fmt.Sprint("r", i) }))
			if err := c.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
				t.Fatal(err)
			}
		}
		var log said
		c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(shared.Open(), func(c *oncehttp.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }))
		stop := clienttest.Start(t, c)
		shared.Await(30*time.Minute, func() bool { return log.count("is not for this client") >= 9 })
		if err := stop(); !errors.Is(err, oncehttp.ErrConfig) || strings.Count(err.Error(), "the region") != 8 {
			t.Errorf("Run returns %v", err)
		}
		if n := log.count("is not for this client"); n != 9 {
			t.Errorf("said %d times, want one for each of 8 causes and one for the rest:\n%s", n, &log)
		}
	})
}
