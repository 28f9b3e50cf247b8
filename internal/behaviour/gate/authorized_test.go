package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	requests "github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// bareSends counts the sends without a credential.
func bareSends(w *wiretest.Wire) (n int) {
	for _, s := range w.All() {
		if s.Header.Get("Authorization") == "" {
			n++
		}
	}
	return n
}

// needsAuthorize checks an error that says that others send to ourOrigin with credentials.
func needsAuthorize(t *testing.T, name string, err error) {
	t.Helper()
	if !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "Config.Authorize") || !strings.Contains(err.Error(), ourOrigin) ||
		!strings.Contains(err.Error(), "oncehttp journal origins --remove '") {
		t.Errorf("%s: %v; want ErrConfig that says what to set", name, err)
	}
}

// passOver makes one pass, and returns the error of each operation.
func passOver(c *oncehttp.Client) (errs []error) {
	for _, err := range c.Resume(context.Background()) {
		errs = append(errs, err)
	}
	return errs
}

// authorizedBy lists the ways to name the origins that get a credential.
func authorizedBy() map[string]func(*oncehttp.Config) {
	return map[string]func(*oncehttp.Config){
		"a list":    only(ourOrigin),
		"a pattern": func(cfg *oncehttp.Config) { cfg.Origins, cfg.Authorize = []string{"https://*.example.com"}, credential },
		"a function": func(cfg *oncehttp.Config) {
			cfg.OriginAllowed, cfg.Authorize = func(origin string) bool { return origin == ourOrigin+":443" }, credential
		},
		"both": func(cfg *oncehttp.Config) {
			cfg.Origins, cfg.Authorize = []string{clienttest.OtherOrigin}, credential
			cfg.OriginAllowed = func(origin string) bool { return origin == ourOrigin+":443" }
		},
	}
}

// TestAuthorizedElsewhere: once a client with Authorize has begun an operation, no client without it sends to that origin: neither what the
// first has begun, nor what a third has enqueued, nor an operation of its own. The record stays as it was.
func TestAuthorizedElsewhere(t *testing.T) {
	t.Parallel()
	for way, authorized := range authorizedBy() {
		for _, process := range []string{"one process", "two processes"} {
			t.Run(way+"/"+process, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					second := j
					if process == "two processes" {
						second = &journaltest.OwnProcess{Journal: j}
					}
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 404}}}
					first, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, authorized))
					bare, _ := clienttest.New(t, w, clienttest.On(second, clienttest.OneAttempt))
					if _, err := first.DoKey(clienttest.Post(t, "{}"), "lost"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Fatal(err)
					}
					if err := bare.Enqueue(clienttest.Post(t, `{"n":2}`), "queued"); err != nil {
						t.Fatalf("Enqueue for who has the credentials: %v", err)
					}
					time.Sleep(time.Hour)
					before := journaltest.All(t, j)
					_, err := bare.DoKey(clienttest.Post(t, `{"n":3}`), "own")
					if needsAuthorize(t, "a call", err); !errors.Is(err, oncehttp.ErrNoEffect) {
						t.Errorf("a call: %v; want ErrNoEffect", err)
					}
					if _, err = bare.Do(clienttest.Post(t, `{"n":4}`)); !errors.Is(err, oncehttp.ErrNoEffect) {
						t.Errorf("a call without a key: %v; want ErrNoEffect", err)
					}
					needsAuthorize(t, "a call without a key", err)
					_, err = bare.DoKey(clienttest.Post(t, "{}"), "lost")
					if needsAuthorize(t, "the same call", err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("the same call: %v; want ErrOutcomeUnknown", err)
					}
					errs := passOver(bare)
					for _, err := range errs {
						needsAuthorize(t, "Resume", err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					defer cancel()
					needsAuthorize(t, "Run", bare.Run(ctx))
					if len(errs) != 2 || bareSends(w) != 0 || w.Count() != 1 {
						t.Errorf("%d errors of Resume, %d sends, %d of them without a credential", len(errs), w.Count(), bareSends(w))
					}
					for i, rec := range journaltest.All(t, j) {
						if was := before[i]; rec.State != was.State || rec.Attempts != was.Attempts || !rec.NextAttempt.Equal(was.NextAttempt) {
							t.Errorf("%q has changed: %+v into %+v", rec.Key, was, rec)
						}
					}
					w.Replies = []wiretest.Reply{{Status: 201}}
					if passOver(first); w.Count() != 3 || bareSends(w) != 0 {
						t.Errorf("then its own client makes %d sends, %d without a credential", w.Count(), bareSends(w))
					}
				})
			})
		}
	}
}

