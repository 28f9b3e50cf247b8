package persisttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// stressCases returns the cases with many random calls side by side. why says what harm is done by a journal that fails the case.
func stressCases() []testCase {
	return []testCase{
		{name: "stress/model", run: stressModel,
			why: "what holds for one call must hold for any number of them side by side"},
	}
}

// stressModel lets workers do at random what a client does, each with keys of
// its own, and holds every result against a model that is a map. Listings run beside them. At the end the journal must have what the models have. The seed is
// in the errors, to repeat a run.
func stressModel(k *check) {
	const workers, steps = 8, 90
	seed := uint64(time.Now().UnixNano())
	j := k.journal()
	models := make([]map[string]persist.Record, workers)
	var wg, readers sync.WaitGroup
	over := make(chan struct{})
	readers.Go(func() { stressReader(k, j, over) })
	for w := range workers {
		models[w] = map[string]persist.Record{}
		wg.Go(func() {
			m := modelWorker{check: k, journal: j, random: rand.New(rand.NewPCG(seed, uint64(w))), account: fmt.Sprintf("account %d", w), expected: models[w]}
			for i := 0; i < steps && !m.failed; i++ {
				m.step()
			}
		})
	}
	wg.Wait()
	close(over)
	readers.Wait()
	if len(k.errs) > 0 {
		k.fatalf("with seed %d", seed)
	}
	n := 0
	for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			k.fatalf("List: %v", err)
		}
		n++
		var w int
		_, _ = fmt.Sscanf(r.Account, "account %d", &w)
		if d := diff(r, models[w][r.Key]); d != "" {
			k.errorf("in the end %q: %s (seed %d)", r.ID, d, seed)
		}
	}
	for _, m := range models {
		n -= len(m)
	}
	if n != 0 {
		k.errorf("in the end List gave %d records more than there are (seed %d)", n, seed)
	}
}

// stressReader lists all records again and again while others change them: in order of Seq, and none twice. It ends after eight listings, or when over is
// closed.
func stressReader(k *check, j persist.Journal, over <-chan struct{}) {
	for range 8 {
		last := uint64(0)
		for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
			if err != nil || r.Seq <= last {
				k.errorf("List beside the work: Seq %d after %d, error %v", r.Seq, last, err)
				return
			}
			last = r.Seq
		}
		select {
		case <-over:
			return
		default:
		}
	}
}

// modelWorker is one client of the journal with a model of its records. It has an account and a goroutine of its own. Each of the
// methods for a call takes the key, and the record that the model knows under it: exists is false, and known zero, without one.
type modelWorker struct {
	check    *check
	journal  persist.Journal
	random   *rand.Rand
	account  string
	expected map[string]persist.Record // the expected records, by key
	failed   bool                      // the worker stops
}

// fail reports a failure and stops the worker.
func (w *modelWorker) fail(format string, args ...any) {
	w.failed = true
	w.check.errorf("%s: %s", w.account, fmt.Sprintf(format, args...))
}

// step makes one random call of the journal, and compares its result with the model of the worker's own records. There are 25 keys, so that calls meet existing
// and missing ones.
func (w *modelWorker) step() {
	ctx, key := context.Background(), fmt.Sprintf("key %d", w.random.IntN(25))
	known, exists := w.expected[key]
	switch op := w.random.IntN(7); op {
	case 0, 1:
		w.begin(ctx, key, known, exists)
	case 2:
		w.get(ctx, key, known, exists)
	case 3:
		w.update(ctx, key, known, exists)
	case 4:
		w.finish(ctx, key, known, exists)
	case 5:
		w.forget(ctx, key, known, exists)
	case 6:
		w.report(ctx, key, known, exists)
	}
}

// get calls Get, and compares the result with the model. known is the model's record of the key, if exists is true.
func (w *modelWorker) get(ctx context.Context, key string, known persist.Record, exists bool) {
	got, err := w.journal.Get(ctx, persist.ID{Account: w.account, Key: key})
	if !exists && !errors.Is(err, persist.ErrNotFound) || exists && (err != nil || diff(got, known) != "") {
		w.fail("Get of %q: %v, %s", key, err, diff(got, known))
	}
}

