package mockserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// What the server holds against a client without a referee: each rule broken
// once, and the same thing done well.
func TestViolations(t *testing.T) {
	t.Parallel()
	for _, c := range violations() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mocktest.Bubble(t, mockserver.Config{Script: c.script, OperationPointer: "/reference"}, func(s *mockserver.Server, cl *client) {
				c.run(cl)
				synctest.Wait()
				got := mocktest.Rules(s)
				slices.Sort(got)
				if !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
				if (s.Err() != nil) != (len(c.want) > 0) {
					t.Errorf("Err: got %v", s.Err())
				}
			})
		})
	}
}

// conduct is what a client does, and the rules that it breaks by it.
type conduct struct {
	name   string
	script []mockserver.Fault
	run    func(*client)
	want   []string
}

func violations() []conduct {
	status := func(code int, wait string) mockserver.Fault {
		return mockserver.Fault{Kind: mockserver.Answer, Status: code, RetryAfter: wait}
	}
	twice := func(gap time.Duration) func(*client) {
		return func(cl *client) { cl.Post("k"); time.Sleep(gap); cl.Post("k") }
	}
	slow := request{Key: "k", Path: "/payments?sleep=3000"}
	return []conduct{
		{"asked twice", nil, twice(0), []string{"answer/final-not-retried"}},
		{"after silence", []mockserver.Fault{{Kind: mockserver.DropAfter}}, twice(0), nil},
		{"after a cut body", []mockserver.Fault{{Kind: mockserver.CutBody}}, twice(0), nil},
		{"after a refusal", []mockserver.Fault{status(402, "")}, twice(0), []string{"answer/final-not-retried"}},
		{"after new credentials", []mockserver.Fault{status(401, "")}, twice(0), nil},
		{"after silence, then a refusal", []mockserver.Fault{{Kind: mockserver.DropAfter}, status(404, "")}, func(cl *client) {
			twice(0)(cl)
			cl.Post("k")
		}, nil},
		{"too early", []mockserver.Fault{status(503, "2")}, twice(1900 * time.Millisecond), []string{"wait/retry-after"}},
		{"in time", []mockserver.Fault{status(503, "2")}, twice(2 * time.Second), nil},
		{"before the date", []mockserver.Fault{status(503, "Sat, 01 Jan 2000 00:00:10 GMT")}, twice(9 * time.Second), []string{"wait/retry-after"}},
		{"after the date", []mockserver.Fault{status(503, "Saturday, 01-Jan-00 00:00:10 GMT")}, twice(10 * time.Second), nil},
		{"garbage is no hint", []mockserver.Fault{status(503, "soon")}, twice(0), nil},
		{"an overflow is no hint", []mockserver.Fault{status(503, "99999999999999999999")}, twice(0), nil},
		{"other bytes", nil, func(cl *client) {
			cl.Post("k")
			cl.Do(request{Key: "k", Body: `{"reference":"r1","amount":9}`})
		}, []string{"answer/final-not-retried", "request/same-bytes"}},
		{"another key", []mockserver.Fault{status(503, "")}, func(cl *client) { cl.Post("k1"); cl.Post("k2") }, []string{"key/one-per-operation"}},
		{"a bad key", nil, func(cl *client) { cl.Post("a b") }, []string{"key/valid"}},
		{"at the same time", nil, func(cl *client) {
			go cl.Do(slow)
			synctest.Wait()
			cl.Do(slow)
			time.Sleep(4 * time.Second)
		}, []string{"attempts/no-overlap"}},
		{"shortly at the same time", nil, func(cl *client) {
			brief := request{Key: "k", Path: "/payments?sleep=100"}
			go cl.Do(brief)
			synctest.Wait()
			cl.Do(brief)
			time.Sleep(time.Second)
		}, []string{"attempts/no-overlap"}},
		{"after hanging up", nil, func(cl *client) {
			ctx, cancel := mocktest.In(time.Second)
			defer cancel()
			left := slow
			left.Ctx = ctx
			cl.Do(left)
			synctest.Wait() // the server has seen it
			cl.Do(slow)
			time.Sleep(4 * time.Second)
		}, nil},
		{"while one hangs", []mockserver.Fault{{Kind: mockserver.Hang, Delay: time.Minute}}, func(cl *client) {
			go cl.Post("k")
			synctest.Wait()
			cl.Post("k")
			time.Sleep(time.Minute)
		}, []string{"attempts/no-overlap"}},
	}
}

// A stored 500 that is asked for again, though the server said that it is of no
// use.
func TestStoredErrorAskedAgain(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Profile: profile.StripeV1()}, func(s *mockserver.Server, cl *client) {
		failing := request{Key: "k", Path: "/payments?fail=500"}
		cl.Do(failing)
		cl.Do(failing)
		if err := s.Err(); err != nil {
			t.Errorf("the first bare 500 may be retried: %v", err)
		}
		cl.Do(failing)
		var v mockserver.Violation
		if !errors.As(s.Err(), &v) || v.Rule != "answer/final-not-retried" || v.Key != "k" {
			t.Errorf("got %v", s.Err())
		}
	})
}

// An answer that was written for a client that had left settles nothing.
func TestAnswerToNobodyIsNotFinal(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		s := mockserver.New(mockserver.Config{})
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			if gone {
				cancel()
			}
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/payments", strings.NewReader("{}"))
			r.Header.Set("Idempotency-Key", "k")
			s.ServeHTTP(httptest.NewRecorder(), r)
			cancel()
		}
		if (s.Err() == nil) != gone {
			t.Errorf("gone %v: got %v", gone, s.Err())
		}
		mocktest.WantCounts(t, s, "k", 2, 1)
	}
}

// The list of violations is bounded.
func TestViolationsAreBounded(t *testing.T) {
	t.Parallel()
	s := mockserver.New(mockserver.Config{})
	for range 1002 {
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", "k")
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	if got := s.Ledger().Snapshot(); len(got.Violations) != 1000 || got.Sends != 1002 {
		t.Errorf("got %d violations of %d sends, want 1000", len(got.Violations), got.Sends)
	}
}

// No body and no credential reaches the ledger.
func TestViolationsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		secret := http.Header{"Authorization": {"Bearer s3cret"}}
		cl.Do(request{Key: "k", Header: secret, Body: `{"card":"s3cret"}`})
		cl.Do(request{Key: "k", Header: http.Header{"Authorization": {"Bearer s3cret"}}, Body: `{"card":"s3cret2"}`})
		cl.Do(request{Key: "s3cret key"})
		if s.Err() == nil || strings.Contains(s.Err().Error(), "s3cret") {
			t.Errorf("got %v", s.Err())
		}
	})
}
