package keeping_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

const (
	paid    = `{"id":"p1","client_secret":"canary","card":{"number":"canary","brand":"x"}}`
	kept    = `{"id":"p1","card":{"brand":"x"}}`
	headers = "Content-Type: application/json\nDigest: sha-256=canary\nContent-Digest: sha-256=:canary:\nETag: \"canary\"\nX-Note: n"
)

var dropped = []string{"/card/number", "/client_secret"}

func dropping(cfg *oncehttp.Config) {
	clienttest.OneAttempt(cfg)
	cfg.DropAnswer = []string{"/client_secret", "/card/number", "/absent"}
}

// lessen checks that a recorded answer has nothing of the members, and that it names them.
func lessen(t *testing.T, a *persist.Answer) {
	t.Helper()
	if a == nil || string(a.Body) != kept || !reflect.DeepEqual(a.Dropped, dropped) || a.BodyDropped {
		t.Fatalf("recorded %+v", a)
	}
	for name, lines := range a.Header {
		if strings.Contains(strings.Join(lines, " "), "canary") {
			t.Errorf("the header %s is recorded, which tells of the whole body", name)
		}
	}
}

// TestDropAnswer: on each way to a record the members are taken out of the answer before it is recorded. The caller of the
// first call has the whole answer, and a replay names the missing members.
func TestDropAnswer(t *testing.T) {
	t.Parallel()
	reply := wiretest.Reply{Status: 201, Header: headers, Body: paid}
	answer := &persist.Answer{Status: 201, Body: []byte(paid)}
	for name, ends := range map[string]func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire){
		"Do": func(t *testing.T, c *oncehttp.Client, _ *wiretest.Wire) {
			resp := clienttest.Do(t, c, clienttest.Post(t, "{}"), "k")
			if got := clienttest.Read(t, resp); got != paid || resp.Header.Get("Digest") == "" || oncehttp.ResultOf(resp).Dropped != nil {
				t.Errorf("the first caller has %s, %v, %+v", got, resp.Header, oncehttp.ResultOf(resp))
			}
		},
		"Transport": func(t *testing.T, c *oncehttp.Client, _ *wiretest.Wire) {
			resp, err := clienttest.SDK(t, c, "k")
			if err != nil || clienttest.Read(t, resp) != paid {
				t.Errorf("the first caller has not the whole answer: %v", err)
			}
		},
		"Resume": func(t *testing.T, c *oncehttp.Client, _ *wiretest.Wire) {
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
			res := clienttest.Resume(t, c)["k"].Result
			if lessen(t, res.Answer); !reflect.DeepEqual(res.Dropped, dropped) {
				t.Errorf("%v are missing, the Result says", res.Dropped)
			}
		},
		"Settle": func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire) {
			w.Then(wiretest.Reply{Err: wiretest.ErrLost})
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
			clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: answer}))
			if string(answer.Body) != paid {
				t.Error("the caller's answer was changed")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{reply}}
				if name == "Settle" {
					w.Replies = nil
				}
				c, _ := clienttest.New(t, w, clienttest.On(j, dropping))
				ends(t, c, w)
				lessen(t, clienttest.Lookup(t, c, "k").Answer)
				sends := w.Count()
				resp := clienttest.Do(t, c, clienttest.Post(t, "{}"), "k")
				how := oncehttp.ResultOf(resp)
				if got := clienttest.Read(t, resp); got != kept || resp.ContentLength != int64(len(kept)) || !reflect.DeepEqual(how.Dropped, dropped) || w.Count() != sends {
					t.Errorf("the replay is %s after %d more sends, without %v", got, w.Count()-sends, how.Dropped)
				}
			})
		})
	}
}

