// Package events_test tests Config.Observe: every step of every public call is an event.
package events_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// stage is the place of one scene: a client with its events, on a journal that can fail.
type stage struct {
	t     *testing.T
	c     *oncehttp.Client
	j     *journaltest.Faulty
	wire  *wiretest.Wire
	heard clienttest.Events
}

// scene is one course of calls, and its events.
type scene struct {
	name    string
	replies []wiretest.Reply
	change  func(*oncehttp.Config)
	play    func(s *stage)
	want    string // the kinds, in their order, but those before s.heard was emptied
}

var (
	paid     = wiretest.Reply{Status: 201, Body: "{}"}
	lost     = wiretest.Reply{Err: wiretest.ErrLost}
	moved    = wiretest.Reply{Status: 301} // it is held
	declined = wiretest.Reply{Status: 402, Body: `{"error":"declined"}`}
)

// do sends an order under "k", whatever comes of it.
func (s *stage) do() error { _, err := s.c.DoKey(clienttest.Post(s.t, "{}"), "k"); return err }

// forget empties the list of events heard.
func (s *stage) forget() { s.heard.All = nil }

// earlier sends an order under "k", and forgets the events.
func (s *stage) earlier() { _ = s.do(); s.forget() }

// run lets Run work for a while.
func (s *stage) run(d time.Duration) {
	stop := clienttest.Run(s.t, s.c)
	time.Sleep(d)
	_ = stop()
}

