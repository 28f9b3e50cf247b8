package inflight

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// begin starts a call of the key in the context.
func begin(t *testing.T, table *Table[string], ctx context.Context, key string) *Caller[string] {
	t.Helper()
	caller, arrival := table.Enter(entry(ctx, key), anything)
	if arrival != Started {
		t.Fatalf("%s: arrival %d", key, arrival)
	}
	return caller
}

// join enters the call of the key in the context.
func join(t *testing.T, table *Table[string], ctx context.Context, key string, want Arrival) *Caller[string] {
	t.Helper()
	caller, arrival := table.Enter(entry(ctx, key), anything)
	if arrival != want || (caller == nil) != (want == Circle || want == Refused) {
		t.Errorf("%s: arrival %d, want %d", key, arrival, want)
	}
	return caller
}

// TestCircles: a call is not joined by whoever it waits for: itself, those that it was made in, those who have joined one of
// them, and those that these were made in; also where they are in several tables. Anybody else joins.
func TestCircles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one, two := NewTable(func(string) {}), NewTable(func(string) {})
		a := begin(t, one, t.Context(), "a")
		inA := a.Call().Context()
		join(t, one, inA, "a", Circle)
		join(t, one, a.Call().Work().Context(context.Background()), "a", Circle)
		b := begin(t, two, inA, "b") // by a
		inB := b.Call().Values()
		join(t, one, inB, "a", Circle)
		join(t, two, inB, "b", Circle)
		join(t, two, inA, "b", Joined)
		outer := begin(t, two, t.Context(), "outer")
		c := begin(t, one, outer.Call().Context(), "c") // by outer
		waits := join(t, two, c.Call().Context(), "b", Joined)
		for _, key := range []string{"outer", "b"} { // both wait for b
			join(t, two, inB, key, Circle)
		}
		join(t, one, inB, "c", Circle)
		waits.Done()
		join(t, one, inB, "c", Joined)
		join(t, one, t.Context(), "a", Joined)
	})
}

// TestWorkEnds: a context that is kept after its call carries nothing; one of an Authorize the call. It never has the value that
// names one request; other values stay.
func TestWorkEnds(t *testing.T) {
	t.Parallel()
	type own struct{}
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(func(string) {})
		ctx := context.WithValue(context.WithValue(t.Context(), own{}, "own"), RequestKey{}, "a")
		a := begin(t, table, ctx, "a")
		kept := a.Call().Context()
		authorizing := a.Call().Work().Authorizing("https://api.example")
		inside := authorizing.Context(kept)
		if !From(inside).Authorizes("https://api.example") || NewStream(inside, table).Authorizes("https://api.example") ||
			From(inside).Authorizes("https://other.example") || From(kept).Authorizes("https://api.example") {
			t.Error("an Authorize that is under way is not seen, or another one, or another client's, is")
		}
		authorizing.End()
		if From(inside) != a.Call().Work() || From(inside).Authorizes("https://api.example") {
			t.Error("an Authorize that has ended is seen, or its call is not")
		}
		if inside.Value(own{}) != "own" || inside.Value(RequestKey{}) != nil {
			t.Errorf("values %v, %v", inside.Value(own{}), inside.Value(RequestKey{}))
		}
		join(t, table, inside, "a", Circle)
		go a.Call().Run(func() string { return "" }, crashed)
		_, _ = a.Wait()
		if From(inside) != nil || From(kept) != nil {
			t.Error("a context carries a call that is over")
		}
		begin(t, table, kept, "a")
	})
}

