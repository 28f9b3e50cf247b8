package close_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// crasher does something once, in one place of a user's code.
type crasher struct {
	place string
	do    func()

	mu    sync.Mutex
	fired bool
}

// at is called in each place.
func (c *crasher) at(place string) {
	c.mu.Lock()
	now := place == c.place && !c.fired
	c.fired = c.fired || now
	c.mu.Unlock()
	if now {
		c.do()
	}
}

func (c *crasher) hasFired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fired
}

// crashText is in all that panics: a secret, which no log may hold.
const crashText = clienttest.Canary + " and more"

// crashes are the ways in which user code ends.
var crashes = map[string]func(){
	"panic":            func() { panic(crashText) },
	"panic with error": func() { panic(errors.New("it is broken")) },
	"Goexit":           runtime.Goexit,
}

// crashPlaces are the functions of the Config, and methods of what is in it, that a Do, a Resume and a Run reach. Those of the
// journal are crashPlacesOfJournal.
var crashPlaces = map[string]func(cfg *oncehttp.Config, c *crasher){
	"Authorize": func(cfg *oncehttp.Config, c *crasher) {
		cfg.Authorize = func(*http.Request) error { c.at("Authorize"); return nil }
	},
	"Token": func(cfg *oncehttp.Config, c *crasher) {
		cfg.Profile = clienttest.TokenProfile()
		cfg.Token = func(_ context.Context, rec persist.Record) (string, error) { c.at("Token"); return rec.Key, nil }
	},
	"Observe begun":    crashObserve("begun", func(e *oncehttp.Event) bool { return e.Kind == oncehttp.EventBegun }),
	"Observe attempt":  crashObserve("attempt", func(e *oncehttp.Event) bool { return e.Kind == oncehttp.EventAttempt }),
	"Observe answered": crashObserve("answered", func(e *oncehttp.Event) bool { return e.Kind == oncehttp.EventAnswered }),
	"Observe finished": crashObserve("finished", func(e *oncehttp.Event) bool { return e.Kind == oncehttp.EventFinished }),
	"OriginAllowed": func(cfg *oncehttp.Config, c *crasher) {
		cfg.OriginAllowed = func(string) bool { c.at("OriginAllowed"); return true }
	},
	"Limiter": func(cfg *oncehttp.Config, c *crasher) {
		cfg.Limiter = func(string) oncehttp.Limiter { c.at("Limiter"); return nil }
	},
	"Limiter.Wait": func(cfg *oncehttp.Config, c *crasher) {
		wait := clienttest.LimiterFunc(func(context.Context) error { c.at("Limiter.Wait"); return nil })
		cfg.Limiter = func(string) oncehttp.Limiter { return wait }
	},
	"Transport": func(cfg *oncehttp.Config, c *crasher) { crashTransport(cfg, c, nil) },
	"Answer.Read": func(cfg *oncehttp.Config, c *crasher) {
		crashTransport(cfg, c, func(b io.ReadCloser) io.ReadCloser { return crashingBody{b, c, "Answer"} })
	},
	"Answer.Close": func(cfg *oncehttp.Config, c *crasher) {
		crashTransport(cfg, c, func(b io.ReadCloser) io.ReadCloser { return crashingBody{b, c, "Answer"} })
	},
	"KeepHeader": func(cfg *oncehttp.Config, c *crasher) {
		cfg.KeepHeader = func(string) bool { c.at("KeepHeader"); return false }
	},
	"NewKey": func(cfg *oncehttp.Config, c *crasher) {
		cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { c.at("NewKey"); return "made", nil }
	},
	"ProfileOf": func(cfg *oncehttp.Config, c *crasher) {
		p := profile.Draft07()
		p.Name = "elsewhere"
		cfg.ProfileOf = func(persist.Record) *profile.Profile { c.at("ProfileOf"); return p }
	},
	"Body.Read": func(*oncehttp.Config, *crasher) {}, "Body.Close": func(*oncehttp.Config, *crasher) {}, "GetBody": func(*oncehttp.Config, *crasher) {},
}

func crashObserve(place string, is func(*oncehttp.Event) bool) func(cfg *oncehttp.Config, c *crasher) {
	return func(cfg *oncehttp.Config, c *crasher) {
		cfg.Observe = func(_ context.Context, e oncehttp.Event) {
			if is(&e) {
				c.at("Observe " + place)
			}
		}
	}
}