// must ends the scene on an error.
func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// calls are the scenes of each method of Client. A method without a step of an operation has an empty list of events.
func calls() map[string][]scene {
	protected := clienttest.Protected
	return map[string][]scene{
		"Do": {
			{"paid", []wiretest.Reply{paid}, nil, func(s *stage) { _, err := s.c.Do(clienttest.Post(s.t, "{}")); s.must(err) }, "begun, attempt, answered, finished"},
			{"a misspelled method", nil, nil, func(s *stage) { _, _ = s.c.Do(clienttest.Request(s.t, "post", "https://api.example.com/", "{}")) }, "not begun"},
			{"no operation", []wiretest.Reply{paid}, nil, func(s *stage) { _, _ = s.c.Do(clienttest.Request(s.t, "GET", "https://api.example.com/", "")) }, ""},
		},
		"DoKey": {
			{"declined", []wiretest.Reply{declined}, nil, func(s *stage) { _ = s.do() }, "begun, attempt, answered, finished"},
			{"a lost answer", []wiretest.Reply{lost, paid}, protected, func(s *stage) { _ = s.do() }, "begun, attempt, answered, waiting, attempt, answered, finished"},
			{"held", []wiretest.Reply{moved}, nil, func(s *stage) { _ = s.do() }, "begun, attempt, answered, held, finished"},
			{"again while held", []wiretest.Reply{moved}, nil, func(s *stage) { s.earlier(); _ = s.do() }, "not begun"},
			{"answered before", []wiretest.Reply{paid}, nil, func(s *stage) { s.earlier(); s.must(s.do()) }, "recorded"},
			{"the key of another", []wiretest.Reply{paid}, nil, func(s *stage) { s.earlier(); _, _ = s.c.DoKey(clienttest.Post(s.t, "[]"), "k") }, "key reused"},
			{"no key at all", nil, nil, func(s *stage) { _, _ = s.c.DoKey(clienttest.Post(s.t, "{}"), "") }, "key refused"},
			{"a key of two lines", nil, nil, func(s *stage) { _, _ = s.c.DoKey(clienttest.Post(s.t, "{}"), "a\nb") }, "key refused"},
			{"the journal fails", nil, nil, func(s *stage) { s.j.OnBegin = journaltest.Fails(journaltest.ErrDisk); _ = s.do() }, "not begun"},
			{"two at once", []wiretest.Reply{{Status: 201, Delay: time.Second}}, nil, twoAtOnce, "begun, attempt, joined, answered, finished"},
			{"another under way", []wiretest.Reply{{Status: 201, Delay: time.Second}}, nil, otherAtOnce, "begun, attempt, key reused, answered, finished"},
			{"a slow limiter", []wiretest.Reply{paid}, clienttest.LimitedBy(&clienttest.Bucket{Period: time.Hour}), func(s *stage) { s.must(s.do()) }, "begun, left, begun, attempt, answered, finished"},
			{"its lease is over", []wiretest.Reply{{Status: 503, Header: "Retry-After: 1200"}}, noRenewals, func(s *stage) { _ = s.do() }, "begun, attempt, answered, waiting, lease lost, finished"},
			{"its window is over", []wiretest.Reply{lost}, protected, func(s *stage) { s.earlier(); time.Sleep(60 * 24 * time.Hour); _ = s.do() }, "begun, held, finished"},
		},
		"Enqueue": {
			{"new", nil, nil, func(s *stage) { s.must(s.c.Enqueue(clienttest.Post(s.t, "{}"), "k")) }, "enqueued"},
			{"of a pending one", []wiretest.Reply{lost}, protected, func(s *stage) { s.earlier(); s.must(s.c.Enqueue(clienttest.Post(s.t, "{}"), "k")) }, "enqueued"},
			{"of a paid one", []wiretest.Reply{paid}, nil, func(s *stage) { s.earlier(); s.must(s.c.Enqueue(clienttest.Post(s.t, "{}"), "k")) }, "enqueued"},
			{"of a held one", []wiretest.Reply{moved}, nil, func(s *stage) { s.earlier(); _ = s.c.Enqueue(clienttest.Post(s.t, "{}"), "k") }, "not begun"},
			{"the key of another", []wiretest.Reply{paid}, nil, func(s *stage) { s.earlier(); _ = s.c.Enqueue(clienttest.Post(s.t, "[]"), "k") }, "key reused"},
			{"no key", nil, nil, func(s *stage) { _ = s.c.Enqueue(clienttest.Post(s.t, "{}"), "") }, "key refused"},
		},
		"Prepare": {
			{"made", nil, nil, func(s *stage) { _, err := s.c.Prepare(clienttest.Post(s.t, "{}"), "k"); s.must(err) }, ""},
			{"no key", nil, nil, func(s *stage) { _, _ = s.c.Prepare(clienttest.Post(s.t, "{}"), "") }, "key refused"},
		},
		"Capture": {
			{"captured", nil, nil, func(s *stage) {
				_, err := s.c.Capture(s.t.Context(), "k", func(hc *http.Client) error { _, err := hc.Do(clienttest.Post(s.t, "{}")); return err })
				s.must(err)
			}, ""},
		},
		"Resume": {
			{"due", []wiretest.Reply{paid}, nil, func(s *stage) {
				s.must(s.c.Enqueue(clienttest.Post(s.t, "{}"), "k"))
				s.forget()
				clienttest.Pass(s.t, s.c)
			}, "attempt, answered, finished"},
			{"the journal fails", []wiretest.Reply{paid}, nil, func(s *stage) {
				s.must(s.c.Enqueue(clienttest.Post(s.t, "{}"), "k"))
				s.forget()
				s.j.OnUpdate = journaltest.Fails(journaltest.ErrDisk)
				for range s.c.Resume(s.t.Context()) {
				}
			}, "blocked"},
			{"reconciled", []wiretest.Reply{moved}, reconciles, func(s *stage) { s.earlier(); clienttest.Pass(s.t, s.c) }, "finished"},
		},
		"Run": {
			{"due", []wiretest.Reply{paid}, nil, func(s *stage) { s.must(s.c.Enqueue(clienttest.Post(s.t, "{}"), "k")); s.forget(); s.run(time.Second) }, "attempt, answered, finished"},
			{"delivered", []wiretest.Reply{declined}, delivers(nil), func(s *stage) { s.must(s.c.Enqueue(clienttest.Post(s.t, "{}"), "k")); s.run(2 * time.Second) }, "enqueued, attempt, answered, finished, delivered"},
			{"delivered in vain", []wiretest.Reply{declined}, delivers(errors.New("away")), func(s *stage) {
				s.must(s.c.Enqueue(clienttest.Post(s.t, "{}"), "k"))
				s.forget()
				s.run(1500 * time.Millisecond)
			}, "attempt, answered, finished, undelivered, undelivered"},
			{"sweeps", []wiretest.Reply{paid}, nil, func(s *stage) { s.earlier(); time.Sleep(4000 * 24 * time.Hour); s.run(time.Second) }, "swept"},
		},
		"Settle": {
			{"happened", []wiretest.Reply{moved}, nil, func(s *stage) {
				s.earlier()
				s.must(s.c.Settle(s.t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened}))
			}, "settled"},
			{"nothing found", []wiretest.Reply{moved}, nil, func(s *stage) { s.earlier(); s.must(s.c.Settle(s.t.Context(), "k", oncehttp.Resolution{})) }, ""},
			{"not there", nil, nil, func(s *stage) {
				_ = s.c.Settle(s.t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened})
			}, ""},
		},
		"Abandon": {{"held", []wiretest.Reply{moved}, nil, func(s *stage) { s.earlier(); s.must(s.c.Abandon(s.t.Context(), "k")) }, "abandoned"}},
		"Assign": {{"without an account", []wiretest.Reply{moved}, nil, func(s *stage) {
			s.earlier()
			s.must(s.c.Assign(oncehttp.ContextWithAccount(s.t.Context(), "acme"), "k"))
		}, "assigned"}},
		"Rekey": {{"held", []wiretest.Reply{moved}, nil, func(s *stage) {
			s.earlier()
			s.must(clienttest.AbsentAsSeen(s.c, s.t.Context(), "k"))
			s.must(clienttest.RekeyAsSeen(s.c, s.t.Context(), "k", "k2", "it is due"))
		}, "settled, rekeyed"}},
		"Redrive": {{"refused", []wiretest.Reply{{Status: 404}}, nil, func(s *stage) {
			s.earlier()
			_, err := s.c.Redrive(s.t.Context(), "k")
			s.must(err)
		}, "redriven"}},
		"Unsettle": {{"settled", []wiretest.Reply{moved}, nil, func(s *stage) {
			s.earlier()
			s.must(clienttest.AbsentAsSeen(s.c, s.t.Context(), "k"))
			_, err := s.c.Unsettle(s.t.Context(), "k", "a mistake")
			s.must(err)
		}, "settled, reopened"}},
		"Sweep": {
			{"old", []wiretest.Reply{paid}, nil, func(s *stage) {
				s.earlier()
				time.Sleep(4000 * 24 * time.Hour)
				_, err := s.c.Sweep(s.t.Context())
				s.must(err)
			}, "swept"},
			{"nothing", nil, nil, func(s *stage) { _, err := s.c.Sweep(s.t.Context()); s.must(err) }, ""},
		},
		"Prune": {{"old", []wiretest.Reply{paid}, nil, func(s *stage) {
			s.earlier()
			time.Sleep(4000 * 24 * time.Hour)
			_, err := s.c.Prune(s.t.Context(), oncehttp.Keeping{KeepAnswer: time.Hour})
			s.must(err)
		}, "swept"}},
		"Transport": {{"declared", []wiretest.Reply{paid}, nil, func(s *stage) {
			resp, err := s.c.Transport().RoundTrip(clienttest.Post(s.t, "{}"))
			s.must(err)
			clienttest.Read(s.t, resp)
		}, "begun, attempt, answered, finished"}},
		"StandardClient": {{"a key in the context", []wiretest.Reply{paid}, nil, func(s *stage) {
			resp, err := s.c.StandardClient().Do(clienttest.Post(s.t, "{}").WithContext(oncehttp.ContextWithKey(s.t.Context(), "k")))
			s.must(err)
			clienttest.Read(s.t, resp)
		}, "begun, attempt, answered, finished"}},
		"Webhook": {
			{"proves", []wiretest.Reply{lost}, charges, func(s *stage) { s.charge(); s.post("k") }, "witnessed"},
			{"during a call", nil, charges, func(s *stage) { s.charging() }, "begun, attempt, witnessed, answered, finished"},
			{"proves nothing", []wiretest.Reply{lost}, charges, func(s *stage) { s.charge(); s.post("another") }, "unproved"},
			{"contradicts", []wiretest.Reply{lost}, charges, func(s *stage) {
				s.charge()
				s.must(s.c.Abandon(s.t.Context(), "k"))
				s.forget()
				s.post("k")
			}, "contradicted"},
		},
		"Erase":  {{"one", []wiretest.Reply{paid}, nil, func(s *stage) { s.earlier(); _ = s.c.Erase(s.t.Context(), "k") }, ""}},
		"Lookup": {{"one", []wiretest.Reply{paid}, nil, func(s *stage) { s.earlier(); _, _ = s.c.Lookup(s.t.Context(), "k") }, ""}},
		"Unfinished": {{"one", []wiretest.Reply{moved}, nil, func(s *stage) {
			s.earlier()
			for range s.c.Unfinished(s.t.Context()) {
			}
		}, ""}},
		"Flush":    {{"one", []wiretest.Reply{paid}, nil, func(s *stage) { s.earlier(); s.must(s.c.Flush(s.t.Context())) }, ""}},
		"Wake":     {{"idle", nil, nil, func(s *stage) { s.c.Wake() }, ""}},
		"Close":    {{"idle", nil, nil, func(s *stage) { s.must(s.c.Close()) }, ""}},
		"Shutdown": {{"idle", nil, nil, func(s *stage) { s.must(s.c.Shutdown(s.t.Context())) }, ""}},
	}
}