// TestDropAnswerFrozen: a client that ends another one's operation leaves out the members that the beginner named, and its own; so does every later client.
func TestDropAnswerFrozen(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct{ begins, ends []string }{
		"the beginner names them":  {begins: []string{"/client_secret", "/card/number"}},
		"the ender names them":     {ends: []string{"/client_secret", "/card/number"}},
		"each names one":           {begins: []string{"/client_secret"}, ends: []string{"/card/number"}},
		"both name one, one alone": {begins: []string{"/client_secret", "/card/number"}, ends: []string{"/card/number", "/absent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Header: headers, Body: paid}}}
				naming := func(pointers []string) func(*oncehttp.Config) {
					return func(cfg *oncehttp.Config) { clienttest.OneAttempt(cfg); cfg.DropAnswer = pointers }
				}
				c, _ := clienttest.New(t, w, clienttest.On(j, naming(r.begins)))
				_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
				time.Sleep(time.Hour)
				other, _ := clienttest.New(t, w, clienttest.On(j, naming(r.ends)))
				clienttest.Resume(t, other)
				lessen(t, clienttest.Lookup(t, other, "k").Answer)
			})
		})
	}
}

// TestDropAnswerReconciled: the answer of Config.Reconcile is recorded without the members.
func TestDropAnswerReconciled(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, dropping, func(cfg *oncehttp.Config) {
			cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 201, Body: []byte(paid)}}, nil
			}
		}))
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
		clienttest.Resume(t, c)
		time.Sleep(100 * 24 * time.Hour) // its window
		clienttest.Resume(t, c)
		clienttest.Resume(t, c)
		lessen(t, clienttest.Lookup(t, c, "k").Answer)
	})
}

// TestDropAnswerOwed: OnResult gets the record, whose answer is without the members.
func TestDropAnswerOwed(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		got := make(chan persist.Record, 1)
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Header: headers, Body: paid}}}, clienttest.On(j, dropping, func(cfg *oncehttp.Config) {
			cfg.OnResult = func(_ context.Context, rec persist.Record) error { got <- rec; return nil }
		}))
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
		stop := clienttest.Run(t, c)
		rec := <-got
		lessen(t, rec.Answer)
		clienttest.Must(t, stop())
	})
}

