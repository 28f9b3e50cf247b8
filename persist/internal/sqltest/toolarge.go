package sqltest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// bounded is a client, its API, and its journal. The journal's server takes nothing over bound in one piece.
type bounded struct {
	*testing.T
	j      persist.Journal
	bound  int
	client *oncehttp.Client
	key    oncehttp.Key
	url    string
	sends  atomic.Int32
	answer atomic.Pointer[said]
}

// said is the API's answer. body and header are the numbers of bytes in its body and its header.
type said struct {
	status, body, header int
	html                 bool
}

// newBounded returns a client on a journal whose server takes at most bound bytes in one piece. The bounds of the client itself are far larger.
// change adjusts its Config. Its API answers as b.answer says: with a status, bodies and headers of these sizes, and a page of HTML or not.
func newBounded(t *testing.T, j persist.Journal, bound int, key string, change func(*oncehttp.Config)) *bounded {
	t.Helper()
	b := &bounded{T: t, j: j, bound: bound, key: oncehttp.Key(key)}
	b.answer.Store(&said{status: 201, body: 10})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		b.sends.Add(1)
		a := b.answer.Load()
		start := `"`
		w.Header().Set("Content-Type", "application/json")
		if a.html {
			start = "<!DOCTYPE html>"
			w.Header().Set("Content-Type", "text/html")
		}
		if a.header > 0 {
			w.Header().Set("X-Long", strings.Repeat("h", a.header))
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, start+strings.Repeat("b", a.body)+`"`)
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	far := 8 * bound
	cfg := oncehttp.Config{
		Journal: j, Origins: Loopback(), Retry: oncehttp.Policy{MaxAttempts: 1}, MaxRequestBytes: int64(far), MaxResponseBytes: int64(far),
		MaxRequestHeaderBytes: int64(far), MaxResponseHeaderBytes: int64(far),
	}
	if change != nil {
		change(&cfg)
	}
	client, err := oncehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	b.client = client
	return b
}

// request returns a request with a body of n bytes.
func (b *bounded) request(n int) *http.Request {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.url, strings.NewReader(strings.Repeat("r", n)))
	if err != nil {
		b.Fatal(err)
	}
	return req
}

// do calls DoKey, reads the answer, and waits until its end is recorded.
func (b *bounded) do(req *http.Request, key oncehttp.Key) error {
	resp, err := b.client.DoKey(req, key)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close(), b.client.Flush(b.Context()))
}

// is checks that an error matches verdict (ErrNoEffect, ErrFinal or ErrOutcomeUnknown) and none of the other two. With ErrNoEffect it must match
// ErrTooLarge, too. call names the call for messages.
func (b *bounded) is(call string, err, verdict error) {
	b.Helper()
	for _, v := range []error{oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown} {
		if errors.Is(err, v) != (v == verdict) {
			b.Errorf("%s: %.300v, want %v", call, err, verdict)
		}
	}
	if verdict == oncehttp.ErrNoEffect && !errors.Is(err, persist.ErrTooLarge) {
		b.Errorf("%s: %.300v, want ErrTooLarge", call, err)
	}
}

// stands checks the state of a record, and the number of all sends so far. states has at most one state, the wanted one. Without states there must be no
// record. It returns the record.
func (b *bounded) stands(id persist.ID, sends int, states ...persist.State) persist.Record {
	b.Helper()
	rec, err := b.j.Get(b.Context(), id)
	switch {
	case len(states) == 0 && !errors.Is(err, persist.ErrNotFound):
		b.Errorf("%s: %v, %v; want no record", id.Key, rec.State, err)
	case len(states) > 0 && (err != nil || rec.State != states[0]):
		b.Errorf("%s: %v, %v; want %v", id.Key, rec.State, err, states[0])
	}
	if n := int(b.sends.Load()); n != sends {
		b.Errorf("%s: %d sends, want %d", id.Key, n, sends)
	}
	return rec
}