// twoAtOnce sends the same order twice at once.
func twoAtOnce(s *stage) {
	done := make(chan error)
	go func() { done <- s.do() }()
	synctest.Wait()
	s.must(s.do())
	s.must(<-done)
}

// otherAtOnce sends another order under the key of one under way.
func otherAtOnce(s *stage) {
	done := make(chan error)
	go func() { done <- s.do() }()
	synctest.Wait()
	_, _ = s.c.DoKey(clienttest.Post(s.t, "[]"), "k")
	s.must(<-done)
}

// stiff is a journal with leases that it renews for nobody.
type stiff struct {
	*journaltest.Leasing
}

func (stiff) Renew(context.Context, string, time.Duration, []persist.ID) ([]persist.ID, time.Time, error) {
	return nil, time.Time{}, journaltest.ErrDisk
}

// noRenewals puts a client on such a journal, with time for a long pause.
func noRenewals(cfg *oncehttp.Config) {
	cfg.Journal = stiff{journaltest.NewLeasing(memory.New()).(*journaltest.Leasing)}
	cfg.Retry.MaxElapsed, cfg.Retry.MaxRetryAfter = time.Hour, time.Hour
	clienttest.Protected(cfg)
}

// reconciles lets Config.Reconcile find that it happened.
func reconciles(cfg *oncehttp.Config) {
	cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
		return oncehttp.Resolution{Effect: oncehttp.EffectHappened}, nil
	}
}

