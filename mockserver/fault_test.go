package mockserver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
)

// Each fault, then the same request again: what the client sees, how many
// effects there are after the first send, and that the repeat always resolves.
func TestFaults(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		fault   mockserver.Fault
		status  int // 0: no whole answer
		effects int // after the first send
		check   func(*testing.T, reply)
	}{
		{"none", mockserver.Fault{}, 201, 1, nil},
		{"drop before", mockserver.Fault{Kind: mockserver.DropBefore}, 0, 0, nil},
		{"drop after", mockserver.Fault{Kind: mockserver.DropAfter}, 0, 1, nil},
		{"reset", mockserver.Fault{Kind: mockserver.Reset}, 0, 0, wantReset},
		{"reset after", mockserver.Fault{Kind: mockserver.ResetAfter}, 0, 1, wantReset},
		{"hang, bounded", mockserver.Fault{Kind: mockserver.Hang, Delay: time.Minute}, 0, 0, nil},
		{"hang after, bounded", mockserver.Fault{Kind: mockserver.HangAfter, Delay: time.Minute}, 0, 1, nil},
		{"slow body", mockserver.Fault{Kind: mockserver.SlowBody, Delay: time.Minute}, 201, 1, nil},
		{"cut body", mockserver.Fault{Kind: mockserver.CutBody, Bytes: 5}, 0, 1, func(t *testing.T, r reply) {
			if !errors.Is(r.Err, io.ErrUnexpectedEOF) || r.Status != 201 || len(r.Body) != 5 {
				t.Errorf("got %d bytes of %d, %v, want 5 bytes of a 201 and an unexpected end", len(r.Body), r.Status, r.Err)
			}
		}},
		{"409", mockserver.Fault{Kind: mockserver.Answer, Status: 409}, 409, 0, wantRetryAfter("")},
		{"409 with a wait", mockserver.Fault{Kind: mockserver.Answer, Status: 409, RetryAfter: "7"}, 409, 0, wantRetryAfter("7")},
		{"429", mockserver.Fault{Kind: mockserver.Answer, Status: 429, RetryAfter: "1"}, 429, 0, wantRetryAfter("1")},
		{"500", mockserver.Fault{Kind: mockserver.Answer, Status: 500}, 500, 0, nil},
		{"503 by default", mockserver.Fault{Kind: mockserver.Answer}, 503, 0, nil},
		{"500 after", mockserver.Fault{Kind: mockserver.AnswerAfter, Status: 500}, 500, 1, nil},
		{"301", mockserver.Fault{Kind: mockserver.Redirect, Status: 301}, 301, 0, wantLocation("/moved/payments")},
		{"307 across", mockserver.Fault{Kind: mockserver.Redirect, Location: "http://other.test/p"}, 307, 0, wantLocation("http://other.test/p")},
		{"huge", mockserver.Fault{Kind: mockserver.HugeError, Bytes: 3 << 20}, 500, 0, func(t *testing.T, r reply) {
			if len(r.Body) != 3<<20 {
				t.Errorf("got %d bytes, want %d", len(r.Body), 3<<20)
			}
		}},
		{"kill idle", mockserver.Fault{Kind: mockserver.KillIdle}, 201, 1, func(t *testing.T, r reply) {
			if r.Header.Get("Connection") != "" {
				t.Error("the answer announces the end of the connection")
			}
		}},
		{"own words", mockserver.Fault{Kind: mockserver.Answer, Status: 402, Body: `{"x":1}`, Header: http.Header{"X-Own": {"1"}}}, 402, 0, func(t *testing.T, r reply) {
			if r.Body != `{"x":1}` || r.Header.Get("X-Own") != "1" {
				t.Errorf("got %q, %v", r.Body, r.Header)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mocktest.Bubble(t, mockserver.Config{Script: []mockserver.Fault{c.fault}}, func(s *mockserver.Server, cl *client) {
				got := cl.Post("k1")
				if c.status != 0 {
					got.Want(t, c.status)
				} else if got.Err == nil {
					t.Fatalf("got status %d, want no whole answer", got.Status)
				}
				if c.check != nil {
					c.check(t, got)
				}
				mocktest.WantCounts(t, s, "k1", 1, c.effects)
				cl.HTTP.CloseIdleConnections() // kill idle has its own test
				again := cl.Post("k1").Want(t, 201)
				if again.Replayed() != (c.effects == 1) {
					t.Errorf("replayed: got %v, want %v", again.Replayed(), c.effects == 1)
				}
				mocktest.WantCounts(t, s, "k1", 2, 1)
			})
		})
	}
}

