package persisttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// check is one run of one case. Cases report failures by errorf and fatalf; they may call errorf from several goroutines.
type check struct {
	open   func() (persist.Journal, error)                                              // opens the store
	late   func(j persist.Journal, rec persist.Record) (commit func() error, err error) // see Harness.Late
	tx     func(j persist.Journal) (tx any, commit, rollback func() error, err error)   // see Harness.Tx
	spread bool                                                                         // see Harness.Spread
	wait   time.Duration                                                                // limit for the wait for one event

	mu      sync.Mutex
	errs    []error         // at most 10
	current persist.Journal // the one opened last, closed by verdict; the case's own goroutine sets it
}

// stop is the panic value of fatalf. It ends a case.
type stop struct{}

// errorf reports a failure and goes on. It keeps the first ten of a case.
func (k *check) errorf(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.errs) < 10 {
		k.errs = append(k.errs, fmt.Errorf(format, args...))
	}
}

// fatalf reports a failure and ends the case. Only the case's own goroutine may call it.
func (k *check) fatalf(format string, args ...any) {
	k.errorf(format, args...)
	panic(stop{})
}

// verdict closes the current journal (the one opened last) and returns all errors of the case, nil if there are none. The error of Close does not count, since
// a case may have closed it; a panic does. p is the panic value of the case: nil, or stop if fatalf has ended it; any other value is an error, too.
func (k *check) verdict(p any) (err error) {
	if _, stopped := p.(stop); p != nil && !stopped {
		k.errorf("panic: %v", p)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if k.current != nil {
		_ = k.current.Close()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.Join(k.errs...)
}

// journal opens the store; verdict closes it. A failure ends the case.
func (k *check) journal() persist.Journal {
	j, err := k.open()
	if err != nil {
		k.fatalf("Open: %v", err)
	}
	k.current = j
	return j
}

// reopen closes the journal and opens the store again. j is not to be used afterwards.
func (k *check) reopen(j persist.Journal) persist.Journal {
	if err := j.Close(); err != nil {
		k.fatalf("Close: %v", err)
	}
	return k.journal()
}

// want reports err as a failure unless it is target. A nil target means no error. format and args name the call in the failure.
func (k *check) want(err, target error, format string, args ...any) {
	if !errors.Is(err, target) {
		k.errorf("%s: got error %v, want %v", fmt.Sprintf(format, args...), err, target)
	}
}

// begin begins a record, and returns it as the journal did. The key must be new: otherwise the case ends.
func (k *check) begin(j persist.Journal, r persist.Record) persist.Record {
	got, created, err := j.Begin(context.Background(), r)
	if err != nil || !created {
		k.fatalf("Begin of %q: created %t, error %v; want a new record", r.ID, created, err)
	}
	return got
}

// update updates a record, and returns it as the journal did. A failure ends the case.
func (k *check) update(j persist.Journal, r persist.Record) persist.Record {
	got, err := j.Update(context.Background(), r)
	if err != nil {
		k.fatalf("Update of %q at revision %d: %v", r.ID, r.Revision, err)
	}
	return got
}

// finish finishes a record as finished does, and returns the expected record. A failure ends the case.
func (k *check) finish(j persist.Journal, r persist.Record) persist.Record {
	r = finished(r)
	if err := j.Finish(context.Background(), r); err != nil {
		k.fatalf("Finish of %q at revision %d: %v", r.ID, r.Revision, err)
	}
	r.Revision++
	return r
}

// holds requires Get to return the record as in want. after names, for the error, the call before it.
func (k *check) holds(j persist.Journal, want persist.Record, after string) {
	got, err := j.Get(context.Background(), want.ID)
	if err != nil {
		k.errorf("Get of %q after %s: %v", want.ID, after, err)
		return
	}
	if d := diff(got, want); d != "" {
		k.errorf("Get of %q after %s: %s", want.ID, after, d)
	}
}

// gone requires Get to return ErrNotFound. after names, for the error, the call before it.
func (k *check) gone(j persist.Journal, id persist.ID, after string) {
	got, err := j.Get(context.Background(), id)
	if !errors.Is(err, persist.ErrNotFound) {
		k.errorf("Get of %q after %s: state %v, error %v; want ErrNotFound", id, after, got.State, err)
	}
}

// list returns the records selected by q. A failure, and a list without end, ends the case.
func (k *check) list(j persist.Journal, q persist.Query) []persist.Record {
	var all []persist.Record
	for r, err := range j.List(context.Background(), q) {
		if err != nil {
			k.fatalf("List: %v", err)
		}
		all = append(all, r)
		if len(all) > 100_000 {
			k.fatalf("List does not end")
		}
	}
	return all
}

// lists requires List to yield exactly these records, in this order. It names the query in the error by its last argument.
func (k *check) lists(j persist.Journal, q persist.Query, want []persist.Record, what string) {
	got := k.list(j, q)
	if !slices.Equal(keys(got), keys(want)) {
		k.errorf("List of %s: got keys %q, want %q", what, keys(got), keys(want))
		return
	}
	for i := range got {
		if d := diff(got[i], want[i]); d != "" {
			k.errorf("List of %s: %q: %s", what, got[i].ID, d)
		}
	}
}

// keys returns account and key of each record, separated by a space.
func keys(list []persist.Record) []string {
	var s []string
	for _, r := range list {
		s = append(s, r.Account+" "+r.Key)
	}
	return s
}

// diff returns the names and values of the different fields of two records; ""
// if they are equal. Times are compared as instants. An empty slice or map equals
// a nil one.
func diff(got, want persist.Record) string {
	var b bytes.Buffer
	diffStruct(&b, "", reflect.ValueOf(got), reflect.ValueOf(want))
	return b.String()
}

// diffStruct writes the fields in which two structs of one type differ to b. prefix comes before each name. An answer and an evidence, kept by pointer, are
// compared by their own fields.
func diffStruct(b *bytes.Buffer, prefix string, got, want reflect.Value) {
	for i := range got.NumField() {
		name, g, w := prefix+got.Type().Field(i).Name, got.Field(i), want.Field(i)
		switch x := g.Interface().(type) {
		case *persist.Answer:
			y := w.Interface().(*persist.Answer)
			if x != nil && y != nil {
				diffStruct(b, name+".", reflect.ValueOf(*x), reflect.ValueOf(*y))
			} else if x != y {
				fmt.Fprintf(b, "%s: got one %t, want one %t; ", name, x != nil, y != nil)
			}
		case *persist.Evidence:
			y := w.Interface().(*persist.Evidence)
			if x != nil && y != nil {
				diffStruct(b, name+".", reflect.ValueOf(*x), reflect.ValueOf(*y))
			} else if x != y {
				fmt.Fprintf(b, "%s: got one %t, want one %t; ", name, x != nil, y != nil)
			}
		default:
			if !same(x, w.Interface()) {
				fmt.Fprintf(b, "%s: got %s, want %s; ", name, short(x), short(w.Interface()))
			}
		}
	}
}

// same compares two values of one type as a journal may change them: times by their moment, nil lists as empty ones, and everything else by ==.
func same(got, want any) bool {
	switch x := got.(type) {
	case time.Time:
		return x.Equal(want.(time.Time))
	case []byte:
		return bytes.Equal(x, want.([]byte))
	case []string:
		return slices.Equal(x, want.([]string))
	case []persist.Credential:
		return slices.Equal(x, want.([]persist.Credential))
	case []persist.Scope:
		return slices.Equal(x, want.([]persist.Scope))
	case []persist.KeptField:
		return slices.Equal(x, want.([]persist.KeptField))
	case []persist.Attempt:
		return slices.EqualFunc(x, want.([]persist.Attempt), sameAttempt)
	case []persist.Act:
		return slices.EqualFunc(x, want.([]persist.Act), sameAct)
	case http.Header:
		return maps.EqualFunc(x, want.(http.Header), slices.Equal)
	}
	return got == want
}

// sameAttempt compares the times as instants.
func sameAttempt(a, b persist.Attempt) bool {
	at := a.At.Equal(b.At)
	a.At, b.At = time.Time{}, time.Time{}
	return at && a == b
}

// sameAct compares the times as instants.
func sameAct(a, b persist.Act) bool {
	return a.At.Equal(b.At) && a.Did == b.Did && a.Note == b.Note
}

// short returns v as text of about 80 bytes at most.
func short(v any) string {
	s := fmt.Sprintf("%+v", v)
	if len(s) > 80 {
		s = fmt.Sprintf("%.80s… (%d bytes)", s, len(s))
	}
	return s
}
