package neighbours_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// stuckBody blocks in Read, or in Close, until it is let go.
type stuckBody struct {
	letGo   chan struct{}
	inClose bool
}

func (b stuckBody) Read([]byte) (int, error) {
	if !b.inClose {
		<-b.letGo
	}
	return 0, io.EOF
}

func (b stuckBody) Close() error {
	if b.inClose {
		<-b.letGo
	}
	return nil
}

// Each call ends with its context, wherever the request's body blocks, and a body that was not read began nothing.
func TestNeighbourStuckBodies(t *testing.T) {
	t.Parallel()
	bodies := map[string]func(req *http.Request, letGo chan struct{}){
		"Body":  func(req *http.Request, letGo chan struct{}) { req.Body, req.GetBody = stuckBody{letGo, false}, nil },
		"Close": func(req *http.Request, letGo chan struct{}) { req.Body, req.GetBody = stuckBody{letGo, true}, nil },
		"half of it": func(req *http.Request, letGo chan struct{}) {
			req.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), stuckBody{letGo, false}))
			req.GetBody = nil
		},
		"GetBody": func(req *http.Request, letGo chan struct{}) {
			req.Body = http.NoBody
			req.GetBody = func() (io.ReadCloser, error) { <-letGo; return http.NoBody, nil }
		},
		"GetBody's Read": func(req *http.Request, letGo chan struct{}) {
			req.Body = io.NopCloser(strings.NewReader(""))
			req.GetBody = func() (io.ReadCloser, error) { return stuckBody{letGo, false}, nil }
		},
		"GetBody's Close": func(req *http.Request, letGo chan struct{}) {
			req.Body = io.NopCloser(strings.NewReader(""))
			req.GetBody = func() (io.ReadCloser, error) { return stuckBody{letGo, true}, nil }
		},
	}
	calls := map[string]func(c *oncehttp.Client, req *http.Request) error{
		"Do":        func(c *oncehttp.Client, req *http.Request) error { _, err := c.Do(req); return err },
		"Transport": func(c *oncehttp.Client, req *http.Request) error { _, err := c.Transport().RoundTrip(req); return err },
		"Enqueue":   func(c *oncehttp.Client, req *http.Request) error { return c.Enqueue(req, "") },
		"Prepare":   func(c *oncehttp.Client, req *http.Request) error { _, err := c.Prepare(req, ""); return err },
	}
	for where, set := range bodies {
		for call, do := range calls {
			t.Run(where+"/"+call, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					letGo := make(chan struct{})
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
					c, j := clienttest.New(t, w, nil)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					req := clienttest.Post(t, "{}").WithContext(ctx)
					req.Header.Set("Idempotency-Key", "k-1")
					set(req, letGo)
					began := time.Now()
					ended := make(chan error, 1)
					go func() { ended <- do(c, req) }()
					var err error
					select {
					case err = <-ended:
					case <-time.After(time.Minute):
						t.Error("it does not end")
					}
					if took := time.Since(began); took > 4*time.Second {
						t.Errorf("it took %v", took)
					}
					if err != nil {
						clienttest.ExactlyOne(t, err)
					}
					_, found := j.Get(t.Context(), persist.ID{Key: "k-1"})
					if none := errors.Is(err, oncehttp.ErrNoEffect); none && (w.Count() != 0 || !errors.Is(found, persist.ErrNotFound)) {
						t.Errorf("%v, with %d sends and %v", err, w.Count(), found)
					}
					close(letGo)
				})
			})
		}
	}
}

// listing counts the records that a journal is made to list.
type listing struct {
	persist.Journal
	yielded, calls atomic.Int64
}

func (l *listing) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	l.calls.Add(1)
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range l.Journal.List(ctx, q) {
			l.yielded.Add(1)
			if !yield(rec, err) {
				return
			}
		}
	}
}

// What a call without a key costs does not grow with how many others make the same request meanwhile. Some look before the others
// are known: on two busy processors a third of them did, once in many runs. If each did, callers² / 2 records were listed.
func TestNeighbourManyAlike(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"Do", "Transport"} {
		for name, body := range map[string]func(i int) string{"alike": func(int) string { return "{}" }, "two kinds": func(i int) string { return fmt.Sprint(i % 2) }} {
			t.Run(way+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					const callers = 200
					l := &listing{Journal: memory.New()}
					c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}", Delay: time.Second}}}, func(cfg *oncehttp.Config) {
						cfg.Journal = l
					})
					var all sync.WaitGroup
					for i := range callers {
						req := clienttest.Post(t, body(i))
						all.Go(func() {
							call := c.Do
							if way == "Transport" {
								call = c.StandardClient().Do
							}
							if _, err := call(req); err != nil {
								t.Error(err)
							}
						})
					}
					all.Wait()
					if n := l.yielded.Load(); n > callers*callers*3/8 {
						t.Errorf("%d records listed in %d listings for %d callers", n, l.calls.Load(), callers)
					}
				})
			})
		}
	}
}