// tooLargeRepeats returns the tests of requests that are too large for the journal, under the key of an existing record. The method is checks an error, and
// stands the number of all sends and the state of a record (without a state there must be none).
func tooLargeRepeats() map[string]func(b *bounded) {
	return map[string]func(b *bounded){
		"under a pending key": func(b *bounded) {
			if err := b.client.Enqueue(b.request(10), b.key); err != nil {
				b.Fatal(err)
			}
			b.is("Do", b.do(b.request(b.bound+1), b.key), oncehttp.ErrOutcomeUnknown)
			b.is("Enqueue", b.client.Enqueue(b.request(b.bound+1), b.key), oncehttp.ErrOutcomeUnknown)
			b.stands(persist.ID{Key: string(b.key)}, 0, persist.StatePending)
		},
		"under a confirmed key": func(b *bounded) {
			if err := b.do(b.request(10), b.key); err != nil {
				b.Fatal(err)
			}
			b.is("Do", b.do(b.request(b.bound+1), b.key), oncehttp.ErrFinal)
			b.is("Enqueue", b.client.Enqueue(b.request(b.bound+1), b.key), oncehttp.ErrFinal)
			b.stands(persist.ID{Key: string(b.key)}, 1, persist.StateConfirmed)
		},
		"under a refused key": func(b *bounded) {
			b.answer.Store(&said{status: 402, body: 10})
			if err := b.do(b.request(10), b.key); err != nil {
				b.Fatal(err)
			}
			b.is("Do", b.do(b.request(b.bound+1), b.key), oncehttp.ErrFinal)
			b.stands(persist.ID{Key: string(b.key)}, 1, persist.StateConfirmed)
		},
		"under another account's key": func(b *bounded) {
			if err := b.client.Enqueue(b.request(10), b.key); err != nil {
				b.Fatal(err)
			}
			req := b.request(b.bound + 1)
			req = req.WithContext(oncehttp.ContextWithAccount(req.Context(), "bob"))
			err := b.client.Enqueue(req, b.key)
			// A record under no account may be his, until it is assigned.
			if errors.Is(err, oncehttp.ErrNoEffect) == errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				b.Errorf("Enqueue: %v", err)
			}
			b.stands(persist.ID{Account: "bob", Key: string(b.key)}, 0)
		},
	}
}

// tooLargeRequests returns the tests of requests that are too large for the journal, or nearly so, under a free key: in another part than the body,
// by another method of the client, at the bound itself, many at once. The method is checks an error, and stands the number of all sends and the state of a
// record (without a state there must be none).
func tooLargeRequests() map[string]func(b *bounded) {
	return map[string]func(b *bounded){
		"by a RoundTripper": func(b *bounded) {
			req := b.request(b.bound + 1)
			req.Header.Set("Idempotency-Key", string(b.key))
			resp, err := b.client.Transport().RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			b.is("RoundTrip", err, oncehttp.ErrNoEffect)
			b.stands(persist.ID{Key: string(b.key)}, 0)
		},
		"a header": func(b *bounded) {
			req := b.request(10)
			req.Header.Set("X-Long", strings.Repeat("h", b.bound+1))
			b.is("Enqueue", b.client.Enqueue(req, b.key), oncehttp.ErrNoEffect)
			b.stands(persist.ID{Key: string(b.key)}, 0)
		},
		"a target": func(b *bounded) {
			req := b.request(10)
			req.URL.RawQuery = "q=" + strings.Repeat("q", b.bound+1)
			b.is("Enqueue", b.client.Enqueue(req, b.key), oncehttp.ErrNoEffect)
			b.stands(persist.ID{Key: string(b.key)}, 0)
		},
		"at the bound, twice, and rekeyed": func(b *bounded) {
			for range 2 {
				if err := b.client.Enqueue(b.request(b.bound), b.key); err != nil {
					b.Error(err)
				}
			}
			seen := b.stands(persist.ID{Key: string(b.key)}, 0, persist.StatePending)
			if err := b.client.Settle(b.Context(), b.key, oncehttp.Resolution{Effect: persist.EffectAbsent}, oncehttp.AsSeen(seen)); err != nil {
				b.Error(err)
			}
			seen = b.stands(persist.ID{Key: string(b.key)}, 0, persist.StateSettled)
			if err := b.client.Rekey(b.Context(), b.key, b.key+"-2", "why", oncehttp.AsSeen(seen)); err != nil {
				b.Error(err)
			}
			b.stands(persist.ID{Key: string(b.key) + "-2"}, 0, persist.StatePending)
		},
		"many at once that fit": func(b *bounded) {
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					key := b.key + oncehttp.Key(rune('a'+i))
					b.answer.Store(&said{status: 201, body: b.bound * 6 / 10})
					if err := b.do(b.request(b.bound*6/10), key); err != nil {
						b.Errorf("%s: %v", key, err)
					}
					if rec, err := b.j.Get(b.Context(), persist.ID{Key: string(key)}); err != nil || rec.Answer == nil || rec.Answer.BodyDropped {
						b.Errorf("%s: %v, %v", key, rec.State, err)
					}
				})
			}
			all.Wait()
		},
	}
}

