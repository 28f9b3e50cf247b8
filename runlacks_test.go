package oncehttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// leaveGuarded leaves operations in doubt on j whose credentials no journal keeps, and one more that anybody can send.
func leaveGuarded(t *testing.T, j persist.Journal, change func(*oncehttp.Config)) {
	t.Helper()
	c, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, on(j, oneAttempt, change))
	for _, key := range []oncehttp.Key{"guarded", "guarded-too"} {
		req := post(t, "{}")
		req.Header.Set("Authorization", "Bearer x")
		if _, err := c.DoKey(req, key); err == nil {
			t.Fatal("no error")
		}
	}
	if err := c.Enqueue(post(t, "{}"), "free"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
}

// TestRunSaysWhatItLacks: a Run that cannot send operations for want of something in its Config goes on with the others, says
// so once, to slog.Default where there is no Logger, and returns it when its context ends.
//
// It sets slog's default, and so runs beside no other test.
func TestRunSaysWhatItLacks(t *testing.T) {
	for name, r := range map[string]struct {
		before, after func(*oncehttp.Config)
		says          string // empty: nothing is lacking
		count         string // of the operations that lack it
	}{
		"Authorize":           {nothing, nothing, "set Config.Authorize", "2"},
		"the pinned region":   {func(c *oncehttp.Config) { c.Region = "eu" }, nothing, `the region "eu"`, "3"},
		"the profile":         {func(c *oncehttp.Config) { c.Profile = ownProfile() }, authorized, `profile "own"`, "3"},
		"nothing":             {nothing, authorized, "", ""},
		"nothing, and a host": {func(c *oncehttp.Config) { c.Region = "eu" }, func(c *oncehttp.Config) { authorized(c); c.Region = "eu" }, "", ""},
	} {
		for _, logger := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, logger %t", name, logger), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var byDefault, own bytes.Buffer
					restore := defaultLog(&byDefault)
					defer restore()
					j := memory.New()
					leaveGuarded(t, j, r.before)
					w := &wire{replies: []reply{{status: 201}}}
					c, _ := newClient(t, w, on(j, r.after, func(cfg *oncehttp.Config) {
						if logger {
							cfg.Logger = slog.New(slog.NewTextHandler(&own, nil))
						}
					}))
					stop := running(t, c)
					time.Sleep(3*time.Hour + 30*time.Minute)
					err := stop()
					said, silent := byDefault.String(), own.String()
					if logger {
						said, silent = silent, said
					}
					if r.says == "" {
						if err != nil || said != "" || w.count() != 3 {
							t.Errorf("%s: %v after %d sends, said %q", name, err, w.count(), said)
						}
						return
					}
					if !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), r.says) || strings.Contains(err.Error(), "\n") {
						t.Errorf("%s: Run returns %v, want ErrConfig that says %s", name, err, r.says)
					}
					quoted := strings.ReplaceAll(r.says, `"`, `\"`)
					want := 1
					if logger { // once, and each hour
						want = 4
					}
					if n := strings.Count(said, quoted); n != want || silent != "" || strings.Count(said, "operations="+r.count) != want {
						t.Errorf("%s, logger %t: said %d times, want %d, %q; another logger heard %q", name, logger, n, want, said, silent)
					}
					if name == "Authorize" && lookup(t, c, "free").State != persist.StateConfirmed {
						t.Errorf("what anybody can send was not: %v", lookup(t, c, "free").State)
					}
				})
			})
		}
	}
}

func nothing(*oncehttp.Config) {}

func authorized(cfg *oncehttp.Config) {
	cfg.Authorize = func(req *http.Request) error { req.Header.Set("Authorization", "Bearer x"); return nil }
}

// defaultLog lets slog's default logger write to b, until restore.
func defaultLog(b *bytes.Buffer) (restore func()) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(b, nil)))
	return func() { slog.SetDefault(before) }
}

// TestRunForgetsWhatWasSent: what another call, which has the credentials, ended meanwhile is lacking no more.
func TestRunForgetsWhatWasSent(t *testing.T) {
	defer defaultLog(new(bytes.Buffer))()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		leaveGuarded(t, j, nothing)
		c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, on(j))
		stop := running(t, c)
		time.Sleep(time.Hour)
		for _, key := range []oncehttp.Key{"guarded", "guarded-too"} {
			req := post(t, "{}")
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
	})
}

// TestRunLacksManyThings: what lacks more things than are remembered is told of, too, in one line an hour.
func TestRunLacksManyThings(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		for i := range 12 {
			c, _ := newClient(t, &wire{}, on(j, func(c *oncehttp.Config) { c.Region = fmt.Sprint("r", i) }))
			if err := c.Enqueue(post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
				t.Fatal(err)
			}
		}
		var said bytes.Buffer
		c, _ := newClient(t, &wire{}, on(j, func(c *oncehttp.Config) { c.Logger = slog.New(slog.NewTextHandler(&said, nil)) }))
		stop := running(t, c)
		time.Sleep(30 * time.Minute)
		if err := stop(); !errors.Is(err, oncehttp.ErrConfig) || strings.Count(err.Error(), "the region") != 8 {
			t.Errorf("Run returns %v", err)
		}
		if n := strings.Count(said.String(), "is not for this client"); n != 9 {
			t.Errorf("said %d times, want one for each of 8 causes and one for the rest:\n%s", n, &said)
		}
	})
}