// delivers sets an OnResult that returns err.
func delivers(err error) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Journal = memory.New()
		cfg.OnResult = func(context.Context, persist.Record) error { return err }
	}
}

// play plays a scene, and returns its events.
func (sc *scene) hear(t *testing.T) []oncehttp.Event {
	s := &stage{t: t, j: &journaltest.Faulty{Journal: memory.New()}, wire: &wiretest.Wire{Replies: sc.replies}}
	s.c, _ = clienttest.New(t, s.wire, func(cfg *oncehttp.Config) {
		cfg.Journal, cfg.Observe = s.j, s.heard.Observe
		if sc.change != nil {
			sc.change(cfg)
		}
	})
	sc.play(s)
	_ = s.c.Close()
	return s.heard.All
}

// TestEveryCallIsHeard: each public call of a client has the events of its scenes, and no others; and each kind of event is one of a scene,
// or of Run beside other processes.
func TestEveryCallIsHeard(t *testing.T) {
	t.Parallel()
	all, met := calls(), map[string]bool{"unserved": true, "listening": true, "polling": true} // run/events_test.go and run/listen_test.go
	for i := range reflect.TypeFor[*oncehttp.Client]().NumMethod() {
		if name := reflect.TypeFor[*oncehttp.Client]().Method(i).Name; all[name] == nil {
			t.Errorf("Client.%s has no scene here", name)
		}
	}
	rules := invariants(t)
	for call, scenes := range all {
		for _, sc := range scenes {
			for kind := range strings.SplitSeq(sc.want, ", ") {
				met[kind] = true
			}
			t.Run(call+"/"+sc.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var kinds []string
					for _, e := range sc.hear(t) {
						kinds = append(kinds, string(e.Kind))
						checkEvent(t, &e, rules)
					}
					if got := strings.Join(kinds, ", "); got != sc.want {
						t.Errorf("heard %q; want %q", got, sc.want)
					}
				})
			})
		}
	}
	for _, kind := range kinds(t) {
		if !met[kind] {
			t.Errorf("no scene has an event %q", kind)
		}
	}
}

