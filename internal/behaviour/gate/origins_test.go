package gate_test

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

const (
	ourOrigin = "https://api.example.com"
)

// credential is an Authorize with a live key.
func credential(req *http.Request) error {
	req.Header.Set("Authorization", "Bearer live")
	return nil
}

// only lets a client with a credential send to one origin.
func only(origin string) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Origins, cfg.Authorize = []string{origin}, credential }
}

// TestOriginsRequired: a client says where its credentials go, and where it sends what others may write into its journal. The error is the line
// that is missing. What is malformed is named.
func TestOriginsRequired(t *testing.T) {
	t.Parallel()
	never := func(string) bool { return false }
	const malformed = `Origins[0]: an origin has no userinfo, path, query or fragment; want "https://api.example.com"`
	for name, r := range map[string]struct {
		cfg       oncehttp.Config
		says      string
		saysThere string // where others share the journal; empty: says
	}{
		"neither":                {oncehttp.Config{Authorize: credential}, `Origins: []string{"https://api.example.com"}`, ""},
		"a list":                 {oncehttp.Config{Authorize: credential, Origins: []string{ourOrigin}}, "", ""},
		"an empty list":          {oncehttp.Config{Authorize: credential, Origins: []string{}}, "", ""},
		"a table":                {oncehttp.Config{Authorize: credential, OriginAllowed: never}, "", ""},
		"both":                   {oncehttp.Config{Authorize: credential, Origins: []string{ourOrigin}, OriginAllowed: never}, "", ""},
		"without Authorize":      {oncehttp.Config{}, "", `journal on a server, where others may write what this client sends; add Origins: []string{"https://api.example.com"}`},
		"a producer":             {oncehttp.Config{Origins: []string{}}, "", ""},
		"a table alone":          {oncehttp.Config{OriginAllowed: never}, "", ""},
		"a malformed one":        {oncehttp.Config{Origins: []string{ourOrigin, "api.example.com"}}, "Origins[1]", ""},
		"malformed with a table": {oncehttp.Config{Origins: []string{ourOrigin + "/v1"}, OriginAllowed: never}, malformed, ""},
	} {
		for where, open := range journalsOfOrigins(t) {
			c, err := open(r.cfg)
			says := r.says
			if strings.HasPrefix(where, "shared") {
				says = cmp.Or(r.saysThere, says)
			}
			if says == "" && err != nil || says != "" && (!errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), says)) {
				t.Errorf("%s, %s: %v, want %q", name, where, err, says)
			}
			if err == nil {
				c.Close()
			}
		}
	}
}

// journalsOfOrigins open clients on journals that this process has alone, and on some that it shares.
func journalsOfOrigins(t *testing.T) map[string]func(oncehttp.Config) (*oncehttp.Client, error) {
	on := func(open func() persist.Journal) func(oncehttp.Config) (*oncehttp.Client, error) {
		return func(cfg oncehttp.Config) (*oncehttp.Client, error) {
			cfg.Journal = open()
			return oncehttp.New(cfg)
		}
	}
	shared := func() persist.Journal { return newOtherProcess(memory.New()) }
	return map[string]func(oncehttp.Config) (*oncehttp.Client, error){
		"a file": func(cfg oncehttp.Config) (*oncehttp.Client, error) {
			return oncehttp.Open(filepath.Join(testrun.Dir(t), "j.db"), cfg)
		},
		"memory":         on(func() persist.Journal { return memory.New() }),
		"sealed memory":  on(func() persist.Journal { return journaltest.Sealed(t, memory.New(), "k1") }),
		"shared":         on(shared),
		"shared, sealed": on(func() persist.Journal { return journaltest.Sealed(t, shared(), "k1") }),
	}
}

