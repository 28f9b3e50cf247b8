package guests_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// Cells for rules that a call out of a function of the user does not show by itself. In each place the function does one thing that a rule
// is about; judge looks at what became of it.

// rule is what the function does in a place, once.
type rule struct {
	*cell
	person *oncehttp.Client // another client on the journal
	extra  sync.WaitGroup   // of what the function began

	prepare   func() // before there is a client that can visit; nil: nothing
	seen      persist.Record
	wasTraced func() bool
	gifts     []gift
}

// ruleCells runs one rule in each of the places, on memory and bolt. make fills in a cell before its client is made: what it does in the
// place is the cell's ask. judge looks at the result once the operation and the act are over.
func ruleCells(t *testing.T, at map[string]place, variants []string, fill func(r *rule, variant string), judge func(r *rule, variant string, e ending)) {
	t.Helper()
	for p, name := range slices.Sorted(maps.Keys(at)) {
		for v, variant := range variants {
			kind := []string{"memory", "bolt"}[(p+v)%2]
			if strings.HasPrefix(name, "persist.Claimer.") || strings.HasPrefix(name, "persist.SendClaimer.") {
				kind = "memory"
			}
			t.Run(fmt.Sprintf("%s/%s/%s", name, variant, kind), func(t *testing.T) {
				t.Parallel()
				r := &rule{cell: &cell{name: name, place: at[name], journal: kind, end: "returns", key: "payment"}}
				r.way = way{background: true}
				fill(r, variant)
				tune := r.tune
				r.tune = func(cfg *oncehttp.Config) {
					if r.prepare != nil {
						r.prepare()
					}
					tune(cfg)
				}
				r.bubble(t, func() {
					defer func() { r.person = nil }()
					judge(r, variant, r.over(variant))
				})
			})
		}
	}
}

// over runs the operation to its end, and waits for the act.
func (r *rule) over(variant string) ending {
	own := make(chan ending, 1)
	go func() {
		e := ending{returned: true}
		e.err = r.place.start(r.cell)
		own <- e
	}()
	var e ending
	select {
	case e = <-own:
	case <-time.After(time.Minute):
		panic("the operation hangs: " + r.name + ", " + variant)
	}
	if r.visited.Swap(true) { // none comes later
		<-r.done
	}
	r.extra.Wait()
	return e
}

// asPerson makes the other client, and enqueues the payment by it.
func (r *rule) asPerson() {
	client, err := oncehttp.New(oncehttp.Config{
		Journal: r.inner, Transport: r.server, Retry: policy(), Profile: r.profile(), Token: r.token(),
	})
	if err == nil {
		err = client.Enqueue(payment(r.ctx), "payment")
	}
	if err != nil {
		r.Fatal(err)
	}
	r.person = client
}

// record is the payment's record; ok is false if there is none.
func (r *rule) record() (rec persist.Record, ok bool) {
	rec, err := r.inner.Get(context.Background(), persist.ID{Key: "payment"})
	return rec, err == nil
}

// assigned reports whether the payment is another account's in the end.
func (r *rule) assigned() bool { return r.name == "persist.Journal.Assign" }

// onceOnly lets an operation be attempted once.
func onceOnly(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 }
