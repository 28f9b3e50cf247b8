package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// lazy is a journal whose Finish is durable only once Flush returned nil: what a
// kill before that leaves is the record as it stood.
type lazy struct {
	persist.Journal
	mu     sync.Mutex
	before map[persist.ID]persist.Record // as each stood before a Finish that is not durable
	flush  func() error
}

func newLazy() *lazy {
	return &lazy{Journal: memory.New(), before: map[persist.ID]persist.Record{}}
}

func (j *lazy) Finish(ctx context.Context, rec persist.Record) error {
	stood, err := j.Get(ctx, rec.ID)
	if err == nil {
		err = j.Journal.Finish(ctx, rec)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.before[rec.ID] = stood
	}
	return err
}

func (j *lazy) Flush(context.Context) error {
	if err := run(j.flush); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.before)
	return nil
}

// killed is a journal with what a process that is killed now leaves.
func (j *lazy) killed(t *testing.T) persist.Journal {
	t.Helper()
	return copied(t, durable{j})
}

// durable lists what is durable of a lazy journal.
type durable struct{ *lazy }

func (d durable) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range d.lazy.List(ctx, q) {
			d.mu.Lock()
			if stood, ok := d.before[rec.ID]; ok {
				rec = stood
			}
			d.mu.Unlock()
			if !yield(rec, err) {
				return
			}
		}
	}
}

// mismatch is how Draft07 says that a key belongs to another request.
var mismatch = reply{status: 422, header: "Content-Type: application/problem+json"}

// TestNoEffectIsDurable: an error that says "no effect", or that the operation is final, is true for whoever resumes after
// a kill, too.
func TestNoEffectIsDurable(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		before func(t *testing.T, j *lazy) // what stands, and is not durable
		reply  reply
	}{
		"another request's key": {func(*testing.T, *lazy) {}, mismatch},
		"another caller saw it": {func(t *testing.T, j *lazy) {
			j.flush = fails(errDisk)
			c, _ := newClient(t, &wire{replies: []reply{mismatch}}, on(j))
			_, err := c.DoKey(post(t, "{}"), "k")
			if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errDisk) || !errors.Is(err, oncehttp.ErrKeyReused) {
				t.Errorf("a mismatch that is not durable: %v, want ErrOutcomeUnknown", err)
			}
			j.flush = nil
		}, reply{status: 201}},
		"settled as absent": {func(t *testing.T, j *lazy) {
			c, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, on(j, oneAttempt))
			_, _ = c.DoKey(post(t, "{}"), "k")
			j.flush = fails(errDisk)
			if err := absentAsSeen(c, t.Context(), "k"); !errors.Is(err, errDisk) {
				t.Errorf("Settle: %v", err)
			}
			j.flush = nil
		}, reply{status: 201}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				j := newLazy()
				r.before(t, j)
				w := &wire{replies: []reply{r.reply}}
				c, _ := newClient(t, w, on(j))
				j.flush = fails(errDisk)
				_, err := c.DoKey(post(t, "{}"), "k")
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errDisk) {
					t.Errorf("while no flush succeeds: %v, want ErrOutcomeUnknown and the journal's error", err)
				}
				j.flush = nil
				_, err = c.DoKey(post(t, "{}"), "k")
				if exactlyOne(t, err); errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("%v, want another verdict", err)
				}
				sends := w.count()
				next, _ := newClient(t, w, on(j.killed(t)))
				if got := resume(t, next); len(got) != 0 || w.count() != sends {
					t.Errorf("the next process resumed %v, %d more sends", got, w.count()-sends)
				}
			})
		})
	}
}