// crashTransport puts a Transport around that of cfg.
func crashTransport(cfg *oncehttp.Config, c *crasher, body func(io.ReadCloser) io.ReadCloser) {
	next := cfg.Transport
	cfg.Transport = wiretest.Func(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		c.at("Transport")
		if err == nil && body != nil {
			resp.Body = body(resp.Body)
		}
		return resp, err
	})
}

// crashingBody is a body of a request, or of an answer.
type crashingBody struct {
	io.ReadCloser
	c    *crasher
	name string
}

func (b crashingBody) Read(p []byte) (int, error) {
	b.c.at(b.name + ".Read")
	return b.ReadCloser.Read(p)
}
func (b crashingBody) Close() error { b.c.at(b.name + ".Close"); return b.ReadCloser.Close() }

// crashPlacesOfJournal are the methods of a user's own journal that a Do, a Resume or a Run calls.
var crashPlacesOfJournal = []string{
	"Journal.Begin", "Journal.Update", "Journal.Finish", "Journal.Forget", "Journal.Get", "Journal.List", "Journal.Flush", "Journal.Sweep", "Journal.Secret",
}

// crashJournal is a journal of a user's own.
type crashJournal struct {
	persist.Journal
	c *crasher
}

func (j crashJournal) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	j.c.at("Journal.Begin")
	return j.Journal.Begin(ctx, rec)
}

func (j crashJournal) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	j.c.at("Journal.Update")
	return j.Journal.Update(ctx, rec)
}

func (j crashJournal) Finish(ctx context.Context, rec persist.Record) error {
	j.c.at("Journal.Finish")
	return j.Journal.Finish(ctx, rec)
}

func (j crashJournal) Forget(ctx context.Context, rec persist.Record) error {
	j.c.at("Journal.Forget")
	return j.Journal.Forget(ctx, rec)
}

func (j crashJournal) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	j.c.at("Journal.Get")
	return j.Journal.Get(ctx, id)
}

func (j crashJournal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		j.c.at("Journal.List")
		j.Journal.List(ctx, q)(yield)
	}
}

func (j crashJournal) Flush(ctx context.Context) error {
	j.c.at("Journal.Flush")
	return j.Journal.Flush(ctx)
}

func (j crashJournal) Secret(ctx context.Context) ([]byte, error) {
	j.c.at("Journal.Secret")
	return j.Journal.Secret(ctx)
}

func (j crashJournal) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	j.c.at("Journal.Sweep")
	return j.Journal.Sweep(ctx, l)
}

// ledgerServer answers 201, and counts the effects of each key: one, however often it is sent.
type ledgerServer struct {
	mu      sync.Mutex
	effects map[string]int // sends of each key
}

func (s *ledgerServer) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	req.Body.Close()
	s.mu.Lock()
	s.effects[wiretest.Key(req.Header)]++
	s.mu.Unlock()
	wiretest.HandedOver(req)
	return &http.Response{
		StatusCode: 201, Header: http.Header{}, Request: req, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Body: io.NopCloser(strings.NewReader("done")),
	}, nil
}

// sends returns the number of sends of each key.
func (s *ledgerServer) sends(key oncehttp.Key) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[string(key)]
}

// crashClient is a client on j whose user code in this place does something once.
func crashClient(t *testing.T, j persist.Journal, place string, do func()) (*oncehttp.Client, *crasher, *ledgerServer, *clienttest.Log) {
	t.Helper()
	crash, server, log := &crasher{place: place, do: do}, &ledgerServer{effects: map[string]int{}}, &clienttest.Log{}
	c, _ := clienttest.New(t, server, func(cfg *oncehttp.Config) {
		cfg.Journal, cfg.Logger = j, log.Logger()
		cfg.Retry.AttemptTimeout, cfg.Retry.MaxPause = time.Second, 10*time.Minute
		if set := crashPlaces[place]; set != nil {
			set(cfg, crash)
		} else {
			cfg.Journal = crashJournal{j, crash}
		}
	})
	return c, crash, server, log
}

// crashRequest is a request whose body is a user's own where the place is in it.
func crashRequest(t *testing.T, ctx context.Context, crash *crasher) *http.Request {
	req := clienttest.Post(t, `{"card":"`+clienttest.Canary+`"}`).WithContext(ctx)
	switch crash.place {
	case "Body.Read", "Body.Close":
		req.Body, req.GetBody = crashingBody{req.Body, crash, "Body"}, nil
	case "GetBody":
		req.Body = io.NopCloser(strings.NewReader("")) // it was read before
		next := req.GetBody
		req.GetBody = func() (io.ReadCloser, error) { crash.at("GetBody"); return next() }
	}
	return req
}
