package inflight

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

func entry(ctx context.Context, key string) Entry {
	return Entry{Record: &persist.Record{ID: persist.ID{Key: key}}, Context: ctx, Draining: context.Background()}
}

// anything takes every request for the same.
func anything(*persist.Record) bool { return true }

func crashed(cause error) string { return cause.Error() }

// TestJoin: everybody gets the one result; another key is another call.
func TestJoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(func(string) {})
		first, arrival := table.Enter(entry(t.Context(), "k"), anything)
		if arrival != Started {
			t.Fatalf("arrival %d", arrival)
		}
		if _, arrival := table.Enter(entry(t.Context(), "other"), anything); arrival != Started || table.Len() != 2 {
			t.Errorf("another key: arrival %d, %d calls", arrival, table.Len())
		}
		var wg sync.WaitGroup
		for range 3 {
			caller, arrival := table.Enter(entry(t.Context(), "k"), anything)
			if arrival != Joined {
				t.Fatalf("arrival %d", arrival)
			}
			wg.Go(func() {
				if got, err := caller.Wait(); got != "done" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		synctest.Wait()
		go first.Call().Run(func() string { return "done" }, crashed)
		if got, err := first.Wait(); got != "done" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		wg.Wait()
		if running, _ := table.Running(persist.ID{Key: "k"}); running {
			t.Error("it is still there")
		}
	})
}

// TestRefused: another request, and whoever joins nobody.
func TestRefused(t *testing.T) {
	t.Parallel()
	table := NewTable(func(string) {})
	table.Enter(entry(t.Context(), "k"), anything)
	other := func(running *persist.Record) bool { return running.Key != "k" }
	for name, same := range map[string]func(*persist.Record) bool{"another request": other, "one that joins nobody": nil} {
		if caller, arrival := table.Enter(entry(t.Context(), "k"), same); caller != nil || arrival != Refused {
			t.Errorf("%s: arrival %d", name, arrival)
		}
	}
}

// TestLeave: who leaves learns its own cause; the last one gives the call up and
// stays for the result; the next call waits for the end of this one.
func TestLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(func(string) {})
		one, two := errors.New("one"), errors.New("two")
		ctx1, cancel1 := context.WithCancelCause(t.Context())
		ctx2, cancel2 := context.WithCancelCause(t.Context())
		first, _ := table.Enter(entry(ctx1, "k"), anything)
		second, _ := table.Enter(entry(ctx2, "k"), anything)
		call := first.Call()
		go call.Run(func() string {
			<-call.Context().Done()
			time.Sleep(time.Second)
			return context.Cause(call.Context()).Error()
		}, crashed)
		cancel1(one)
		if got, err := first.Wait(); !errors.Is(err, one) || got != "" {
			t.Errorf("who left: %q, %v", got, err)
		}
		if call.Context().Err() != nil || call.Values().Err() != nil {
			t.Error("it was given up although somebody waits")
		}
		cancel2(two)
		var wg sync.WaitGroup
		wg.Go(func() {
			if got, err := second.Wait(); got != "two" || err != nil {
				t.Errorf("the last: %q, %v", got, err)
			}
		})
		synctest.Wait()
		third, arrival := table.Enter(entry(t.Context(), "k"), anything)
		if arrival != Started {
			t.Fatalf("arrival %d at a call that was given up", arrival)
		}
		start := time.Now()
		third.Call().Run(func() string {
			if time.Since(start) != time.Second {
				t.Errorf("it began after %v, beside the other", time.Since(start))
			}
			return "third"
		}, crashed)
		wg.Wait()
		if got, _ := third.Wait(); got != "third" || table.Len() != 0 {
			t.Errorf("%q, %d calls left", got, table.Len())
		}
	})
}

// TestResultCounts even where the caller's context ends at the same moment.
func TestResultCounts(t *testing.T) {
	t.Parallel()
	for range 100 {
		table := NewTable(func(string) {})
		ctx, cancel := context.WithCancel(t.Context())
		first, _ := table.Enter(entry(ctx, "k"), anything)
		second, _ := table.Enter(entry(ctx, "k"), anything)
		first.Call().Run(func() string { return "done" }, crashed)
		cancel()
		for _, caller := range []*Caller[string]{first, second} {
			if got, err := caller.Wait(); got != "done" || err != nil {
				t.Fatalf("%q, %v", got, err)
			}
		}
	}
}

// TestDeadline is the latest, and none where one caller has none.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(func(string) {})
		var call *Call[string]
		start := time.Now()
		for _, d := range []time.Duration{2, 5, 3} {
			ctx, cancel := context.WithTimeout(t.Context(), d*time.Second)
			defer cancel()
			caller, _ := table.Enter(entry(ctx, "k"), anything)
			call = caller.Call()
		}
		if got := call.Deadline(); got != start.Add(5*time.Second) {
			t.Errorf("after %v, want 5s", got.Sub(start))
		}
		table.Enter(entry(t.Context(), "k"), anything)
		if got := call.Deadline(); !got.IsZero() {
			t.Errorf("%v, want none", got)
		}
	})
}