// TestRefusalAskedForAgainIsDurable: a call that asks again for a refusal whose answer was too large to keep, and does not get it, says
// that the operation is final once that is durable, however it fails. A success may be asked for after a crash, too.
func TestRefusalAskedForAgainIsDurable(t *testing.T) {
	t.Parallel()
	const problem = "Content-Type: application/problem+json"
	for name, second := range map[string]reply{
		"lost": {err: errLost}, "a page, 403": {status: 403, body: maintenance}, "empty, 404": {status: 404, empty: true}, "401": {status: 401}, "500": {status: 500},
		"429, a long wait": {status: 429, header: "Retry-After: 86400"}, "409": {status: 409, header: problem}, "another answer": {status: 404, header: problem},
		"a redirect": {status: 302, header: "Location: https://other.example/"}, "mismatch": mismatch, "201": {status: 201},
	} {
		for _, first := range []int{402, 201} {
			t.Run(fmt.Sprint(name, " after ", first), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					j := newLazy()
					w := &wire{replies: []reply{{status: first, header: problem, body: strings.Repeat("x", 500)}, second}}
					c, _ := newClient(t, w, on(j, oneAttempt, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 400 }))
					resp, err := c.DoKey(post(t, "{}"), "k")
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if first == 201 && second.status == 201 {
						return
					}
					j.flush = fails(errDisk)
					_, err = c.DoKey(post(t, "{}"), "k")
					if exactlyOne(t, err); first == 402 && (!errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errDisk)) || first == 201 && !errors.Is(err, oncehttp.ErrFinal) {
						t.Errorf("while no flush succeeds: %v", err)
					}
					j.flush = nil
					_, err = c.DoKey(post(t, "{}"), "k")
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrFinal) || !errors.Is(err, oncehttp.ErrAnswerGone) {
						t.Errorf("%v, want ErrFinal and ErrAnswerGone", err)
					}
					next, _ := newClient(t, w, on(j.killed(t)))
					if got := resume(t, next); first == 402 && len(got) != 0 {
						t.Errorf("the next process resumed %v", got)
					}
				})
			})
		}
	}
}

// TestFinal4xxIsDurable: a final 4xx that the server does not store would become
// another answer if the operation were asked again after a kill.
func TestFinal4xxIsDurable(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		status int
		header string
		flush  bool
	}{
		{405, "", true}, {413, "", true}, {418, "", true}, {422, "", true}, {451, "", true},
		{400, "", true}, {402, "Content-Type: application/problem+json", false}, {201, "", false}, {418, "Idempotent-Replayed: true", false},
	} {
		t.Run(fmt.Sprint(r.status, r.header), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				j := newLazy()
				w := &wire{replies: []reply{{status: r.status, header: r.header}, {status: 201}}}
				c, _ := newClient(t, w, on(j))
				resp, err := c.DoKey(post(t, "{}"), "k")
				if err != nil || resp.StatusCode != r.status {
					t.Fatalf("%v", err)
				}
				j.mu.Lock()
				lost := len(j.before)
				j.mu.Unlock()
				if (lost == 0) != r.flush {
					t.Errorf("%d finishes would be lost; flushed: want %v", lost, r.flush)
				}
				next, _ := newClient(t, w, on(j.killed(t)))
				if resp, err = next.DoKey(post(t, "{}"), "k"); r.flush && (err != nil || resp.StatusCode != r.status || w.count() != 1) {
					t.Errorf("the next process: %v after %d sends, want the same %d", err, w.count(), r.status)
				}
			})
		})
	}
}

// TestFinal4xxThatIsNotDurable is no answer: asked again the server might act. Whoever
// comes next asks it again, and sees the recorded one only once that is durable.
func TestFinal4xxThatIsNotDurable(t *testing.T) {
	t.Parallel()
	for name, break_ := range map[string]func(j *lazy, f *faulty){
		"not flushed":  func(j *lazy, _ *faulty) { j.flush = fails(errDisk) },
		"not recorded": func(_ *lazy, f *faulty) { f.finish = fails(errDisk) },
	} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(name, plain), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					j := newLazy()
					f := &faulty{Journal: j}
					break_(j, f)
					w := &wire{replies: []reply{{status: 418}}}
					c, _ := newClient(t, w, on(f))
					req := post(t, "{}")
					req.Header.Set("Idempotency-Key", "k")
					do := c.Do
					if plain {
						do = c.Transport().RoundTrip
					}
					_, err := do(req)
					var e *oncehttp.Error
					if exactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, errDisk) || e.Answer == nil || e.Answer.Status != http.StatusTeapot || e.Outcome != oncehttp.OutcomeUnknown {
						t.Errorf("%v, want ErrOutcomeUnknown with the answer", err)
					}
					j.flush, f.finish = nil, nil
					resp, err := c.DoKey(post(t, "{}"), "k")
					if name == "not recorded" { // asked again, while it is in doubt
						if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
							t.Errorf("%v, want it still unknown", err)
						}
					} else if err != nil || resp.StatusCode != http.StatusTeapot || len(j.before) != 0 || w.count() != 1 {
						t.Errorf("%v, %d finishes would be lost", err, len(j.before))
					}
				})
			})
		}
	}
}