func wantReset(t *testing.T, r reply) {
	if !errors.Is(r.Err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a connection reset", r.Err)
	}
}

func wantRetryAfter(text string) func(*testing.T, reply) {
	return func(t *testing.T, r reply) {
		if got := r.Header.Get("Retry-After"); got != text {
			t.Errorf("Retry-After: got %q, want %q", got, text)
		}
	}
}

func wantLocation(text string) func(*testing.T, reply) {
	return func(t *testing.T, r reply) {
		if got := r.Header.Get("Location"); got != text {
			t.Errorf("Location: got %q, want %q", got, text)
		}
	}
}

func TestHangEndsWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	for _, kind := range []mockserver.Kind{mockserver.Hang, mockserver.HangAfter} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			mocktest.Bubble(t, mockserver.Config{Script: []mockserver.Fault{{Kind: kind}}}, func(s *mockserver.Server, cl *client) {
				ctx, cancel := mocktest.In(30 * time.Second)
				defer cancel()
				start := time.Now()
				cl.Do(request{Key: "k", Ctx: ctx}).WantLost(t)
				if took := time.Since(start); took != 30*time.Second {
					t.Errorf("took %v, want the client's 30s", took)
				}
				cl.Post("k").Want(t, 201)
				if err := s.Err(); err != nil {
					t.Errorf("a send after giving up is no violation: %v", err)
				}
			})
		})
	}
}

// Close ends whatever waits; the bubble would not end otherwise.
func TestCloseEndsEveryWait(t *testing.T) {
	t.Parallel()
	for _, fault := range []mockserver.Fault{
		{Kind: mockserver.Hang}, {Kind: mockserver.HangAfter}, {Kind: mockserver.SlowBody, Delay: time.Hour},
		{Delay: time.Hour}, {Kind: mockserver.Answer, Delay: time.Hour}, {Kind: mockserver.KillIdle},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := mockserver.New(mockserver.Config{Script: []mockserver.Fault{fault}})
			pipe := server.Pipe()
			cl := mocktest.NewClient(t, pipe.Transport(), pipe.URL)
			answered := make(chan reply, 1)
			go func() { answered <- cl.Post("k") }()
			synctest.Wait()
			start := time.Now()
			if err := server.Close(); err != nil {
				t.Errorf("%v: Close: %v", fault.Kind, err)
			}
			<-answered
			if took := time.Since(start); took != 0 {
				t.Errorf("%v: Close took %v of virtual time", fault.Kind, took)
			}
		})
	}
}

// The next request on a killed connection is a send that has no effect, and
// net/http sends it again by itself where the request carries a key and GetBody.
func TestKillIdleMakesNetHTTPSendAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		getBody bool
		sends   int
		lost    bool
	}{{"with GetBody", true, 2, false}, {"without", false, 1, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mocktest.Bubble(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.KillIdle}}}, func(s *mockserver.Server, cl *client) {
				cl.Post("first").Want(t, 201)
				req, err := http.NewRequest(http.MethodPost, cl.URL+"/payments", strings.NewReader(`{"reference":"r2"}`))
				if err != nil {
					t.Fatal(err)
				}
				if !c.getBody {
					req.GetBody = nil
				}
				req.Header.Set("Idempotency-Key", "second")
				response, err := cl.HTTP.Do(req)
				if c.lost != (err != nil) {
					t.Fatalf("got error %v, want one: %v", err, c.lost)
				}
				if err == nil {
					response.Body.Close()
				}
				synctest.Wait()
				effects := 1
				if c.lost {
					effects = 0
				}
				mocktest.WantCounts(t, s, "second", c.sends, effects)
			})
		})
	}
}

// Expire makes the server execute again: what a client that waits too long meets.
func TestExpireForgetsTheKey(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Script: []mockserver.Fault{{}, {Kind: mockserver.Expire}}}, func(s *mockserver.Server, cl *client) {
		cl.Post("k").Want(t, 201)
		cl.Post("k").Want(t, 201)
		mocktest.WantCounts(t, s, "k", 2, 2)
	})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	is := func(status int) mockserver.Fault { return mockserver.Fault{Kind: mockserver.Answer, Status: status} }
	cfg := mockserver.Config{
		ByKey:            map[string][]mockserver.Fault{"own": {is(501)}},
		Scenarios:        [][]mockserver.Fault{{is(502), {}}, {is(503)}},
		Script:           []mockserver.Fault{is(504)},
		OperationPointer: "/reference",
	}
	mocktest.Bubble(t, cfg, func(s *mockserver.Server, cl *client) {
		send := func(key, reference string) int {
			return cl.Do(request{Key: key, Body: `{"reference":"` + reference + `"}`}).Status
		}
		for i, step := range []struct {
			key, reference string
			want           int
		}{
			{"own", "a", 501}, {"k1", "b", 502}, {"k2", "c", 503}, {"k1", "b", 201}, {"k3", "d", 502},
			{"k2", "c", 504}, {"k2", "c", 201}, {"own", "e", 503},
		} {
			if got := send(step.key, step.reference); got != step.want {
				t.Errorf("step %d (%s, %s): got %d, want %d", i, step.key, step.reference, got, step.want)
			}
		}
		s.Inject(is(429))
		if got := send("k9", "z"); got != 502 {
			t.Errorf("a scenario goes before what was injected: got %d", got)
		}
	})
}