// lostBegin is a journal whose first Begin does not say what became of it.
type lostBegin struct {
	persist.Journal
	persist.Attachment
	written bool
	once    sync.Once
}

func (l *lostBegin) Attach(create func() any) any { return l.Attachment.Attach(create) }

func (l *lostBegin) Begin(ctx context.Context, rec persist.Record) (existing persist.Record, created bool, err error) {
	l.once.Do(func() {
		err = fmt.Errorf("no answer: %w", persist.ErrUncertain)
		if l.written {
			if _, _, e := l.Journal.Begin(ctx, rec); e != nil {
				err = e
			}
		}
	})
	if err != nil {
		return existing, false, err
	}
	return l.Journal.Begin(ctx, rec)
}

// A Begin whose answer was lost stands in the way of the same request for as long as it can still matter, and no longer.
func TestNeighbourLostBegins(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		for _, way := range []string{"Do", "Transport"} {
			t.Run(fmt.Sprintf("written %t/%s", written, way), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store := memory.New()
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.Journal = &lostBegin{Journal: store, written: written}
					})
					call := func() error {
						if way == "Transport" {
							_, err := c.Transport().RoundTrip(clienttest.Post(t, "{}"))
							return err
						}
						_, err := c.Do(clienttest.Post(t, "{}"))
						return err
					}
					var first, again *oncehttp.Error
					if err := call(); !errors.As(err, &first) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 0 {
						t.Fatalf("%v, %d sends", err, w.Count())
					}
					if err := call(); !errors.As(err, &again) || again.Key != first.Key || w.Count() != 0 {
						t.Errorf("%v, %d sends, want one that names %s", err, w.Count(), first.Key)
					}
					if written {
						elsewhere, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal = &beside{Journal: store} })
						time.Sleep(time.Hour)
						fatal(t, onePass(t, elsewhere))
						if resp, err := c.DoKey(clienttest.Post(t, "{}"), first.Key); err != nil || resp.StatusCode != 201 || w.Count() != 1 {
							t.Errorf("the key that was named: %v, %v, %d sends", resp, err, w.Count())
						}
					} else {
						time.Sleep(26 * time.Hour)
					}
					fatal(t, c.Flush(t.Context()))
					sends := w.Count()
					if err := call(); err != nil || w.Count() != sends+1 {
						t.Errorf("afterwards: %v, %d sends", err, w.Count()-sends)
					}
				})
			})
		}
	}
}

// Run says once what it cannot send for want of something in the Config, and in the end returns it; the rest goes on.
func TestNeighbourRunLacks(t *testing.T) {
	t.Parallel()
	unknown := bound("POST")
	unknown.Name = "only-elsewhere"
	for name, begin := range map[string]func(cfg *oncehttp.Config, req *http.Request){
		"a header":       func(cfg *oncehttp.Config, req *http.Request) { req.Header.Set("X-Api-Key", "a") },
		"a parameter":    func(cfg *oncehttp.Config, req *http.Request) { req.URL.RawQuery = "api_key=a" },
		"a pin":          func(cfg *oncehttp.Config, req *http.Request) { cfg.Credential = oncehttp.CredentialHash("a") },
		"another region": func(cfg *oncehttp.Config, req *http.Request) { cfg.Region = "eu" },
		"a profile":      func(cfg *oncehttp.Config, req *http.Request) { cfg.Profile = unknown },
	} {
		for _, ends := range []string{"stays", "is abandoned"} {
			t.Run(name+"/"+ends, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store := memory.New()
					req := clienttest.Post(t, "{}")
					other, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) {
						cfg.Journal, cfg.Authorize = &beside{Journal: store}, func(*http.Request) error { return nil }
						begin(cfg, req)
					})
					for i := range 20 {
						fatal(t, other.Enqueue(req.Clone(t.Context()), oncehttp.Key(fmt.Sprintf("lacks-%d", i))))
						req.Body = io.NopCloser(strings.NewReader("{}"))
					}
					var said bytes.Buffer
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.Journal, cfg.Logger = &beside{Journal: store}, slog.New(slog.NewTextHandler(&said, nil))
					})
					fatal(t, c.Enqueue(clienttest.Request(t, "POST", clienttest.OtherOrigin+"/p", `{"plain":1}`), "plain"))
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
					defer cancel()
					if ends == "is abandoned" {
						go func() {
							time.Sleep(time.Hour)
							for i := range 20 {
								if err := other.Abandon(t.Context(), oncehttp.Key(fmt.Sprintf("lacks-%d", i))); err != nil {
									t.Error(err)
								}
							}
						}()
					}
					err := c.Run(ctx)
					if errors.Is(err, oncehttp.ErrConfig) != (ends == "stays") {
						t.Errorf("Run: %v", err)
					}
					if w.Count() != 1 || clienttest.Lookup(t, c, "plain").State != persist.StateConfirmed {
						t.Errorf("%d sends, want that of the other operation", w.Count())
					}
					if n := strings.Count(said.String(), "\n"); n < 1 {
						t.Error("the logger was told nothing")
					}
				})
			})
		}
	}
}