// originCalls are the calls that begin an operation.
func originCalls() map[string]func(c *oncehttp.Client, req *http.Request) error {
	return map[string]func(c *oncehttp.Client, req *http.Request) error{
		"DoKey": func(c *oncehttp.Client, req *http.Request) error { _, err := c.DoKey(req, "k"); return err },
		"Transport": func(c *oncehttp.Client, req *http.Request) error {
			_, err := c.Transport().RoundTrip(withKey(req, "k"))
			return err
		},
		"Enqueue": func(c *oncehttp.Client, req *http.Request) error { return c.Enqueue(req, "k") },
		"Prepare": func(c *oncehttp.Client, req *http.Request) error { _, err := c.Prepare(req, "k"); return err },
	}
}

func withKey(req *http.Request, key string) *http.Request {
	req.Header.Set("Idempotency-Key", key)
	return req
}

// countedBody notes whether it was closed.
type countedBody struct {
	io.Reader
	closed *bool
}

func (b countedBody) Close() error { *b.closed = true; return nil }

// TestOtherOrigin: a call for an origin that is not the client's is ErrConfig; nothing is sent or recorded, and no key is made. The
// verdict is that on what stands under the key.
func TestOtherOrigin(t *testing.T) {
	t.Parallel()
	for name, call := range originCalls() {
		for standing, verdict := range map[string]error{"nothing": oncehttp.ErrNoEffect, "pending": oncehttp.ErrOutcomeUnknown, "confirmed": oncehttp.ErrFinal} {
			t.Run(name+"/"+standing, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					before := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					if standing == "pending" {
						before.Replies[0] = wiretest.Reply{Err: wiretest.ErrLost}
					}
					free, _ := clienttest.New(t, before, clienttest.On(j, clienttest.OneAttempt))
					if standing != "nothing" {
						_, _ = free.DoKey(clienttest.Request(t, "POST", clienttest.OtherOrigin+"/p", "{}"), "k")
					}
					records := journaltest.All(t, j)
					w, closed := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, false
					c, _ := clienttest.New(t, w, clienttest.On(j, only(ourOrigin)))
					req := clienttest.Request(t, "POST", clienttest.OtherOrigin+"/p", "{}")
					req.Body = countedBody{strings.NewReader("{}"), &closed}
					err := call(c, req)
					if !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, verdict) || !strings.Contains(err.Error(), `"https://elsewhere.example:443"`) {
						t.Errorf("%v; want ErrConfig and %v", err, verdict)
					}
					if w.Count() != 0 || !closed || !reflect.DeepEqual(journaltest.All(t, j), records) {
						t.Errorf("%d sends, body closed %t, records %+v", w.Count(), closed, journaltest.All(t, j))
					}
					if err := call(c, clienttest.Request(t, "POST", ourOrigin+"/p", `{"another":1}`)); standing == "nothing" && err != nil {
						t.Errorf("to the client's own origin: %v", err)
					}
				})
			})
		}
	}
}

// TestOtherOriginMakesNoKey: NewKey, which may ask a server, is not asked for a request that goes nowhere.
func TestOtherOriginMakesNoKey(t *testing.T) {
	t.Parallel()
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) {
		cfg.Origins = []string{ourOrigin}
		cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { t.Error("NewKey is asked"); return "n", nil }
	})
	if _, err := c.Do(clienttest.Request(t, "POST", clienttest.OtherOrigin, "{}")); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) {
		t.Error(err)
	}
}