// The same seed gives every send of every key the same fault, whatever the
// order of arrival; another seed gives others.
func TestMixIsDeterministicBySeed(t *testing.T) {
	t.Parallel()
	mix, err := mockserver.ParseFaults("429=0.3,503=0.3,500=0.1")
	if err != nil {
		t.Fatal(err)
	}
	run := func(seed uint64, keys []string) (statuses string) {
		seen := map[string]string{}
		mocktest.Bubble(t, mockserver.Config{Mix: mix, Seed: seed}, func(_ *mockserver.Server, cl *client) {
			for range 4 {
				for _, key := range keys {
					seen[key] += " " + http.StatusText(cl.Post(key).Status)
				}
			}
		})
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			statuses += seen[key] + ";"
		}
		return statuses
	}
	forward := run(7, []string{"a", "b", "c", "d", "e"})
	backward := run(7, []string{"e", "d", "c", "b", "a"})
	if forward != backward {
		t.Errorf("one seed, two orders:\n%s\n%s", forward, backward)
	}
	if other := run(8, []string{"a", "b", "c", "d", "e"}); other == forward {
		t.Errorf("two seeds gave the same faults: %s", other)
	}
}

func TestClientThatLeavesDoesNotStopTheEffect(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		slow := request{Key: "k", Path: "/payments?sleep=5000", Ctx: ctx}
		cl.Do(slow).WantLost(t)
		slow.Ctx = nil
		cl.Do(slow).Want(t, 409)
		time.Sleep(5 * time.Second)
		if !cl.Do(slow).Want(t, 201).Replayed() {
			t.Error("the answer that nobody waited for was not stored")
		}
		mocktest.WantCounts(t, s, "k", 3, 1)
	})
}

// The body trickles: nothing at once, all of it in the end, in the time given.
func TestSlowBodyTakesItsTime(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Minute: time.Minute} {
		fault := mockserver.Fault{Kind: mockserver.SlowBody, Delay: delay}
		mocktest.Bubble(t, mockserver.Config{Script: []mockserver.Fault{fault}}, func(_ *mockserver.Server, cl *client) {
			start := time.Now()
			cl.Post("k").Want(t, 201)
			if took := time.Since(start); took < want || took > want*11/10 {
				t.Errorf("took %v, want %v", took, want)
			}
		})
	}
}

// A redirect without a Location leads to the same place under another path, so
// that a client that follows a 307 is still one operation.
func TestRedirectLeadsToTheSamePlace(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.Redirect}}}, func(s *mockserver.Server, cl *client) {
		path := cl.Do(request{Key: "k", Path: "/a%2Fb?x=1"}).Want(t, 307).Header.Get("Location")
		moved := cl.Do(request{Key: "k", Path: path}).Want(t, 201)
		if again := cl.Do(request{Key: "k", Path: "/a%2Fb?x=1"}).Want(t, 201); again.Body != moved.Body {
			t.Errorf("got %s, want %s", again.Body, moved.Body)
		}
		mocktest.WantCounts(t, s, "k", 3, 1)
		if got := mocktest.Rules(s); len(got) != 1 || got[0] != "answer/final-not-retried" {
			t.Errorf("violations: got %q", got)
		}
	})
}

// A connection that waits to be killed is no request that is being handled: a
// send on another one overlaps nothing (and has not read what came on the first).
func TestKilledConnectionIsAnswered(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.KillIdle}}}, func(s *mockserver.Server, cl *client) {
		cl.Post("k").Want(t, 201)
		other := mocktest.NewClient(t, s.Pipe().Transport(), cl.URL)
		other.Post("k").Want(t, 201)
		if got := mocktest.Rules(s); len(got) != 0 {
			t.Errorf("violations: got %q, want none", got)
		}
	})
}
