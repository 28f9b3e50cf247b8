// Package neighbours_test holds each promise once more in the places next to where it was once broken.
package neighbours_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// ended is a state in which an operation can stand, and what calls with its key are told then.
type ended struct {
	name    string
	replies []wiretest.Reply
	reach   func(t *testing.T, c *oncehttp.Client) // nil: one Do
	swept   bool                                   // its answer and request are dropped, too

	status  int            // what Do of the same request is answered; 0: it is told same
	same    error          // the verdict on Do of the same request
	enqueue error          // the verdict on its Enqueue and on CheckRepeat; nil: none
	other   error          // the verdict on another request under the key
	effect  persist.Effect // of each ErrFinal
	why     error          // what each error that is not about another request matches, too
}

const endedKey = oncehttp.Key("order-77")

func lose(t *testing.T, c *oncehttp.Client) {
	t.Helper()
	if _, err := c.DoKey(clienttest.Post(t, endedBody), endedKey); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatalf("a lost answer: %v", err)
	}
}

const endedBody = `{"order":"77","amount":100}`

func settle(t *testing.T, c *oncehttp.Client, r oncehttp.Resolution) {
	t.Helper()
	if err := clienttest.SettleAsSeen(c, t.Context(), endedKey, r); err != nil {
		t.Fatal(err)
	}
}

func endings() []ended {
	none, final, unknown := oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown
	answer := func(status int, header, body string) []wiretest.Reply {
		return []wiretest.Reply{{Status: status, Header: header, Body: body}}
	}
	lost := []wiretest.Reply{{Err: wiretest.ErrLost}}
	all := []ended{
		{name: "201 without a body", replies: answer(201, "", ""), status: 201, other: final, effect: oncehttp.EffectHappened},
		{name: "202", replies: answer(202, "", `{"job":1}`), status: 202, other: final, effect: oncehttp.EffectHappened},
		{name: "204", replies: answer(204, "", ""), status: 204, other: final, effect: oncehttp.EffectHappened},
		{name: "201, swept", replies: answer(201, "", `{}`), swept: true, same: final, why: oncehttp.ErrAnswerGone, other: final, effect: oncehttp.EffectHappened},
		{name: "202, swept", replies: answer(202, "", `{}`), swept: true, same: final, why: oncehttp.ErrAnswerGone, other: final, effect: oncehttp.EffectHappened},
		{name: "402, swept", replies: answer(402, "", `{}`), swept: true, same: final, why: oncehttp.ErrAnswerGone, enqueue: final, other: final, effect: oncehttp.EffectRefused},
		{name: "mismatch", replies: answer(422, "Content-Type: application/problem+json", `{"title":"key reused"}`),
			reach: func(t *testing.T, c *oncehttp.Client) {
				if _, err := c.DoKey(clienttest.Post(t, endedBody), endedKey); !errors.Is(err, oncehttp.ErrKeyReused) {
					t.Fatal(err)
				}
			}, same: final, enqueue: final, other: final, why: oncehttp.ErrKeyReused},
		{name: "settled as happened", replies: lost, reach: func(t *testing.T, c *oncehttp.Client) {
			lose(t, c)
			settle(t, c, oncehttp.Resolution{Effect: oncehttp.EffectHappened})
		}, same: final, why: oncehttp.ErrSettled, other: final, effect: oncehttp.EffectHappened},
		{name: "settled as happened, with an answer", replies: lost, reach: func(t *testing.T, c *oncehttp.Client) {
			lose(t, c)
			settle(t, c, oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 200, Body: []byte("{}")}})
		}, status: 200, other: final, effect: oncehttp.EffectHappened},
		{name: "settled as absent", replies: lost, reach: func(t *testing.T, c *oncehttp.Client) {
			lose(t, c)
			settle(t, c, oncehttp.Resolution{Effect: oncehttp.EffectAbsent})
		}, same: none, why: oncehttp.ErrSettled, enqueue: none, other: final, effect: oncehttp.EffectAbsent},
		{name: "settled as absent, swept", replies: lost, swept: true, reach: func(t *testing.T, c *oncehttp.Client) {
			lose(t, c)
			settle(t, c, oncehttp.Resolution{Effect: oncehttp.EffectAbsent})
		}, same: none, why: oncehttp.ErrSettled, enqueue: none, other: final, effect: oncehttp.EffectAbsent},
		{name: "abandoned in doubt", replies: lost, reach: func(t *testing.T, c *oncehttp.Client) {
			lose(t, c)
			if err := c.Abandon(t.Context(), endedKey); err != nil {
				t.Fatal(err)
			}
		}, same: unknown, why: oncehttp.ErrAbandoned, enqueue: unknown, other: unknown},
		{name: "abandoned unsent, swept", replies: lost, swept: true, reach: func(t *testing.T, c *oncehttp.Client) {
			if err := c.Enqueue(clienttest.Post(t, endedBody), endedKey); err != nil {
				t.Fatal(err)
			}
			if err := c.Abandon(t.Context(), endedKey); err != nil {
				t.Fatal(err)
			}
		}, same: unknown, why: oncehttp.ErrAbandoned, enqueue: unknown, other: unknown},
		{name: "held by a 303 to its origin", replies: answer(303, "Location: /payments/1", ""), reach: lose, same: unknown, why: oncehttp.ErrHeld, enqueue: unknown, other: unknown},
		{name: "held by a redirect", replies: answer(302, "Location: https://other.example.com/", ""), reach: lose,
			same: unknown, why: oncehttp.ErrHeld, enqueue: unknown, other: unknown},
		{name: "mismatch after a lost answer", replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 422, Header: "Content-Type: application/problem+json", Body: `{}`}},
			reach: func(t *testing.T, c *oncehttp.Client) { lose(t, c); lose(t, c) }, same: unknown, why: oncehttp.ErrHeld, enqueue: unknown, other: unknown},
	}
	for _, status := range []string{"400", "402", "404", "410", "418"} {
		code := int(status[0]-'0')*100 + int(status[1]-'0')*10 + int(status[2]-'0')
		all = append(all, ended{name: status, replies: answer(code, "Content-Type: application/json", `{"error":"declined"}`),
			status: code, enqueue: final, other: final, effect: oncehttp.EffectRefused})
	}
	return all
}

