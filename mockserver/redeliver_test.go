package mockserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
)

// A request that is delivered twice has one effect on a correct server, and two
// on one that ignores keys; the client notices nothing.
func TestDuplicateDelivery(t *testing.T) {
	t.Parallel()
	for bug, effects := range map[string]int{"": 1, "keys-ignored": 2} {
		for _, delay := range []time.Duration{0, time.Minute} {
			cfg := mockserver.Config{Bug: bug, Script: []mockserver.Fault{{Kind: mockserver.Duplicate, Delay: delay}}}
			mocktest.Bubble(t, cfg, func(s *mockserver.Server, cl *client) {
				start := time.Now()
				if got := cl.Post("k").Want(t, 201); got.Replayed() || time.Since(start) != 0 {
					t.Errorf("the client was given %v after %v", got, time.Since(start))
				}
				if delay > 0 {
					mocktest.WantCounts(t, s, "k", 1, 1)
					time.Sleep(delay)
					synctest.Wait()
				}
				mocktest.WantCounts(t, s, "k", 2, effects)
				if err := s.Err(); err != nil {
					t.Errorf("the client is blamed: %v", err)
				}
			})
		}
	}
}

// A request whose connection breaks is delivered after its retry: once on a
// correct server, twice on one that ignores keys.
func TestLateArrival(t *testing.T) {
	t.Parallel()
	for bug, effects := range map[string]int{"": 1, "keys-ignored": 2} {
		mocktest.Bubble(t, mockserver.Config{Bug: bug, Script: []mockserver.Fault{{Kind: mockserver.Late}}}, func(s *mockserver.Server, cl *client) {
			cl.Post("k").WantLost(t)
			cl.Post("other").Want(t, 201) // not its retry
			mocktest.WantCounts(t, s, "k", 1, 0)
			first := cl.Post("k").Want(t, 201)
			mocktest.WantCounts(t, s, "k", 2, effects)
			if again := cl.Post("k").Want(t, 201); bug == "" && again.Body != first.Body {
				t.Errorf("the late one took the key over: %s, then %s", first.Body, again.Body)
			}
		})
	}
}

// A request that is late by a time has its effect then, whether or not it was
// sent again; and the repeat finds what it did.
func TestLateArrivalByTime(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.Late, Delay: time.Minute}}}, func(s *mockserver.Server, cl *client) {
		cl.Post("k").WantLost(t)
		time.Sleep(time.Minute - time.Second)
		synctest.Wait()
		mocktest.WantCounts(t, s, "k", 1, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		mocktest.WantCounts(t, s, "k", 1, 1)
		if !cl.Post("k").Want(t, 201).Replayed() {
			t.Error("the repeat was executed")
		}
	})
}

// Both come from a mix too, and equal seeds give each send the same.
func TestTwiceAndLateBySeed(t *testing.T) {
	t.Parallel()
	mix, err := mockserver.ParseFaults("duplicate=0.3,late=0.2,late:5s=0.1,duplicate:1s=0.1")
	if err != nil {
		t.Fatal(err)
	}
	counts := func(seed uint64) (s mockserver.Snapshot) {
		mocktest.Bubble(t, mockserver.Config{Mix: mix, Seed: seed}, func(server *mockserver.Server, cl *client) {
			for i := range 40 {
				for cl.Post(string(rune('A'+i))).Status != 201 {
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			s = server.Ledger().Snapshot()
		})
		return s
	}
	first, again := counts(7), counts(7)
	if first.Effects != 40 || first.Sends <= 60 {
		t.Errorf("got %d effects of %d sends, want 40 of more than 60", first.Effects, first.Sends)
	}
	if first.Sends != again.Sends || first.Effects != again.Effects {
		t.Errorf("seed 7 gave %d sends, then %d", first.Sends, again.Sends)
	}
}

// Close does not wait for what is late, and Reset forgets it.
func TestLateEndsWithTheServer(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.Late}, {Kind: mockserver.Late, Delay: time.Hour}}}, func(s *mockserver.Server, cl *client) {
		cl.Post("a").WantLost(t)
		cl.Post("b").WantLost(t)
		s.Reset()
		s.Inject(mockserver.Fault{}, mockserver.Fault{})
		start := time.Now()
		if err := s.Close(); err != nil || time.Since(start) != 0 {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		if got := s.Ledger().Snapshot(); got.Effects != 0 {
			t.Errorf("got %d effects", got.Effects)
		}
	})
}