// TestPrevious: a call that would wait for the end of the one that it was made in is not begun. One that waits for a call that
// stays in a function of the user gives up; the call before keeps its place, and the next one waits for it.
func TestPrevious(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(func(string) {})
		ctx, leave := context.WithCancel(t.Context())
		a := begin(t, table, ctx, "k")
		back := make(chan struct{})
		go a.Call().Run(func() string {
			a.Call().Work().Visit()
			defer a.Call().Work().Return()
			<-back
			return "a"
		}, crashed)
		go a.Wait()
		leave()
		synctest.Wait()
		join(t, table, a.Call().Values(), "k", Circle)
		e := entry(t.Context(), "k")
		e.Patience = time.Second
		began := time.Now()
		impatient, arrival := table.Enter(e, anything)
		if arrival != Started {
			t.Fatal(arrival)
		}
		go impatient.Call().Run(func() string { return "ran beside the other" }, crashed)
		if got, err := impatient.Wait(); got != ErrGuest.Error() || err != nil || time.Since(began) != time.Second {
			t.Errorf("%q, %v after %v", got, err, time.Since(began))
		}
		next := begin(t, table, t.Context(), "k")
		ran := false
		go next.Call().Run(func() string { ran = true; return "next" }, crashed)
		if synctest.Wait(); ran {
			t.Error("it ran beside the call before")
		}
		close(back)
		if got, err := next.Wait(); got != "next" || err != nil || table.Len() != 0 {
			t.Errorf("%q, %v, %d calls", got, err, table.Len())
		}
	})
}

// TestNextOfOneThatGaveUp: who waits for a call that gives up waiting for the one before waits for that, too.
func TestNextOfOneThatGaveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(func(string) {})
		running := false
		enter := func(patience time.Duration, last bool) (back chan struct{}, result chan string) {
			e := entry(t.Context(), "k")
			e.Patience = patience
			caller, arrival := table.Enter(e, anything)
			if arrival != Started {
				t.Fatal(arrival)
			}
			back, result = make(chan struct{}), make(chan string, 1)
			go caller.Call().Run(func() string {
				if running {
					t.Error("two runs of one operation")
				}
				running = true
				defer func() { running = false }()
				caller.Call().Work().Visit()
				defer caller.Call().Work().Return()
				<-back
				return "ran"
			}, crashed)
			go func() { got, _ := caller.Wait(); result <- got }()
			if synctest.Wait(); !last {
				caller.Call().table.mu.Lock()
				caller.Call().closed = true // as when it is given up
				caller.Call().table.mu.Unlock()
			}
			return back, result
		}
		first, _ := enter(0, false)
		_, second := enter(time.Second, false)
		third, result := enter(time.Hour, true)
		if got := <-second; got != ErrGuest.Error() {
			t.Errorf("the second one: %q", got)
		}
		synctest.Wait()
		close(first)
		close(third)
		if got := <-result; got != "ran" || table.Len() != 0 {
			t.Errorf("the third one: %q; %d calls", got, table.Len())
		}
	})
}

// TestPatience: who has joined leaves a call that stays in one function for longer than its patience; not one that goes from one
// to the next, nor one that is in none. So does who waits for the end of an answered call.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(func(string) {})
		e := entry(t.Context(), "k")
		e.Patience = time.Second
		first, _ := table.Enter(e, anything)
		work := first.Call().Work()
		go first.Call().Run(func() string {
			for range 10 { // it goes on
				work.Visit()
				time.Sleep(900 * time.Millisecond)
				work.Return()
			}
			time.Sleep(time.Minute)
			first.Call().Answer("answer")
			work.Visit()
			time.Sleep(time.Hour)
			return ""
		}, crashed)
		joined, _ := table.Enter(e, anything)
		if got, err := joined.Wait(); got != "answer" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		all := func(persist.ID) bool { return true }
		inside := first.Call().Context()
		if err := table.Ended(inside, time.Hour, all); !errors.Is(err, ErrCircle) {
			t.Errorf("the call itself: %v", err)
		}
		began := time.Now()
		if err := table.Ended(t.Context(), time.Minute, all); !errors.Is(err, ErrGuest) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, err := first.Wait(); err != nil {
			t.Error(err)
		}
		if err := table.Ended(t.Context(), 0, all); err != nil {
			t.Error(err)
		}
		stuck, _ := table.Enter(e, anything)
		stuck.Call().Work().Visit()
		other, _ := table.Enter(e, anything)
		began = time.Now()
		if _, err := other.Wait(); !errors.Is(err, ErrGuest) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