// journalOf is a new journal of an engine that needs no server.
func journalOf(t *testing.T, engine string) persist.Journal {
	t.Helper()
	if engine == "memory" {
		return memory.New()
	}
	j, err := bolt.Open(filepath.Join(testrun.Dir(t), "j.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// Each call with the key of an operation that has ended, or is held, is told by exactly one verdict what the record says,
// whatever the call, and sends nothing.
func TestNeighbourVerdicts(t *testing.T) {
	t.Parallel()
	for _, s := range endings() {
		for _, engine := range []string{"memory", "bolt"} {
			t.Run(s.name+"/"+engine, func(t *testing.T) {
				t.Parallel()
				w := &wiretest.Wire{Replies: s.replies}
				c, j := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Journal, cfg.Retry.MaxAttempts = journalOf(t, engine), 1
					if s.swept {
						cfg.KeepAnswer = -1
					}
				})
				if s.reach != nil {
					s.reach(t, c)
				} else if _, err := c.DoKey(clienttest.Post(t, endedBody), endedKey); err != nil {
					t.Fatal(err)
				}
				if s.swept {
					if n, err := c.Sweep(t.Context()); n != 1 || err != nil {
						t.Fatalf("%d swept, %v", n, err)
					}
				}
				sends := w.Count()
				s.checkSame(t, c, j)
				s.checkOther(t, c, j)
				s.checkOperator(t, c)
				if now := w.Count(); now != sends {
					t.Errorf("%d more sends", now-sends)
				}
			})
		}
	}
}

// told checks one error.
func (s *ended) told(t *testing.T, call string, err, verdict error) *oncehttp.Error {
	t.Helper()
	if verdict == nil {
		if err != nil {
			t.Errorf("%s: %v, want nil", call, err)
		}
		return nil
	}
	if err == nil {
		t.Errorf("%s: nil, want %v", call, verdict)
		return nil
	}
	clienttest.ExactlyOne(t, err)
	if !errors.Is(err, verdict) {
		t.Errorf("%s: %v, want %v", call, err, verdict)
	}
	var e *oncehttp.Error
	errors.As(err, &e)
	if verdict == oncehttp.ErrFinal && e != nil && e.Effect() != s.effect {
		t.Errorf("%s: %v says of the effect %q, want %q", call, err, e.Effect(), s.effect)
	}
	return e
}

func (s *ended) checkSame(t *testing.T, c *oncehttp.Client, j persist.Journal) {
	t.Helper()
	calls := map[string]func() (*http.Response, error){
		"Do": func() (*http.Response, error) { return c.DoKey(clienttest.Post(t, endedBody), endedKey) },
		"Transport": func() (*http.Response, error) {
			req := clienttest.Post(t, endedBody)
			req.Header.Set("Idempotency-Key", string(endedKey))
			return c.Transport().RoundTrip(req)
		},
	}
	for name, call := range calls {
		resp, err := call()
		if s.status == 0 {
			s.told(t, name, err, s.same)
			if !errors.Is(err, s.why) {
				t.Errorf("%s: %v, want %v, too", name, err, s.why)
			}
			continue
		}
		if err != nil || resp.StatusCode != s.status || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
			t.Errorf("%s: %v, %v, want %d from the journal", name, resp, err, s.status)
		}
	}
	s.told(t, "Enqueue", c.Enqueue(clienttest.Post(t, endedBody), endedKey), s.enqueue)
	s.checkBegin(t, "Begin", c, j, clienttest.Post(t, endedBody), s.enqueue)
}