// checkEvent checks the fields that every event of its kind has.
func checkEvent(t *testing.T, e *oncehttp.Event, rules map[int]bool) {
	t.Helper()
	ofCall := !slices.Contains([]oncehttp.EventKind{oncehttp.EventSwept, oncehttp.EventDelivered, oncehttp.EventUndelivered, oncehttp.EventBlocked, oncehttp.EventUnproved}, e.Kind)
	if ofCall != (e.Call > 0) {
		t.Errorf("%s has the call %d", e.Kind, e.Call)
	}
	if e.Rule != 0 && !rules[e.Rule] {
		t.Errorf("%s names the rule %d, which docs/invariants.md has not", e.Kind, e.Rule)
	}
	if held := e.Kind == oncehttp.EventHeld; held && (e.Hold == "" || e.Rule == 0) {
		t.Errorf("%s for the reason %q, by the rule %d", e.Kind, e.Hold, e.Rule)
	}
	if e.Kind == oncehttp.EventFinished && e.Rule == 0 {
		t.Errorf("%s names no rule", e.Kind)
	}
	answered := e.Kind == oncehttp.EventAnswered || e.Kind == oncehttp.EventRecorded
	if answered && (e.Status != 0) != (e.Source != 0) {
		t.Errorf("%s has the status %d and the source %q", e.Kind, e.Status, e.Source)
	}
	if d := e.Took; d.Journal < 0 || d.Wire < 0 || d.Waiting < 0 || d.Journal+d.Wire+d.Waiting > d.Whole {
		t.Errorf("%s took %+v", e.Kind, d)
	}
}

// kinds returns the kinds of events, as the source has them.
func kinds(t *testing.T) (all []string) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "..", "events.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is && strings.HasPrefix(spec.Names[0].Name, "Event") {
			kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, kind)
		}
		return true
	})
	if len(all) < 20 {
		t.Fatalf("found %d kinds only", len(all))
	}
	return all
}

// invariants returns the numbers of docs/invariants.md.
func invariants(t *testing.T) map[int]bool {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "invariants.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(\d+)\. `).FindAllSubmatch(text, -1) {
		n, _ := strconv.Atoi(string(m[1]))
		all[n] = true
	}
	return all
}
