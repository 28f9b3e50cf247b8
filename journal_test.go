package oncehttp_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// eachJournal runs f in virtual time on every journal that there is.
func eachJournal(t *testing.T, f func(t *testing.T, j persist.Journal)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T) { f(t, memory.New()) })
	})
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "j.db")
		bubble(t, func(t *testing.T) {
			j, err := bolt.Open(path, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { j.Close() })
			f(t, j)
		})
	})
}

// on puts a client on this journal.
func on(j persist.Journal, changes ...func(*oncehttp.Config)) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Journal = j
		for _, change := range changes {
			change(cfg)
		}
	}
}

// leasing is a journal as another process sees it: the same records and leases,
// and nothing else in common.
type leasing struct {
	persist.Journal
	persist.Claimer
	persist.Attachment
}

// Attach chooses between the journal's and its own.
func (l *leasing) Attach(create func() any) any { return l.Attachment.Attach(create) }

func newLeasing(j *memory.Journal) persist.Journal { return &leasing{Journal: j, Claimer: j} }

// survivors is a journal with what a process that is killed now would leave of
// its unfinished operations.
func survivors(t *testing.T, j persist.Journal) persist.Journal {
	t.Helper()
	return copied(t, j, persist.StatePending, persist.StateHeld)
}

// snapshot is a journal with all that j holds now.
func snapshot(t *testing.T, j persist.Journal) persist.Journal {
	t.Helper()
	return copied(t, j)
}

func copied(t *testing.T, j persist.Journal, states ...persist.State) persist.Journal {
	t.Helper()
	to := memory.New()
	for rec, err := range j.List(context.Background(), persist.Query{AllAccounts: true, States: states}) {
		if err != nil {
			t.Fatal(err)
		}
		begun := rec
		if rec.State.Final() {
			begun.State, begun.Effect, begun.Finished, begun.Answer, begun.Unreported, begun.KeyTold = persist.StatePending, "", time.Time{}, nil, false, false
		}
		begun, _, err = to.Begin(context.Background(), begun)
		if rec.State.Final() && err == nil {
			rec.Seq, rec.Revision = begun.Seq, begun.Revision
			err = to.Finish(context.Background(), rec)
		}
		if err != nil {
			t.Error(err)
		}
	}
	return to
}

// faulty is a journal whose calls can be made to fail, or to wait: a hook runs
// before its call, which is not made if the hook gives an error.
type faulty struct {
	persist.Journal
	begin, update, finish, forget, get, list, sweep func() error
	// begun runs after a Begin that was made; its error takes the place of the
	// result.
	begun func() error
}

func (j *faulty) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if err := run(j.begin); err != nil {
		return persist.Record{}, false, err
	}
	standing, created, err := j.Journal.Begin(ctx, rec)
	if err := run(j.begun); err != nil {
		return persist.Record{}, false, err
	}
	return standing, created, err
}

func (j *faulty) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := run(j.update); err != nil {
		return persist.Record{}, err
	}
	return j.Journal.Update(ctx, rec)
}

func (j *faulty) Finish(ctx context.Context, rec persist.Record) error {
	if err := run(j.finish); err != nil {
		return err
	}
	return j.Journal.Finish(ctx, rec)
}

func (j *faulty) Forget(ctx context.Context, rec persist.Record) error {
	if err := run(j.forget); err != nil {
		return err
	}
	return j.Journal.Forget(ctx, rec)
}

func (j *faulty) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if err := run(j.get); err != nil {
		return persist.Record{}, err
	}
	return j.Journal.Get(ctx, id)
}

func (j *faulty) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if err := run(j.list); err != nil {
		return func(yield func(persist.Record, error) bool) { yield(persist.Record{}, err) }
	}
	return j.Journal.List(ctx, q)
}

func (j *faulty) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	if err := run(j.sweep); err != nil {
		return 0, err
	}
	return j.Journal.Sweep(ctx, l)
}

func run(hook func() error) error {
	if hook == nil {
		return nil
	}
	return hook()
}

// once gives a hook that runs f the first time only. Nobody waits for that.
func once(f func() error) func() error {
	var ran atomic.Bool
	return func() error {
		if ran.Swap(true) {
			return nil
		}
		return f()
	}
}

// wallClock is a clock that can be set, or that a suspend moves on.
type wallClock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *wallClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *wallClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// resumed is what a Resume yielded, by key.
type resumed struct {
	result oncehttp.Result
	err    error
}

// resume makes one whole pass.
func resume(t *testing.T, c *oncehttp.Client) map[oncehttp.Key]resumed {
	t.Helper()
	all := map[oncehttp.Key]resumed{}
	for r, err := range c.Resume(t.Context()) {
		if _, twice := all[r.Key]; twice {
			t.Errorf("%q was yielded twice", r.Key)
		}
		all[r.Key] = resumed{r, err}
	}
	return all
}

// logged is a logger that keeps its lines.
type logged struct{ b bytes.Buffer }

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&l.b, nil)) }
func (l *logged) lines() int           { return strings.Count(l.b.String(), "\n") }
func (l *logged) has(s string) bool    { return strings.Contains(l.b.String(), s) }
func (l *logged) String() string       { return l.b.String() }

// wrapped is a journal inside another, as one that measures or traces.
type wrapped struct{ persist.Journal }

// Unwrap gives the journal inside.
func (w wrapped) Unwrap() persist.Journal { return w.Journal }

// TestClientsOfOneJournalShare their calls in flight, also where one of them sees the
// journal through a wrapper: two clients never send one operation side by side.
func TestClientsOfOneJournalShare(t *testing.T) {
	t.Parallel()
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 201, delay: time.Second}}}
		var wg sync.WaitGroup
		for _, j := range []persist.Journal{j, wrapped{j}, struct{ persist.Journal }{j}, wrapped{wrapped{j}}, j} {
			c, _ := newClient(t, w, on(j))
			wg.Go(func() {
				if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := c.Do(post(t, "{}").WithContext(oncehttp.ContextWithKey(t.Context(), "k2"))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if w.count() != 2 {
			t.Errorf("%d sends, want one for each key", w.count())
		}
	})
}