// checkBegin begins what Prepare made, as a transaction of the caller's own does.
func (s *ended) checkBegin(t *testing.T, call string, c *oncehttp.Client, j persist.Journal, req *http.Request, verdict error) {
	t.Helper()
	rec, err := c.Prepare(req, endedKey)
	if err != nil {
		t.Errorf("%s: Prepare: %v", call, err)
		return
	}
	existing, created, err := j.Begin(t.Context(), rec)
	if created || err != nil {
		t.Fatalf("%s: created %t, %v", call, created, err)
	}
	err = existing.CheckRepeat(&rec)
	verdicts := 0
	for _, v := range []error{persist.ErrNoEffect, persist.ErrFinal, persist.ErrOutcomeUnknown} {
		if errors.Is(err, v) {
			verdicts++
		}
	}
	if !errors.Is(err, verdict) || err != nil && (verdicts != 1 || !errors.Is(err, persist.ErrTaken)) {
		t.Errorf("%s: CheckRepeat: %v (%d verdicts), want %v", call, err, verdicts, verdict)
	}
}

func (s *ended) checkOther(t *testing.T, c *oncehttp.Client, j persist.Journal) {
	t.Helper()
	const url = "https://api.example.com/payments?via=test"
	typed := func(contentType, body string) *http.Request {
		req := clienttest.Post(t, body)
		req.Header.Set("Content-Type", contentType)
		return req
	}
	others := map[string]func() *http.Request{
		"members in another order": func() *http.Request { return clienttest.Post(t, `{"amount":100,"order":"77"}`) },
		"a space more":             func() *http.Request { return clienttest.Post(t, endedBody+" ") },
		"no body":                  func() *http.Request { return clienttest.Post(t, "") },
		"a charset":                func() *http.Request { return typed("application/json; charset=utf-8", endedBody) },
		"a multipart boundary":     func() *http.Request { return typed("multipart/form-data; boundary=b2", "--b2--") },
		"PUT":                      func() *http.Request { return clienttest.Request(t, "PUT", url, endedBody) },
		"another query":            func() *http.Request { return clienttest.Request(t, "POST", url+"2", endedBody) },
		"another path": func() *http.Request {
			return clienttest.Request(t, "POST", "https://api.example.com/refunds?via=test", endedBody)
		},
	}
	for name, req := range others {
		_, err := c.DoKey(req(), endedKey)
		e := s.told(t, "Do, "+name, err, s.other)
		if !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("Do, %s: %v, want ErrKeyReused", name, err)
		}
		if next := string(endedKey.Generation(2)); e != nil && strings.Contains(err.Error(), next) != (s.effect == oncehttp.EffectRefused || s.effect == oncehttp.EffectAbsent) {
			t.Errorf("Do, %s: %v names %s, or does not, after %q", name, err, next, s.effect)
		}
		err = c.Enqueue(req(), endedKey)
		s.told(t, "Enqueue, "+name, err, s.other)
		if !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("Enqueue, %s: %v, want ErrKeyReused", name, err)
		}
		carrying := req()
		carrying.Header.Set("Idempotency-Key", string(endedKey))
		_, err = c.StandardClient().Do(carrying)
		s.told(t, "StandardClient, "+name, err, s.other)
		s.checkBegin(t, "Begin, "+name, c, j, req(), s.other)
	}
	large := clienttest.Post(t, strings.Repeat("x", 11<<20))
	_, err := c.DoKey(large, endedKey)
	if s.told(t, "Do, too large", err, s.beforeStart()); !errors.Is(err, oncehttp.ErrBodyTooLarge) {
		t.Errorf("Do, too large: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.DoKey(clienttest.Post(t, endedBody).WithContext(gone), endedKey)
	if s.status == 0 || err != nil { // an answer is no error
		s.told(t, "Do, an ended context", err, s.beforeStart())
	}
}

// beforeStart is the verdict on a call that could not begin: the record's.
func (s *ended) beforeStart() error {
	if s.status != 0 {
		return oncehttp.ErrFinal
	}
	return s.same
}

func (s *ended) checkOperator(t *testing.T, c *oncehttp.Client) {
	t.Helper()
	if s.beforeStart() == oncehttp.ErrOutcomeUnknown && s.why == oncehttp.ErrHeld {
		return // these calls end it
	}
	calls := map[string]func() error{
		"Settle as happened": func() error {
			return c.Settle(t.Context(), endedKey, oncehttp.Resolution{Effect: oncehttp.EffectHappened})
		},
		"Abandon": func() error { return c.Abandon(t.Context(), endedKey) },
	}
	for name, call := range calls {
		s.told(t, name, call(), s.beforeStart())
	}
	if s.beforeStart() != oncehttp.ErrNoEffect {
		s.told(t, "Rekey", clienttest.RekeyAsSeen(c, t.Context(), endedKey, endedKey.Generation(2), "tried anew"), s.beforeStart())
	}
	for name, err := range map[string]error{
		"Settle":  c.Settle(t.Context(), "nobody", oncehttp.Resolution{Effect: oncehttp.EffectHappened}),
		"Abandon": c.Abandon(t.Context(), "nobody"), "Rekey": clienttest.RekeyAsSeen(c, t.Context(), "nobody", "somebody", "why"),
	} {
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("%s of a key that nobody used: %v", name, err)
		}
		clienttest.ExactlyOne(t, err)
	}
}
