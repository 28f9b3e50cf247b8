package journalfail_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
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
	if err := journaltest.Call(j.flush); err != nil {
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
	return journaltest.Copied(t, durable{j})
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

// TestNoEffectIsDurable: an error that says "no effect", or that the operation is final, is true for whoever resumes after
// a kill, too.
func TestNoEffectIsDurable(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		before func(t *testing.T, j *lazy) // what stands, and is not durable
		reply  wiretest.Reply
	}{
		"another request's key": {func(*testing.T, *lazy) {}, wiretest.Mismatch()},
		"another caller saw it": {func(t *testing.T, j *lazy) {
			j.flush = journaltest.Fails(journaltest.ErrDisk)
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{wiretest.Mismatch()}}, clienttest.On(j))
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) || !errors.Is(err, oncehttp.ErrKeyReused) {
				t.Errorf("a mismatch that is not durable: %v, want ErrOutcomeUnknown", err)
			}
			j.flush = nil
		}, wiretest.Reply{Status: 201}},
		"settled as absent": {func(t *testing.T, j *lazy) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
			j.flush = journaltest.Fails(journaltest.ErrDisk)
			if err := clienttest.AbsentAsSeen(c, t.Context(), "k"); !errors.Is(err, journaltest.ErrDisk) {
				t.Errorf("Settle: %v", err)
			}
			j.flush = nil
		}, wiretest.Reply{Status: 201}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := newLazy()
				r.before(t, j)
				w := &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}
				c, _ := clienttest.New(t, w, clienttest.On(j))
				j.flush = journaltest.Fails(journaltest.ErrDisk)
				_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) {
					t.Errorf("while no flush succeeds: %v, want ErrOutcomeUnknown and the journal's error", err)
				}
				j.flush = nil
				_, err = c.DoKey(clienttest.Post(t, "{}"), "k")
				if clienttest.ExactlyOne(t, err); errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("%v, want another verdict", err)
				}
				sends := w.Count()
				next, _ := clienttest.New(t, w, clienttest.On(j.killed(t)))
				if got := clienttest.Resume(t, next); len(got) != 0 || w.Count() != sends {
					t.Errorf("the next process resumed %v, %d more sends", got, w.Count()-sends)
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
	for name, second := range map[string]wiretest.Reply{
		"lost": {Err: wiretest.ErrLost}, "a page, 403": {Status: 403, Body: wiretest.Maintenance}, "empty, 404": {Status: 404, Empty: true}, "401": {Status: 401}, "500": {Status: 500},
		"429, a long wait": {Status: 429, Header: "Retry-After: 86400"}, "409": {Status: 409, Header: problem}, "another answer": {Status: 404, Header: problem},
		"a redirect": {Status: 302, Header: "Location: https://other.example/"}, "mismatch": wiretest.Mismatch(), "201": {Status: 201},
	} {
		for _, first := range []int{402, 201} {
			t.Run(fmt.Sprint(name, " after ", first), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := newLazy()
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: first, Header: problem, Body: strings.Repeat("x", 500)}, second}}
					c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, clienttest.StoresErrors, func(cfg *oncehttp.Config) { cfg.MaxResponseBytes = 400 }))
					resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if first == 201 && second.Status == 201 {
						return
					}
					j.flush = journaltest.Fails(journaltest.ErrDisk)
					_, err = c.DoKey(clienttest.Post(t, "{}"), "k")
					if clienttest.ExactlyOne(t, err); first == 402 && (!errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk)) || first == 201 && !errors.Is(err, oncehttp.ErrFinal) {
						t.Errorf("while no flush succeeds: %v", err)
					}
					j.flush = nil
					_, err = c.DoKey(clienttest.Post(t, "{}"), "k")
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrFinal) || !errors.Is(err, oncehttp.ErrAnswerGone) {
						t.Errorf("%v, want ErrFinal and ErrAnswerGone", err)
					}
					next, _ := clienttest.New(t, w, clienttest.On(j.killed(t)))
					if got := clienttest.Resume(t, next); first == 402 && len(got) != 0 {
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
		{400, "", true}, {402, "Content-Type: application/problem+json", true}, {201, "", false}, {418, "Idempotent-Replayed: true", false},
	} {
		t.Run(fmt.Sprint(r.status, r.header), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := newLazy()
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: r.status, Header: r.header}, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j))
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if err != nil || resp.StatusCode != r.status {
					t.Fatalf("%v", err)
				}
				j.mu.Lock()
				lost := len(j.before)
				j.mu.Unlock()
				if (lost == 0) != r.flush {
					t.Errorf("%d finishes would be lost; flushed: want %v", lost, r.flush)
				}
				next, _ := clienttest.New(t, w, clienttest.On(j.killed(t)))
				if resp, err = next.DoKey(clienttest.Post(t, "{}"), "k"); r.flush && (err != nil || resp.StatusCode != r.status || w.Count() != 1) {
					t.Errorf("the next process: %v after %d sends, want the same %d", err, w.Count(), r.status)
				}
			})
		})
	}
}

// TestFinal4xxThatIsNotDurable is no answer: asked again the server might act. Whoever
// comes next asks it again, and sees the recorded one only once that is durable.
func TestFinal4xxThatIsNotDurable(t *testing.T) {
	t.Parallel()
	for name, break_ := range map[string]func(j *lazy, f *journaltest.Faulty){
		"not flushed":  func(j *lazy, _ *journaltest.Faulty) { j.flush = journaltest.Fails(journaltest.ErrDisk) },
		"not recorded": func(_ *lazy, f *journaltest.Faulty) { f.OnFinish = journaltest.Fails(journaltest.ErrDisk) },
	} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(name, plain), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := newLazy()
					f := &journaltest.Faulty{Journal: j}
					break_(j, f)
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 418}}}
					c, _ := clienttest.New(t, w, clienttest.On(f))
					req := clienttest.Post(t, "{}")
					req.Header.Set("Idempotency-Key", "k")
					do := c.Do
					if plain {
						do = c.Transport().RoundTrip
					}
					_, err := do(req)
					var e *oncehttp.Error
					if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, journaltest.ErrDisk) || e.Answer == nil || e.Answer.Status != http.StatusTeapot || e.Outcome != oncehttp.OutcomeUnknown {
						t.Errorf("%v, want ErrOutcomeUnknown with the answer", err)
					}
					j.flush, f.OnFinish = nil, nil
					resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					if name == "not recorded" { // asked again, while it is in doubt
						if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
							t.Errorf("%v, want it still unknown", err)
						}
					} else if err != nil || resp.StatusCode != http.StatusTeapot || len(j.before) != 0 || w.Count() != 1 {
						t.Errorf("%v, %d finishes would be lost", err, len(j.before))
					}
				})
			})
		}
	}
}