// TestOriginAllowed: either of the two allows an origin, which the function gets as records spell it.
func TestOriginAllowed(t *testing.T) {
	t.Parallel()
	table := func(origin string) bool { return origin == "https://elsewhere.example:443" }
	for name, r := range map[string]struct {
		change func(*oncehttp.Config)
		allows map[string]bool
	}{
		"neither": {nothing, map[string]bool{ourOrigin: true, clienttest.OtherOrigin: true}},
		"a list":  {func(cfg *oncehttp.Config) { cfg.Origins = []string{ourOrigin} }, map[string]bool{ourOrigin: true, clienttest.OtherOrigin: false}},
		"a table": {func(cfg *oncehttp.Config) { cfg.OriginAllowed = table }, map[string]bool{ourOrigin: false, clienttest.OtherOrigin: true}},
		"both":    {func(cfg *oncehttp.Config) { cfg.Origins, cfg.OriginAllowed = []string{ourOrigin}, table }, map[string]bool{ourOrigin: true, clienttest.OtherOrigin: true, "https://third.example": false}},
		"an empty list and a table": {
			func(cfg *oncehttp.Config) { cfg.Origins, cfg.OriginAllowed = []string{}, table }, map[string]bool{ourOrigin: false, clienttest.OtherOrigin: true},
		},
		"an empty list": {func(cfg *oncehttp.Config) { cfg.Origins = []string{} }, map[string]bool{ourOrigin: false, clienttest.OtherOrigin: false}},
	} {
		for origin, allowed := range r.allows {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, r.change)
			_, err := c.DoKey(clienttest.Request(t, "POST", origin, "{}"), "k")
			if (err == nil) != allowed || err != nil && !errors.Is(err, oncehttp.ErrConfig) || (w.Count() == 1) != allowed {
				t.Errorf("%s, %s: %v after %d sends", name, origin, err, w.Count())
			}
		}
	}
}

// TestRecordOfOtherOrigin: what stands in a journal is sent, looked up, undone and begun anew only at the client's origins, and
// nothing with its credential leaves for another; neither where a record's target leads to another host than its origin says.
func TestRecordOfOtherOrigin(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*persist.Record){
		"another origin":                 func(rec *persist.Record) { rec.Origin = "https://elsewhere.example:443" },
		"an origin that is no URL":       func(rec *persist.Record) { rec.Origin = "https://elsewhere.example:443/" + rec.Origin },
		"a host in the target":           func(rec *persist.Record) { rec.Target = "@elsewhere.example/p" },
		"a part of the host's name":      func(rec *persist.Record) { rec.Origin, rec.Target = ourOrigin, ".elsewhere.example/p" },
		"userinfo and a host, no slash":  func(rec *persist.Record) { rec.Origin, rec.Target = ourOrigin, ":443@elsewhere.example" },
		"a pattern's neighbour, a label": func(rec *persist.Record) { rec.Origin = "https://a.api.example.com:443" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				free, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j))
				rec, err := free.Prepare(clienttest.Post(t, "{}"), "k")
				if err != nil {
					t.Fatal(err)
				}
				spoil(&rec)
				if _, _, err := j.Begin(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, only(ourOrigin), func(cfg *oncehttp.Config) { cfg.Logger = slog.New(slog.DiscardHandler) }))
				for res, err := range c.Resume(t.Context()) {
					if err == nil {
						t.Errorf("resumed: %+v", res)
					}
				}
				stop := clienttest.Run(t, c)
				time.Sleep(time.Hour)
				_ = stop() // what it could not send
				if w.Count() != 0 || clienttest.Lookup(t, c, "k").State.Final() {
					t.Errorf("%d sends: %+v; the record is %v", w.Count(), w.All(), clienttest.Lookup(t, c, "k").State)
				}
			})
		})
	}
}

// TestUndoAtOtherOrigin: an Abandon that undoes asks the client's own origins only, and leaves the record as it was elsewhere.
func TestUndoAtOtherOrigin(t *testing.T) {
	t.Parallel()
	for origin, allowed := range map[string]bool{"http://mock.test": true, ourOrigin: false} {
		t.Run(origin, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				p := servertest.Square(t)
				server, transport := servertest.Till(t, mockserver.Config{Profile: p, Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
				free, _ := clienttest.New(t, transport, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = p }))
				if _, err := free.DoKey(servertest.SquarePay(t), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				before := clienttest.Lookup(t, free, "k")
				c, _ := clienttest.New(t, transport, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile, cfg.Origins = p, []string{origin} }))
				err := c.Abandon(t.Context(), "k", oncehttp.Undo())
				if (err == nil) != allowed || server.Undone("k") != allowed || !allowed && !errors.Is(err, oncehttp.ErrConfig) {
					t.Errorf("%v, undone %t", err, server.Undone("k"))
				}
				if rec := clienttest.Lookup(t, free, "k"); !allowed && !reflect.DeepEqual(rec, before) {
					t.Errorf("the record was %+v, and is %+v", before, rec)
				}
			})
		})
	}
}