// update calls Update with random changes, and compares the result with the model: an unfinished record is changed, any other call is refused. known is the
// model's record of the key, if exists is true. KeyTold (the caller was told its generated key) is for ended records alone.
func (w *modelWorker) update(ctx context.Context, key string, known persist.Record, exists bool) {
	next := changed(w.orNew(key, known, exists))
	next.KeyTold = false
	next.Attempts = w.random.IntN(100)
	got, err := w.journal.Update(ctx, next)
	next.Revision++
	w.outcome("Update", key, err, exists, exists && !known.State.Final(), next)
	if err == nil && diff(got, next) != "" {
		w.fail("Update of %q: %s", key, diff(got, next))
	}
}

// finish calls Finish or, at random, FinishLate, and compares the result with the model: an unfinished record ends, any other call is refused. known is the
// model's record of the key, if exists is true. A generated key may be unreported (no caller has heard the end) or told.
func (w *modelWorker) finish(ctx context.Context, key string, known persist.Record, exists bool) {
	next := finished(w.orNew(key, known, exists))
	next.Unreported = next.Generated && w.random.IntN(2) == 0
	next.KeyTold = next.Generated && w.random.IntN(2) == 0
	finish := w.journal.Finish
	if late, ok := w.journal.(persist.LateFinisher); ok && w.random.IntN(2) == 0 {
		finish = late.FinishLate
	}
	err := finish(ctx, next)
	next.Revision++
	w.outcome("Finish", key, err, exists, exists && !known.State.Final(), next)
}

// forget calls Forget, and compares the result with the model: an unfinished record goes, any other call is refused. known is the model's record of
// the key, if exists is true.
func (w *modelWorker) forget(ctx context.Context, key string, known persist.Record, exists bool) {
	rec := w.orNew(key, known, exists)
	err := w.journal.Forget(ctx, rec)
	w.outcome("Forget", key, err, exists, exists && !known.State.Final(), rec)
	if err == nil {
		delete(w.expected, key)
	}
}

// orNew returns the known record, or, unless exists, a record never begun, for a call that must be refused.
func (w *modelWorker) orNew(key string, known persist.Record, exists bool) persist.Record {
	if exists {
		return known
	}
	return record(w.account, key)
}

// report marks a record as reported (a caller has heard its end), in any state and even if it does not exist. known is the model's record of the key, if
// exists is true: only an unreported one changes.
func (w *modelWorker) report(ctx context.Context, key string, known persist.Record, exists bool) {
	id := persist.ID{Account: w.account, Key: key}
	if err := w.journal.MarkReported(ctx, id); err != nil {
		w.fail("MarkReported of %q: %v", key, err)
	}
	if !exists || !known.Unreported {
		return
	}
	got, err := w.journal.Get(ctx, id)
	known.Unreported, known.Revision = false, got.Revision
	if err != nil || diff(got, known) != "" {
		w.fail("MarkReported of %q: %v, %s", key, err, diff(got, known))
	}
	w.expected[key] = known
}

// begin calls Begin with a random body, and compares the result with the model: the record is created, or known, the model's record, is returned if exists is
// true.
func (w *modelWorker) begin(ctx context.Context, key string, known persist.Record, exists bool) {
	r := record(w.account, key)
	r.Generated = w.random.IntN(2) == 0
	r.Body = patterned(w.random.IntN(3)*w.random.IntN(20_000), byte(w.random.IntN(256)))
	got, created, err := w.journal.Begin(ctx, r)
	if err != nil || created == exists {
		w.fail("Begin of %q: created %t, error %v; it stood before: %t", key, created, err, exists)
		return
	}
	want := known
	if created {
		want = r
		want.Seq, want.Revision = got.Seq, 1
		w.expected[key] = want
	}
	if d := diff(got, want); d != "" {
		w.fail("Begin of %q: %s", key, d)
	}
}

// outcome checks the error of a change named op. open: the record is unfinished, so the change must succeed, and next becomes the record of the
// model. Otherwise it must fail: with ErrStale if the record exists, else with ErrNotFound.
func (w *modelWorker) outcome(op, key string, err error, exists, open bool, next persist.Record) {
	switch {
	case open && err == nil:
		w.expected[key] = next
	case open:
		w.fail("%s of %q: %v", op, key, err)
	case exists && !errors.Is(err, persist.ErrStale), !exists && !errors.Is(err, persist.ErrNotFound):
		w.fail("%s of %q, which exists: %t: %v", op, key, exists, err)
	}
}