// tallying is a limiter that counts.
type tallying struct{ n atomic.Int64 }

func (l *tallying) Wait(context.Context) error { l.n.Add(1); return nil }

// Each request of an operation has passed its origin's Limiter, whatever it is for.
func TestNeighbourLimited(t *testing.T) {
	t.Parallel()
	done := shopDone()
	for name, test := range map[string]struct {
		replies []wiretest.Reply
		profile *profile.Profile
		act     func(t *testing.T, c *oncehttp.Client)
	}{
		"attempts":       {[]wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 500}, {Status: 201}}, nil, nil},
		"hops":           {[]wiretest.Reply{{Status: 307, Header: "Location: /a"}, {Status: 308, Header: "Location: /b"}, {Status: 201}}, nil, nil},
		"a lookup, lost": {[]wiretest.Reply{{Err: wiretest.ErrLost}, {Err: wiretest.ErrLost}, {Status: 200, Body: `{"data":[{"reference":"r"}]}`}}, onceShop(), nil},
		"what was done":  {[]wiretest.Reply{{Status: 409, Body: `{"id":"p1","error":"done"}`}, {Status: 500}, {Status: 200, Body: "{}"}}, done, nil},
		"what a Rekey asks": {[]wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Body: `{"data":[]}`}}, onceShop(), func(t *testing.T, c *oncehttp.Client) {
			fatal(t, clienttest.RekeyAsSeen(c, t.Context(), "k-1", "k-2", "lost"))
		}},
	} {
		for _, way := range []string{"Do", "Transport", "Resume"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var limits tallying
					w := &wiretest.Wire{Replies: test.replies}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.Profile, cfg.Retry.AskFirst = test.profile, test.profile != nil && test.profile.Reference != nil
						cfg.Limiter = func(origin string) oncehttp.Limiter { return &limits }
						if test.act != nil {
							cfg.Retry.MaxAttempts = 1
						}
					})
					req := clienttest.Post(t, `{"reference":"r"}`)
					req.Header.Set("Idempotency-Key", "k-1")
					switch way {
					case "Do":
						_, _ = c.Do(req)
					case "Transport":
						_, _ = c.Transport().RoundTrip(req)
					default:
						fatal(t, c.Enqueue(req, ""))
						_ = onePass(t, c)
					}
					if test.act != nil {
						test.act(t, c)
					}
					if n := int(limits.n.Load()); n != w.Count() || n < len(test.replies) {
						t.Errorf("%d waits for %d requests, of %d at least", n, w.Count(), len(test.replies))
					}
				})
			})
		}
	}
}

func shopDone() *profile.Profile {
	p := bound("POST")
	p.AlreadyDone = []profile.Matcher{{Status: []int{409}, Pointer: "/error", Equals: []string{"done"}}}
	p.Lookup = &profile.Lookup{Pointer: "/id", Path: "{path}/{id}"}
	return p
}

// Open says what is wrong with its path: another journal's URL, or a file that this process has open, however it is spelled.
func TestNeighbourOpen(t *testing.T) {
	t.Parallel()
	for url, name := range map[string]string{
		"postgresql://u@127.0.0.1/d": "persist/postgres", "POSTGRES://u@127.0.0.1/d": "persist/postgres", "mysql://u@127.0.0.1/d": "persist/mysql",
		"redis://127.0.0.1:6379/0": "persist/redis", "rediss://127.0.0.1:6379/0": "persist/redis",
	} {
		c, err := oncehttp.Open(url, oncehttp.Config{})
		if err == nil {
			c.Close()
		}
		if !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one that names %s", url, err, name)
		}
	}
	dir := testrun.Dir(t)
	path := filepath.Join(dir, "j.db")
	c, err := oncehttp.Open(path, oncehttp.Config{})
	fatal(t, err)
	defer c.Close()
	fatal(t, os.Symlink(path, filepath.Join(dir, "symlink.db")))
	fatal(t, os.Link(path, filepath.Join(dir, "link.db")))
	for _, other := range []string{path, filepath.Join(dir, ".", "x", "..", "j.db"), filepath.Join(dir, "symlink.db"), filepath.Join(dir, "link.db")} {
		again, err := oncehttp.Open(other, oncehttp.Config{})
		if err == nil {
			again.Close()
		}
		if !errors.Is(err, persist.ErrLocked) || !strings.Contains(err.Error(), "this process") {
			t.Errorf("%s: %v", other, err)
		}
	}
}