// TestRekeyAtOtherOrigin: a Rekey neither asks at another origin nor begins an operation there.
func TestRekeyAtOtherOrigin(t *testing.T) {
	t.Parallel()
	for _, settled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &servertest.Shop{}
			free, _, j := servertest.LostOrder(t, s, servertest.Promising)
			if settled {
				clienttest.Absent(t, free, "k")
			}
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: `{"data":[]}`}}}
			c, _ := clienttest.New(t, w, clienttest.On(j, servertest.Promising, only(clienttest.OtherOrigin)))
			err := clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why)
			if !errors.Is(err, oncehttp.ErrConfig) || w.Count() != 0 || len(journaltest.All(t, j)) != 1 {
				t.Errorf("settled %t: %v after %d sends, %d records", settled, err, w.Count(), len(journaltest.All(t, j)))
			}
		})
	}
}

// TestProducer: a client that sends nothing enqueues for any origin, which a worker sends; it sends nothing itself.
func TestProducer(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		none, w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		producer, _ := clienttest.New(t, none, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Origins = []string{} }))
		if err := producer.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		if _, err := producer.Prepare(clienttest.Post(t, "{}"), "k2"); err != nil {
			t.Error(err)
		}
		if _, err := producer.DoKey(clienttest.Post(t, "{}"), "k3"); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("Do: %v", err)
		}
		if _, err := producer.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrConfig) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("Do of what is enqueued: %v", err)
		}
		for range producer.Resume(t.Context()) { // it cannot
		}
		if none.Count() != 0 {
			t.Errorf("%d sends by the producer", none.Count())
		}
		time.Sleep(time.Hour)
		worker, _ := clienttest.New(t, w, clienttest.On(j, only(ourOrigin)))
		clienttest.Pass(t, worker)
		if w.Count() != 1 || w.All()[0].Header.Get("Authorization") != "Bearer live" || clienttest.Lookup(t, worker, "k").State != persist.StateConfirmed {
			t.Errorf("%d sends by the worker", w.Count())
		}
	})
}

// TestPassThroughElsewhere: what is no operation goes anywhere, with the credential to the client's origins only.
func TestPassThroughElsewhere(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(c *oncehttp.Client, req *http.Request) (*http.Response, error){
		"Transport": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) {
			return c.Transport().RoundTrip(req)
		},
		"Do": (*oncehttp.Client).Do,
	} {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200}}}
		c, _ := clienttest.New(t, w, only(ourOrigin))
		for _, to := range []struct{ url, credential string }{
			{ourOrigin + "/p", "Bearer live"}, {clienttest.OtherOrigin + "/p", ""}, {"http://api.example.com/p", ""}, {"https://api.example.com:8443/p", ""}, {"https://api.example.com.elsewhere.example/p", ""},
		} {
			req, err := http.NewRequest("GET", to.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := do(c, req)
			if err != nil {
				t.Fatalf("%s %s: %v", name, to.url, err)
			}
			resp.Body.Close()
			if sends := w.All(); sends[len(sends)-1].Header.Get("Authorization") != to.credential {
				t.Errorf("%s %s: Authorization %q, want %q", name, to.url, sends[len(sends)-1].Header.Get("Authorization"), to.credential)
			}
		}
	}
}

// TestOriginTakenBack: where the table takes an origin back between the check and the send, nothing is sent.
func TestOriginTakenBack(t *testing.T) {
	t.Parallel()
	asked := 0
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.Authorize, cfg.Profile = credential, profile.Draft07()
		cfg.OriginAllowed = func(string) bool { asked++; return asked == 1 }
	})
	if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrNoEffect) || w.Count() != 0 {
		t.Errorf("%v after %d sends", err, w.Count())
	}
}
