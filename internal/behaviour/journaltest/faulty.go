package journaltest

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// Faulty is a journal with hooks to make its calls fail or wait: a hook runs before its call. The call is not made if the hook
// returns an error.
type Faulty struct {
	persist.Journal
	OnBegin, OnUpdate, OnFinish, OnForget, OnGet, OnList, OnSweep, OnAmend func() error
	// OnBegun runs after the Begin of the journal; its error takes the place of the result.
	OnBegun func() error
}

// Begin implements [persist.Journal]. OnBegin is called before it, OnBegun after it. An error of either is the result: one of OnBegun, although the record is
// begun, as after a lost answer.
func (j *Faulty) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if err := Call(j.OnBegin); err != nil {
		return persist.Record{}, false, err
	}
	standing, created, err := j.Journal.Begin(ctx, rec)
	if err := Call(j.OnBegun); err != nil {
		return persist.Record{}, false, err
	}
	return standing, created, err
}

// Update implements [persist.Journal]. It calls OnUpdate first. After an error of that hook it does nothing, and returns the error.
func (j *Faulty) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := Call(j.OnUpdate); err != nil {
		return persist.Record{}, err
	}
	return j.Journal.Update(ctx, rec)
}

// Finish implements [persist.Journal]. It calls OnFinish first. After an error of that hook it does nothing, and returns the error.
func (j *Faulty) Finish(ctx context.Context, rec persist.Record) error {
	if err := Call(j.OnFinish); err != nil {
		return err
	}
	return j.Journal.Finish(ctx, rec)
}

// Amend implements [persist.Journal]. It calls OnAmend first. After an error of that hook it does nothing, and returns the error.
func (j *Faulty) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if err := Call(j.OnAmend); err != nil {
		return persist.Record{}, err
	}
	return j.Journal.Amend(ctx, rec)
}

// Forget implements [persist.Journal]. It calls OnForget first. After an error of that hook it does nothing, and returns the error.
func (j *Faulty) Forget(ctx context.Context, rec persist.Record) error {
	if err := Call(j.OnForget); err != nil {
		return err
	}
	return j.Journal.Forget(ctx, rec)
}

// Get implements [persist.Journal]. It calls OnGet first. After an error of that hook it does nothing, and returns the error.
func (j *Faulty) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if err := Call(j.OnGet); err != nil {
		return persist.Record{}, err
	}
	return j.Journal.Get(ctx, id)
}

// List implements [persist.Journal]. It calls OnList first. After an error of that hook it does nothing, and returns the error.
func (j *Faulty) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if err := Call(j.OnList); err != nil {
		return func(yield func(persist.Record, error) bool) { yield(persist.Record{}, err) }
	}
	return j.Journal.List(ctx, q)
}

// Sweep implements [persist.Journal]. It calls OnSweep first. After an error of that hook it does nothing, and returns the error.
func (j *Faulty) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	if err := Call(j.OnSweep); err != nil {
		return 0, err
	}
	return j.Journal.Sweep(ctx, l)
}

// Call calls a hook, and returns its error; nil if there is no hook.
func Call(hook func() error) error {
	if hook == nil {
		return nil
	}
	return hook()
}

// Once returns a hook. It calls f the first time only. The other calls return nil, and do not wait for f.
func Once(f func() error) func() error {
	var ran atomic.Bool
	return func() error {
		if ran.Swap(true) {
			return nil
		}
		return f()
	}
}

// Fails returns a hook with the error err.
func Fails(err error) func() error { return func() error { return err } }

// ErrDisk is the error of a full disk.
var ErrDisk = errors.New("no space left on device")

// ErrOutage is the error of a journal out of reach.
var ErrOutage = errors.New("no answer")

// Broken is a journal with a failing Begin.
type Broken struct{ persist.Journal }

// Begin implements [persist.Journal]. It always fails, and stores nothing.
func (Broken) Begin(context.Context, persist.Record) (persist.Record, bool, error) {
	return persist.Record{}, false, errors.New("disk full")
}

// Shaky is a journal shared with other processes. Its Begin may fail: without a trace, or in doubt. Records in doubt appear when Land is
// called.
type Shaky struct {
	*memory.Journal
	Fails error            // of Begin
	Lost  []persist.Record // begun in doubt
}

// Begin implements [persist.Journal]. If Fails is set, it stores nothing and returns Fails. ErrUncertain means that the record may appear later: then it keeps the
// record for Land.
func (j *Shaky) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if errors.Is(j.Fails, persist.ErrUncertain) {
		j.Lost = append(j.Lost, rec)
	}
	if j.Fails != nil {
		return persist.Record{}, false, j.Fails
	}
	return j.Journal.Begin(ctx, rec)
}

// Land begins the lost records, as a write that arrives late. A record that stands already stays as it is.
func (j *Shaky) Land(t *testing.T) {
	t.Helper()
	for _, rec := range j.Lost {
		if _, _, err := j.Journal.Begin(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
}

// Recording is a journal with a slow FinishLate.
type Recording struct {
	*memory.Journal
	Takes time.Duration
	Fails error        // of FinishLate
	Ends  atomic.Int32 // FinishLates begun
	OnGet func() error // returns the error of Get
}

// Get implements [persist.Journal]. It calls OnGet first. After an error of that hook it returns the error.
func (r *Recording) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if err := Call(r.OnGet); err != nil {
		return persist.Record{}, err
	}
	return r.Journal.Get(ctx, id)
}

// FinishLate implements [persist.LateFinisher]. It counts the call, takes the time Takes, and returns Fails, without a write, if that is set.
func (r *Recording) FinishLate(ctx context.Context, rec persist.Record) error {
	r.Ends.Add(1)
	if time.Sleep(r.Takes); r.Fails != nil {
		return r.Fails
	}
	return r.Journal.Finish(ctx, rec)
}

// FinishesLate implements [persist.LateFinisher]. It returns r and not the embedded journal, so its own FinishLate is called.
func (r *Recording) FinishesLate() persist.Journal { return r }