// TestDropAnswerUnparsed: of an answer that is not one JSON value only status and headers are recorded. As after one that is too large, the
// server is asked again. One without a body has nothing to drop, and a compressed one is recorded as its text.
func TestDropAnswerUnparsed(t *testing.T) {
	t.Parallel()
	var zip bytes.Buffer
	zw := gzip.NewWriter(&zip)
	_, _ = zw.Write([]byte(paid))
	_ = zw.Close()
	for name, r := range map[string]struct {
		header, body string
		kept         string
		gone         bool
	}{
		"a text":                {"Content-Type: text/plain", "secret canary", "", true},
		"two JSON values":       {"", `{"client_secret":"canary"}{"client_secret":"canary"}`, "", true},
		"an unknown coding":     {"Content-Encoding: br", "canary", "", true},
		"no gzip, though named": {"Content-Encoding: gzip", "canary", "", true},
		"gzip":                  {"Content-Encoding: gzip\nContent-Type: application/json", zip.String(), kept, false},
		"without a body":        {"", "", "", false},
		"without the members":   {"", ` { "id" : 1.0 }`, ` { "id" : 1.0 }`, false},
		"a number of any size":  {"", `{"n":1e400,"client_secret":"canary"}`, `{"n":1e400}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Header: r.header, Body: r.body}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, dropping))
				if got := clienttest.Read(t, clienttest.Do(t, c, clienttest.Post(t, "{}"), "k")); got != r.body {
					t.Errorf("the first caller has %q", got)
				}
				a := clienttest.Lookup(t, c, "k").Answer
				if a.BodyDropped != r.gone || string(a.Body) != r.kept || a.Header.Get("Content-Encoding") != "" && r.kept != "" {
					t.Fatalf("recorded %q, %v, dropped %t", a.Body, a.Header, a.BodyDropped)
				}
				w.Then(wiretest.Reply{Status: 201, Header: "Content-Type: application/json", Body: paid})
				_ = clienttest.Do(t, c, clienttest.Post(t, "{}"), "k").Body.Close()
				if want := map[bool]int{true: 2, false: 1}[r.gone]; w.Count() != want {
					t.Errorf("%d sends, want %d", w.Count(), want)
				}
			})
		})
	}
}

// TestDropAnswerHeld: the answer of a held operation, and that of an error, are without the members.
func TestDropAnswerHeld(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500, Header: "Idempotent-Replayed: true\n" + headers, Body: paid}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, dropping, clienttest.Protected))
		_, err := c.DoKey(clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "a=1"), "k")
		e := new(oncehttp.Error)
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		lessen(t, e.Answer)
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateHeld || rec.Answer == nil {
			t.Fatalf("%v, %+v", rec.State, rec.Answer)
		}
		lessen(t, clienttest.Lookup(t, c, "k").Answer)
	})
}

// TestDropAnswerOtherFacts: a client with other facts records the answer without a member that the facts of the operation read. The client
// with these facts does not take its absence for a success: the operation stays held.
func TestDropAnswerOtherFacts(t *testing.T) {
	t.Parallel()
	ours := clienttest.WithProfile("x", func(p *profile.Profile) {
		p.Unclear = []profile.Matcher{{Status: []int{200}, Pointer: "/problem"}, {Status: []int{200}, Pointer: "/results/1/declined"}}
	})
	theirs := clienttest.WithProfile("x", func(p *profile.Profile) {
		p.Mismatch = []profile.Matcher{{Status: []int{200}, Pointer: "/id"}}
	})
	for name, r := range map[string]struct {
		body, drops string
		ends        bool
	}{
		"a value that is read":                      {`{"id":"p1","problem":"p"}`, "/problem", false},
		"another":                                   {`{"id":"p1","client_secret":"s"}`, "/client_secret", true},
		"an item before a value that is read":       {`{"id":"p1","results":["s",{"declined":true}]}`, "/results/0", false},
		"an item before one without such a value":   {`{"id":"p1","results":["s",{"paid":true}]}`, "/results/0", true},
		"an item after one with a value of its own": {`{"id":"p1","results":["s","t",{"declined":true}]}`, "/results/0", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Body: r.body}}}
				begins, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, ours))
				_, _ = begins.DoKey(clienttest.Post(t, "{}"), "k")
				reads, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, theirs, func(cfg *oncehttp.Config) { cfg.DropAnswer = []string{r.drops} }))
				_, _ = reads.DoKey(clienttest.Post(t, "{}"), "k")
				if rec := clienttest.Lookup(t, begins, "k"); rec.HoldReason != persist.HoldUnread {
					t.Fatalf("%v, held for %q", rec.State, rec.HoldReason)
				}
				_, _ = begins.DoKey(clienttest.Post(t, "{}"), "k")
				if rec := clienttest.Lookup(t, begins, "k"); rec.State.Final() != r.ends {
					t.Errorf("it is %v", rec.State)
				}
			})
		})
	}
}

// TestDropAnswerOfGraphQL: an answer recorded without the errors of a GraphQL API, or without a part of them, ends no hold as a success.
func TestDropAnswerOfGraphQL(t *testing.T) {
	t.Parallel()
	plain := clienttest.WithProfile("x", func(*profile.Profile) {})
	theirs := clienttest.WithProfile("x", func(p *profile.Profile) {
		p.Mismatch = []profile.Matcher{{Status: []int{200}, Pointer: "/extensions/kind"}}
	})
	for drops, ends := range map[string]bool{"/errors": false, "/errors/0": false, "/errors/0/message": false, "/extensions/trace": true} {
		t.Run(drops, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				data := map[bool]string{true: `{"id":"p1"}`, false: "null"}[ends]
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Body: `{"data":` + data + `,"errors":[{"message":"declined"}],"extensions":{"kind":"k","trace":"t"}}`}}}
				pay := func() *http.Request {
					return clienttest.Request(t, http.MethodPost, "https://api.example.com/graphql.json", `{"query":"query { pay }"}`)
				}
				begins, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, plain))
				_, _ = begins.DoKey(pay(), "k")
				reads, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, theirs, func(cfg *oncehttp.Config) { cfg.DropAnswer = []string{drops} }))
				_, _ = reads.DoKey(pay(), "k")
				if rec := clienttest.Lookup(t, begins, "k"); rec.HoldReason != persist.HoldUnread || !reflect.DeepEqual(rec.Answer.Dropped, []string{drops}) {
					t.Fatalf("%v, held for %q, with %s", rec.State, rec.HoldReason, rec.Answer.Body)
				}
				_, _ = begins.DoKey(pay(), "k")
				if rec := clienttest.Lookup(t, begins, "k"); rec.State.Final() != ends {
					t.Errorf("it is %v", rec.State)
				}
			})
		})
	}
}

// TestDropAnswerTwice: the end of an operation by its recorded answer takes nothing more out of that, and names the missing parts: of an array, too,
// whose other items keep their places.
func TestDropAnswerTwice(t *testing.T) {
	t.Parallel()
	ours := clienttest.WithProfile("x", func(p *profile.Profile) {
		p.Unclear = []profile.Matcher{{Status: []int{200}, Pointer: "/declined"}}
	})
	theirs := clienttest.WithProfile("x", func(p *profile.Profile) {
		p.Mismatch = []profile.Matcher{{Status: []int{200}, Pointer: "/kind"}}
	})
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Body: `{"kind":"k","items":["s","a","b"],"s":1}`}}}
		begins, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, ours, func(cfg *oncehttp.Config) { cfg.DropAnswer = []string{"/items/0", "/s"} }))
		_, _ = begins.DoKey(clienttest.Post(t, "{}"), "k")
		reads, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, theirs))
		_, _ = reads.DoKey(clienttest.Post(t, "{}"), "k")
		for _, state := range []persist.State{persist.StateHeld, persist.StateConfirmed} {
			rec := clienttest.Lookup(t, begins, "k")
			if a := rec.Answer; rec.State != state || string(a.Body) != `{"kind":"k","items":[null,"a","b"]}` || !reflect.DeepEqual(a.Dropped, []string{"/items/0", "/s"}) {
				t.Errorf("%v with %s, without %v; want it %v", rec.State, a.Body, a.Dropped, state)
			}
			_, _ = begins.DoKey(clienttest.Post(t, "{}"), "k")
		}
	})
}

// TestDropAnswerOfLookup: each item of a list of the profile is recorded without the members, whoever found it. They are named as Config names
// them.
func TestDropAnswerOfLookup(t *testing.T) {
	t.Parallel()
	order := strings.Replace(servertest.OrderOne, "{", `{"client_secret":"canary",`, 1)
	list := `{"data":[{"id":"p1","client_secret":"canary"},{"card":{"number":"canary"}}],"client_secret":"canary"}`
	for name, r := range map[string]struct {
		ends    func(t *testing.T, s *servertest.Shop, c *oncehttp.Client)
		kept    string
		dropped []string
	}{
		"the lookup's": {func(t *testing.T, _ *servertest.Shop, c *oncehttp.Client) {
			resp := clienttest.Do(t, c, clienttest.Post(t, order), "k")
			if got := clienttest.Read(t, resp); !strings.Contains(got, "canary") || oncehttp.ResultOf(resp).Dropped != nil {
				t.Errorf("the first caller has %s", got)
			}
		}, `{"data":[{"amount":100,"number":"A/1\u0026x"}]}`, dropped[1:]},
		"the lookup's, by Resume": {func(t *testing.T, _ *servertest.Shop, c *oncehttp.Client) {
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, order), "k"))
			if res := clienttest.Resume(t, c)["k"].Result; bytes.Contains(res.Answer.Body, []byte("canary")) || !reflect.DeepEqual(res.Dropped, dropped[1:]) {
				t.Errorf("the Result has %s, without %v", res.Answer.Body, res.Dropped)
			}
		}, `{"data":[{"amount":100,"number":"A/1\u0026x"}]}`, dropped[1:]},
		"a person's": {func(t *testing.T, s *servertest.Shop, c *oncehttp.Client) {
			s.Broken = true
			_, _ = c.DoKey(clienttest.Post(t, order), "k")
			clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200, Body: []byte(list)}}))
		}, `{"data":[{"id":"p1"},{"card":{}}]}`, dropped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				s := &servertest.Shop{Lose: 1}
				c, _ := clienttest.New(t, s, clienttest.On(j, dropping, servertest.Shopping, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 2 }))
				r.ends(t, s, c)
				a := clienttest.Lookup(t, c, "k").Answer
				if strings.TrimSpace(string(a.Body)) != r.kept || !reflect.DeepEqual(a.Dropped, r.dropped) {
					t.Errorf("recorded %s, without %v; want %s, without %v", a.Body, a.Dropped, r.kept, r.dropped)
				}
				resp := clienttest.Do(t, c, clienttest.Post(t, order), "k")
				if got, how := clienttest.Read(t, resp), oncehttp.ResultOf(resp); got != string(a.Body) || !reflect.DeepEqual(how.Dropped, r.dropped) {
					t.Errorf("the replay is %s, without %v", got, how.Dropped)
				}
			})
		})
	}
}

// TestDropAnswerInItems: New refuses a pointer to a value that the profile reads in an item of its list. The record of a client with another
// list does not say in which items a value is missing: the operation stays held for one that reads it in any.
func TestDropAnswerInItems(t *testing.T) {
	t.Parallel()
	reading := func(list, pointer string) *profile.Profile {
		p := servertest.ByNumber()
		p.Reference.List = list
		p.Unclear = []profile.Matcher{{Status: []int{200}, Pointer: pointer}}
		return p
	}
	for name, r := range map[string]struct {
		list, pointer string
		refused, ends bool
	}{
		"read in an item of the list":  {"/data", "/data/0/declined/code", true, false},
		"read in an item of another":   {"/data", "/items/0/declined", false, false},
		"another is read in an item":   {"/data", "/data/0/problem", false, true},
		"read in a member of the list": {"/data", "/data/x/declined", false, true},
		"an item is read":              {"/data", "/data/7", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				ours := reading(r.list, r.pointer)
				_, err := oncehttp.New(oncehttp.Config{Journal: j, Profile: ours, DropAnswer: []string{"/declined"}})
				if errors.Is(err, oncehttp.ErrConfig) != r.refused {
					t.Errorf("New: %v", err)
				}
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Body: `{"items":[{"declined":true}],"kind":"k"}`}}}
				begins, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = ours }))
				_, _ = begins.DoKey(clienttest.Post(t, "{}"), "k")
				reads, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
					cfg.Profile, cfg.DropAnswer = reading("/items", "/problem"), []string{"/declined"}
					cfg.Profile.Mismatch = []profile.Matcher{{Status: []int{200}, Pointer: "/kind"}}
				}))
				_, _ = reads.DoKey(clienttest.Post(t, "{}"), "k")
				if rec := clienttest.Lookup(t, begins, "k"); rec.HoldReason != persist.HoldUnread || string(rec.Answer.Body) != `{"items":[{}],"kind":"k"}` {
					t.Fatalf("%v, held for %q, with %s", rec.State, rec.HoldReason, rec.Answer.Body)
				}
				_, _ = begins.DoKey(clienttest.Post(t, "{}"), "k")
				if rec := clienttest.Lookup(t, begins, "k"); rec.State.Final() != r.ends {
					t.Errorf("it is %v", rec.State)
				}
			})
		})
	}
}

// TestDropAnswerFlawedTwice: a second page instead of an answer is held, also where neither is recorded with its body. It counts as the same by
// its status and its Content-Type. Nothing of it is recorded.
func TestDropAnswerFlawedTwice(t *testing.T) {
	t.Parallel()
	page := wiretest.Reply{Status: 200, Header: "Content-Type: text/html", Body: wiretest.Maintenance}
	with := func(change func(*wiretest.Reply)) wiretest.Reply { r := page; change(&r); return r }
	cut, paid := wiretest.Reply{Status: 200, Body: `{"client_secret":"canary`}, wiretest.Reply{Status: 201, Body: `{"id":"p1"}`}
	for name, r := range map[string]struct {
		replies []wiretest.Reply
		change  func(*oncehttp.Config)
		sends   int
		held    bool
	}{
		"the same":                {[]wiretest.Reply{page, page, paid}, nil, 2, true},
		"the same, after a loss":  {[]wiretest.Reply{page, {Err: wiretest.ErrLost}, page, paid}, nil, 3, true},
		"another of its kind":     {[]wiretest.Reply{page, with(func(r *wiretest.Reply) { r.Body += "<!-- ray 2 -->" }), paid}, nil, 2, true},
		"another status":          {[]wiretest.Reply{page, with(func(r *wiretest.Reply) { r.Status = 202 }), paid}, nil, 3, false},
		"another type":            {[]wiretest.Reply{page, with(func(r *wiretest.Reply) { r.Header = "Content-Type: text/xml" }), paid}, nil, 3, false},
		"an answer after it":      {[]wiretest.Reply{page, paid}, nil, 2, false},
		"an early end":            {[]wiretest.Reply{cut, cut, paid}, nil, 2, true},
		"an early end, then more": {[]wiretest.Reply{cut, page, paid}, nil, 3, false},
		"headers not kept":        {[]wiretest.Reply{page, page, paid}, func(cfg *oncehttp.Config) { cfg.MaxResponseHeaderBytes = 8 }, 2, true},
		"larger than may be kept": {[]wiretest.Reply{page, page, paid}, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 30 }, 2, true},
		"larger, without a member": {
			[]wiretest.Reply{page, page, paid}, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes, cfg.DropAnswer = 30, nil }, 2, true,
		},
		"a larger one before, without a member": {
			[]wiretest.Reply{with(func(r *wiretest.Reply) { r.Body += strings.Repeat(" ", 100) }), page, paid},
			func(cfg *oncehttp.Config) { cfg.MaxResponseBytes, cfg.DropAnswer = 120, nil }, 3, false,
		},
		"nothing to be dropped": {[]wiretest.Reply{page, page, paid}, func(cfg *oncehttp.Config) { cfg.DropAnswer = nil }, 2, true},
		"nothing to be dropped, another of its kind": {
			[]wiretest.Reply{page, with(func(r *wiretest.Reply) { r.Body += "<!-- ray 2 -->" }), paid},
			func(cfg *oncehttp.Config) { cfg.DropAnswer = nil }, 3, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: r.replies}
				c, _ := clienttest.New(t, w, clienttest.On(j, dropping, clienttest.Protected, func(cfg *oncehttp.Config) {
					if r.change != nil {
						r.change(cfg)
					}
				}))
				for range 6 {
					_, _ = c.DoKey(clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "a=1"), "k")
				}
				rec := clienttest.Lookup(t, c, "k")
				if (rec.State == persist.StateHeld) != r.held || w.Count() != r.sends || r.held == rec.State.Final() {
					t.Errorf("%v %s after %d sends, want it held %t after %d", rec.State, rec.HoldReason, w.Count(), r.held, r.sends)
				}
				if rec.DropAnswer != nil && r.held && (len(rec.Answer.Body) > 0 || !rec.Answer.BodyDropped) {
					t.Errorf("recorded %s", rec.Answer.Body)
				}
			})
		})
	}
}