// tooLargeResolutions returns tests with too large answers that a program gives, to Settle or from Reconcile. The API itself has not sent them. The method
// stands checks the number of all sends and the state of a record.
func tooLargeResolutions() map[string]func(b *bounded) {
	over := func(b *bounded) *persist.Answer {
		return &persist.Answer{Status: 201, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte(strings.Repeat("a", 2*b.bound))}
	}
	return map[string]func(b *bounded){
		"given to Settle": func(b *bounded) {
			if err := b.client.Enqueue(b.request(10), b.key); err != nil {
				b.Fatal(err)
			}
			if err := b.client.Settle(b.Context(), b.key, oncehttp.Resolution{Effect: persist.EffectHappened, Answer: over(b)}); err != nil {
				b.Errorf("Settle: %.300v", err)
			}
			b.stands(persist.ID{Key: string(b.key)}, 0, persist.StateSettled)
		},
		"from Reconcile": func(b *bounded) {
			held := newBounded(b.T, b.j, b.bound, string(b.key), func(cfg *oncehttp.Config) {
				cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
					return oncehttp.Resolution{Effect: persist.EffectHappened, Answer: over(b)}, nil
				}
			})
			held.answer.Store(&said{status: 200, body: 10, html: true})
			_ = held.do(held.request(10), held.key)
			held.stands(persist.ID{Key: string(b.key)}, 1, persist.StateHeld)
			for range held.client.Resume(b.Context()) {
				continue
			}
			held.stands(persist.ID{Key: string(b.key)}, 1, persist.StateSettled)
		},
	}
}

// tooLargeAnswers returns the tests of answers of the API that are too large for the journal, where that is not simply the answer of a Do. Such an answer is
// recorded without its body. The method is checks an error, and stands the number of all sends and the state of a record.
func tooLargeAnswers() map[string]func(b *bounded) {
	return map[string]func(b *bounded){
		"a page that proves nothing": func(b *bounded) {
			b.answer.Store(&said{status: 200, body: 2 * b.bound, header: 2 * b.bound, html: true})
			b.is("Do", b.do(b.request(10), b.key), oncehttp.ErrOutcomeUnknown)
			b.stands(persist.ID{Key: string(b.key)}, 1, persist.StateHeld)
		},
		"an error, and then too large": func(b *bounded) {
			b.answer.Store(&said{status: 503, body: 2 * b.bound, header: 2 * b.bound})
			b.is("Do", b.do(b.request(10), b.key), oncehttp.ErrOutcomeUnknown)
			b.stands(persist.ID{Key: string(b.key)}, 1, persist.StatePending)
			b.answer.Store(&said{status: 201, body: 2 * b.bound})
			if err := b.do(b.request(10), b.key); err != nil {
				b.Error(err)
			}
			b.stands(persist.ID{Key: string(b.key)}, 2, persist.StateConfirmed)
		},
		"to what was enqueued": func(b *bounded) {
			b.answer.Store(&said{status: 202, body: 2 * b.bound, header: b.bound + 1})
			if err := b.client.Enqueue(b.request(b.bound), b.key); err != nil {
				b.Fatal(err)
			}
			for _, err := range b.client.Resume(b.Context()) {
				if err != nil {
					b.Errorf("Resume: %.300v", err)
				}
			}
			if err := b.client.Enqueue(b.request(b.bound), b.key); err != nil {
				b.Errorf("Enqueue once more: %.300v", err)
			}
			b.stands(persist.ID{Key: string(b.key)}, 1, persist.StateConfirmed)
		},
		"at the bound, with the request": func(b *bounded) {
			b.answer.Store(&said{status: 201, body: b.bound - 2})
			if err := b.do(b.request(b.bound), b.key); err != nil {
				b.Error(err)
			}
			rec := b.stands(persist.ID{Key: string(b.key)}, 1, persist.StateConfirmed)
			if rec.Answer == nil || rec.Answer.BodyDropped {
				b.Error("an answer at the bound is dropped")
			}
		},
	}
}

// TooLarge checks requests and answers near bound, the largest size that a journal's server takes. No error may say something untrue of a request,
// and no operation may stay unfinished because of its answer.
func TooLarge(t *testing.T, j persist.Journal, bound int) {
	for part, rows := range map[string]map[string]func(b *bounded){
		"request": tooLargeRequests(), "repeat": tooLargeRepeats(), "answer": tooLargeAnswers(), "resolution": tooLargeResolutions(),
	} {
		for name, row := range rows {
			t.Run(part+"/"+name, func(t *testing.T) {
				b := newBounded(t, j, bound, strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(part+" "+name), nil)
				row(b)
				for rec, err := range j.List(t.Context(), persist.Query{States: []persist.State{persist.StatePending, persist.StateHeld}}) {
					if err == nil { // nothing may be left for later tests: its API ends with this one
						err = b.client.Abandon(t.Context(), oncehttp.Key(rec.Key))
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}
