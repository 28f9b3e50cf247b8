package inflight

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// all picks every operation.
func all(persist.ID) bool { return true }

// answering starts a call that is answered at once and is over after a minute. end is what it does last.
func answering(t *testing.T, table *Table[string], end func()) *Caller[string] {
	t.Helper()
	e := entry(t.Context(), "k")
	e.InDoubt = true
	caller, _ := table.Enter(e, anything)
	go func() {
		defer func() { _ = recover() }() // a panic that goes on ends the program
		caller.Call().Run(func() string {
			caller.Call().Answer("the answer")
			time.Sleep(time.Minute)
			end()
			return "not the answer"
		}, crashed)
	}()
	synctest.Wait()
	return caller
}

// TestAnswer: who waits has the result before the call is over; the call keeps its place, nobody joins it, and the next call of
// the operation begins when it is over. So it is however the call ends.
func TestAnswer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"returns": func() {}, "panics": func() { panic("late") }, "exits": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table, began := NewTable(func(string) {}), time.Now()
				first := answering(t, table, end)
				if got, err := first.Wait(); got != "the answer" || err != nil || time.Since(began) > 0 {
					t.Errorf("%q, %v after %v", got, err, time.Since(began))
				}
				running, inDoubt := table.Running(persist.ID{Key: "k"})
				if !running || inDoubt || table.Ending() != 1 {
					t.Errorf("running %t, in doubt %t, %d are ending; want true, false and 1", running, inDoubt, table.Ending())
				}
				second, arrival := table.Enter(entry(t.Context(), "k"), anything)
				if arrival != Started {
					t.Fatalf("arrival %d", arrival)
				}
				go second.Call().Run(func() string { return time.Since(began).String() }, crashed)
				if got, err := second.Wait(); got != "1m0s" || err != nil {
					t.Errorf("the next call began after %s, %v", got, err)
				}
				if got, _ := first.Wait(); got != "the answer" {
					t.Errorf("in the end the result is %q", got)
				}
				if table.Len() != 0 || table.Ending() != 0 {
					t.Errorf("%d calls are left, %d are ending", table.Len(), table.Ending())
				}
			})
		})
	}
}

// TestAnswerPanics: a panic after the answer reaches no caller, and is kept for whoever has run the call.
func TestAnswerPanics(t *testing.T) {
	t.Parallel()
	table := NewTable(func(string) {})
	caller, _ := table.Enter(entry(t.Context(), "k"), anything)
	caller.Call().Run(func() string {
		caller.Call().Answer("the answer")
		panic("late")
	}, crashed)
	late, deserted := caller.Call().PanickedLate(), caller.Call().Deserted()
	if got, err := caller.Wait(); got != "the answer" || err != nil || late != "late" || !deserted {
		t.Errorf("%q, %v; what it panicked with is %v, deserted %v", got, err, late, deserted)
	}
}

// TestEnded: who looks at an operation waits for the end of its calls that were answered, and of no other; also of one whose next
// call waits already; until its context ends.
func TestEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, began := NewTable(func(string) {}), time.Now()
		table.Enter(entry(t.Context(), "runs"), anything)
		answering(t, table, func() {})
		second, _ := table.Enter(entry(t.Context(), "k"), anything)
		go second.Call().Run(func() string { time.Sleep(time.Hour); return "" }, crashed)
		if err := table.Ended(t.Context(), 0, func(id persist.ID) bool { return id.Key == "runs" }); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		gone := errors.New("gone")
		short, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer cancel()
		if err := table.Ended(short, 0, all); !errors.Is(err, gone) {
			t.Errorf("%v; want the cause", err)
		}
		if err := table.Ended(t.Context(), 0, all); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v; want 1m", err, time.Since(began))
		}
		if _, err := second.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestLeaveWhileItWaits: who is the last to leave a call that still waits for the one before returns at once, and the call runs
// nothing; the call after it waits all the same.
func TestLeaveWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, began := NewTable(func(string) {}), time.Now()
		answering(t, table, func() {})
		gone := errors.New("gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer cancel()
		second, _ := table.Enter(entry(ctx, "k"), anything)
		go second.Call().Run(func() string { t.Error("it ran"); return "" }, crashed)
		if _, err := second.Wait(); !errors.Is(err, gone) || time.Since(began) != time.Second {
			t.Errorf("%v after %v; want the cause after 1s", err, time.Since(began))
		}
		third, arrival := table.Enter(entry(t.Context(), "k"), anything)
		if arrival != Started {
			t.Fatalf("arrival %d", arrival)
		}
		go third.Call().Run(func() string { return time.Since(began).String() }, crashed)
		if got, err := third.Wait(); got != "1m0s" || err != nil || table.Len() != 0 {
			t.Errorf("the next call began after %s, %v; %d calls are left", got, err, table.Len())
		}
	})
}