// TestAuthorizedNotThere: a client without Authorize sends where nobody else sends with it, where its call has credentials of its
// own, and where a command has said that nobody does any more; a recorded answer it gets anyway.
func TestAuthorizedNotThere(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		first, _ := clienttest.New(t, w, clienttest.On(j, only(ourOrigin)))
		second, _ := clienttest.New(t, w, clienttest.On(j, only("https://third.example")))
		clienttest.Do(t, first, clienttest.Post(t, "{}"), "done")
		clienttest.Do(t, second, clienttest.Request(t, "POST", "https://third.example/p", "{}"), "third")
		bare, _ := clienttest.New(t, w, clienttest.On(&journaltest.OwnProcess{Journal: j}))
		before := w.Count()
		if resp := clienttest.Do(t, bare, clienttest.Post(t, "{}"), "done"); resp.StatusCode != 201 || w.Count() != before {
			t.Errorf("the recorded answer: %d after %d sends", resp.StatusCode, w.Count()-before)
		}
		clienttest.Do(t, bare, clienttest.Request(t, "POST", clienttest.OtherOrigin+"/p", "{}"), "elsewhere")
		own := clienttest.Post(t, `{"own":1}`)
		own.Header.Set("Authorization", "Bearer its own")
		clienttest.Do(t, bare, own, "own")
		if w.Count() != before+2 {
			t.Errorf("%d sends, want 2", w.Count()-before)
		}
		for _, url := range []string{ourOrigin, "https://third.example"} {
			if _, err := bare.DoKey(clienttest.Request(t, "POST", url+"/p", `{"x":1}`), oncehttp.Key(url)); !errors.Is(err, oncehttp.ErrConfig) {
				t.Errorf("%s: %v; want ErrConfig", url, err)
			}
		}
		standing, err := j.Fact(t.Context(), persist.FactOrigins, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		less := without(standing, ourOrigin+":443")
		if got, err := j.Fact(t.Context(), persist.FactOrigins, standing, less); err != nil || string(got) != string(less) {
			t.Fatal(string(got), err)
		}
		time.Sleep(2 * time.Second)
		clienttest.Do(t, bare, clienttest.Post(t, `{"y":1}`), "after")
		if _, err := bare.DoKey(clienttest.Request(t, "POST", "https://third.example/p", `{"z":1}`), "z"); !errors.Is(err, oncehttp.ErrConfig) {
			t.Errorf("the other: %v; want ErrConfig", err)
		}
	})
}

// without is a set of origins without one of them.
func without(set []byte, entry string) []byte { return requests.OriginSet(set).Without(entry) }

// TestAuthorizedIsReadSeldom: a client without Authorize reads the fact twice a second at most, and one with it writes it once.
func TestAuthorizedIsReadSeldom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*oncehttp.Config)
		want   int
	}{"without": {func(*oncehttp.Config) {}, 5}, "with": {only(ourOrigin), 2}} {
		synctest.Test(t, func(t *testing.T) {
			j := &factCounter{Journal: memory.New()}
			client, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j, c.change))
			for i := range 250 {
				clienttest.Do(t, client, clienttest.Post(t, "{}"), oncehttp.Key(strings.Repeat("k", i+1)))
				time.Sleep(10 * time.Millisecond)
			}
			if j.calls != c.want {
				t.Errorf("%s Authorize: %d calls, want %d", name, j.calls, c.want)
			}
		})
	}
}

// factCounter counts the calls that are about origins.
type factCounter struct {
	persist.Journal
	calls int
}

// Fact implements [persist.Journal].
func (f *factCounter) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	if name == persist.FactOrigins {
		f.calls++
	}
	return f.Journal.Fact(ctx, name, old, value)
}

// TestAuthorizedUnwritable: where the journal does not take the origins, nothing is begun and nothing is sent.
func TestAuthorizedUnwritable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &factRefuser{Journal: memory.New()}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		producer, _ := clienttest.New(t, w, clienttest.On(j))
		if err := producer.Enqueue(clienttest.Post(t, "{}"), "queued"); err != nil {
			t.Fatal(err)
		}
		j.err = persist.ErrDenied
		for name, change := range map[string]func(*oncehttp.Config){"with": only(ourOrigin), "without": func(*oncehttp.Config) {}} {
			c, _ := clienttest.New(t, w, clienttest.On(j, change))
			if _, err := c.DoKey(clienttest.Post(t, `{"n":1}`), "k"); !errors.Is(err, persist.ErrDenied) {
				t.Errorf("%s Authorize: Do: %v", name, err)
			}
			if errs := passOver(c); len(errs) != 1 || !errors.Is(errs[0], persist.ErrDenied) {
				t.Errorf("%s Authorize: Resume: %v", name, errs)
			}
		}
		if w.Count() != 0 || len(journaltest.All(t, j)) != 1 {
			t.Errorf("%d sends, %d records", w.Count(), len(journaltest.All(t, j)))
		}
	})
}

// factRefuser fails what is about origins.
type factRefuser struct {
	persist.Journal
	err error
}

// Fact implements [persist.Journal].
func (f *factRefuser) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	if name == persist.FactOrigins && f.err != nil {
		return nil, f.err
	}
	return f.Journal.Fact(ctx, name, old, value)
}