// TestPlainHTTP: one that left still was there.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	table := NewTable(func(string) {})
	first, _ := table.Enter(entry(t.Context(), "k"), anything)
	check := func(wantIs, wantWas bool) {
		t.Helper()
		if is, was := first.Call().PlainHTTP(); is != wantIs || was != wantWas {
			t.Errorf("is %v, was %v; want %v, %v", is, was, wantIs, wantWas)
		}
	}
	check(false, false)
	e := entry(t.Context(), "k")
	e.PlainHTTP = true
	plain, _ := table.Enter(e, anything)
	check(true, true)
	plain.Leave()
	check(false, true)
}

// TestRecording: the caller that started a call leaves it before its end is recorded, and not from then on. Another one may.
func TestRecording(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ first, second bool }{
		"the first leaves before": {first: true}, "the second leaves before": {second: true}, "both wait": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := NewTable(func(string) {})
			ctx, end := context.WithCancel(t.Context())
			other, endOther := context.WithCancel(t.Context())
			defer end()
			defer endOther()
			first, _ := table.Enter(entry(ctx, "k"), anything)
			second, _ := table.Enter(entry(other, "k"), anything)
			_, _ = table.Enter(entry(t.Context(), "k"), anything)
			if c.first {
				if end(); first.Await() == nil {
					t.Fatal("the first caller stays")
				}
			}
			if c.second {
				if endOther(); second.Await() == nil {
					t.Fatal("the second caller stays")
				}
			}
			if got := first.Call().Recording(); got != c.first {
				t.Errorf("the first caller has left: %t", got)
			}
			end()
			endOther()
			go first.Call().Run(func() string { return "done" }, func(error) string { return "crashed" })
			if !c.first {
				if got, err := first.Wait(); err != nil || got != "done" {
					t.Errorf("the first caller, whose context ended during the record: %q, %v", got, err)
				}
			}
		})
	}
}

// TestInDoubt is told by who enters, and later by the call itself.
func TestInDoubt(t *testing.T) {
	t.Parallel()
	table := NewTable(func(string) {})
	e := entry(t.Context(), "k")
	e.InDoubt = true
	first, _ := table.Enter(e, anything)
	if running, inDoubt := table.Running(e.Record.ID); !running || !inDoubt {
		t.Errorf("running %v, in doubt %v", running, inDoubt)
	}
	first.Call().SetInDoubt(false)
	if running, inDoubt := table.Running(e.Record.ID); !running || inDoubt {
		t.Errorf("running %v, in doubt %v", running, inDoubt)
	}
}

// TestGiveUpDraining: only calls that are draining, of one client.
func TestGiveUpDraining(t *testing.T) {
	t.Parallel()
	table := NewTable(func(string) {})
	cause := errors.New("closing")
	draining, drain := context.WithCancelCause(t.Context())
	e := entry(t.Context(), "k")
	e.Draining, e.Client = draining, "mine"
	one, _ := table.Enter(e, anything)
	two, _ := table.Enter(entry(t.Context(), "other"), anything)
	e = entry(t.Context(), "another client's")
	e.Draining, e.Client = draining, "theirs"
	three, _ := table.Enter(e, anything)
	table.GiveUpDraining("mine")
	if one.Call().Context().Err() != nil {
		t.Error("given up before it drains")
	}
	drain(cause)
	table.GiveUpDraining("mine")
	if context.Cause(one.Call().Context()) != cause || two.Call().Context().Err() != nil || one.Call().Draining().Err() == nil {
		t.Error("want the one given up, and the other not")
	}
	if three.Call().Context().Err() != nil {
		t.Error("another client's call was given up")
	}
}

// TestCrash: a panic goes on in who started the call, the others get a result; so
// does everybody where the goroutine ended.
func TestCrash(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func() string{
		(&Crash{"boom"}).Error(): func() string { panic("boom") },
		(&Crash{}).Error():       func() string { runtime.Goexit(); return "" },
	} {
		table := NewTable(func(string) {})
		first, _ := table.Enter(entry(t.Context(), "k"), anything)
		second, _ := table.Enter(entry(t.Context(), "k"), anything)
		go first.Call().Run(f, crashed)
		if got, err := second.Wait(); got != name || err != nil {
			t.Errorf("%q, %v; want %q", got, err, name)
		}
		caught := func() (v any) {
			defer func() { v = recover() }()
			_, _ = first.Wait()
			return nil
		}()
		if (caught != nil) != (first.Call().Panicked() != nil) || (caught == "boom") != (name == (&Crash{"boom"}).Error()) || table.Len() != 0 {
			t.Errorf("%s: caught %v, %d calls left", name, caught, table.Len())
		}
	}
}

// TestRelease: a result is released once, when the call is over and the last of its callers has left or is done with it.
func TestRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := 0
		table := NewTable(func(got string) {
			if released++; got != "done" {
				t.Errorf("released %q", got)
			}
		})
		want := func(n int, when string) {
			t.Helper()
			if released != n {
				t.Errorf("%s: released %d times, want %d", when, released, n)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		first, _ := table.Enter(entry(t.Context(), "k"), anything)
		second, _ := table.Enter(entry(ctx, "k"), anything)
		third, _ := table.Enter(entry(t.Context(), "k"), anything)
		cancel()
		if _, err := second.Wait(); err == nil {
			t.Error("who left has a result")
		}
		first.Call().Run(func() string { return "done" }, crashed)
		want(0, "while two use it")
		for _, c := range []*Caller[string]{first, third} {
			_, _ = c.Wait()
		}
		first.Done()
		first.Done()
		third.Leave()
		want(1, "once both are gone")
		second.Done()
		want(1, "after another Done")
	})
}
