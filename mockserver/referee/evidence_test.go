package referee_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/mockserver/referee"
)

// one is a script with one scenario.
func one(faults ...mockserver.Fault) referee.Script {
	return referee.Script{Expect: 1, OperationPointer: "/reference", Scenarios: []referee.Scenario{{Name: "it", Faults: faults}}}
}

// caseOf finds the verdict on one rule.
func caseOf(t *testing.T, judge *referee.Referee, id string) referee.Case {
	t.Helper()
	for _, c := range judge.Report().Cases {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("no case %s", id)
	return referee.Case{}
}

// What a skipped rule says of the run is true: an answer that was given is not
// said to be missing because nothing followed it, or nothing with a key.
func TestReasonsOfSkippedRulesAreTrue(t *testing.T) {
	t.Parallel()
	status := func(code int) mockserver.Fault { return mockserver.Fault{Kind: mockserver.Answer, Status: code} }
	lost := mockserver.Fault{Kind: mockserver.DropAfter}
	sends := func(keys ...string) func(*client) {
		return func(cl *client) {
			for _, key := range keys {
				cl.Post(key)
			}
		}
	}
	const between = ", but not between two sends with keys"
	for _, c := range []struct {
		name   string
		faults []mockserver.Fault
		run    func(*client)
		rule   string
		reason string
	}{
		{"a 503 and no other send", []mockserver.Fault{status(503)}, sends("k"), "key/kept-after-error", "a 429 or 5xx was given" + between},
		{"a 503 between sends without keys", []mockserver.Fault{status(503)}, sends("", ""), "key/kept-after-error", "a 429 or 5xx was given" + between},
		{"no error", nil, sends("k"), "key/kept-after-error", "no 429 or 5xx was given"},
		{"a 409 and no other send", []mockserver.Fault{status(409)}, sends("k"), "key/kept-after-conflict", "a 409 or 422 was given" + between},
		{"a lost answer and no other send", []mockserver.Fault{lost}, sends("k"), "key/kept-after-lost-answer", "an answer was lost" + between},
		{"the second answer is lost", []mockserver.Fault{status(503), lost}, sends("k", "k", "k"), "answer/lost-asked-again", "no operation's first answer was lost"},
		{"a 503 second", []mockserver.Fault{lost, status(503)}, sends("k", "k", "k"), "answer/unavailable-asked-again", "no operation's first answer was a 429, 500 or 503"},
		{"two sends without a key", []mockserver.Fault{lost}, sends("", ""), "key/one-per-operation", "no operation was sent twice with a key"},
		{"a replay after a final answer", nil, sends("k", "k"), "answer/replay-accepted", "no operation's first final answer was a replay"},
		{"a mismatch only", []mockserver.Fault{{Kind: mockserver.Answer, Status: 422, Header: http.Header{"Content-Type": {"application/problem+json"}}}},
			sends("k"), "answer/final-not-retried", "no operation's first final answer was one of its own"},
		{"given up at once", []mockserver.Fault{status(503)}, sends("k"), "attempts/bounded", "no operation was given up after more than one send"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play(t, mockserver.Config{}, one(c.faults...), func(judge *referee.Referee, cl *client) {
				c.run(cl)
				synctest.Wait()
				if got := caseOf(t, judge, c.rule); got.Verdict != referee.Skip || got.Reason != c.reason {
					t.Errorf("%s: got %s, %q (%s), want skip, %q", c.rule, got.Verdict, got.Reason, got.Actual, c.reason)
				}
			})
		})
	}
}

// writer answers like a connection whose client reads the answer, and sends
// again, before the server has noticed that its last write is over.
type writer struct {
	*httptest.ResponseRecorder
	then func()
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(p)
	if then := w.then; then != nil {
		w.then = nil
		then()
	}
	return n, err
}

// A send that follows an answer at once, on another connection, has waited for
// it: it overlaps nothing, and what it does with its key is judged.
func TestSendRightAfterAnAnswerIsNoOverlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		judge := referee.New(one(mockserver.Fault{Kind: mockserver.Answer, Status: 503}))
		server := mockserver.New(mockserver.Config{Referee: judge})
		send := func(key, from string, then func()) {
			r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(`{"reference":"r"}`))
			r.Header.Set("Idempotency-Key", key)
			r.RemoteAddr = from
			server.ServeHTTP(&writer{httptest.NewRecorder(), then}, r)
		}
		send("k", "a:1", func() {
			send("k", "a:2", nil)
			time.Sleep(time.Millisecond) // the first handler comes to its end late
		})
		if got := caseOf(t, judge, "attempts/no-overlap"); got.Verdict == referee.Fail || server.Err() != nil {
			t.Errorf("no overlap: got %s %q, %v", got.Verdict, got.Actual, server.Err())
		}
		if got := caseOf(t, judge, "key/kept-after-error"); got.Verdict != referee.Pass {
			t.Errorf("the key after a 503: got %s %q", got.Verdict, got.Reason)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A client that was killed after a whole answer had been written may send again:
// nothing proves that it has read the answer. Only a send on the same connection
// does.
func TestOnlyWhatWasReadCounts(t *testing.T) {
	t.Parallel()
	refusal := mockserver.Fault{Kind: mockserver.Answer, Status: 402}
	early := mockserver.Fault{Kind: mockserver.Answer, Status: 503, RetryAfter: "60"}
	stored := mockserver.Fault{Kind: mockserver.DropAfter}
	mismatch := mockserver.Fault{Kind: mockserver.Answer, Status: 422, Header: http.Header{"Content-Type": {"application/problem+json"}}}
	for _, c := range []struct {
		rule   string
		faults []mockserver.Fault
		sends  int // up to the answer
	}{
		{"answer/final-not-retried", nil, 1},
		{"answer/final-not-retried", []mockserver.Fault{refusal}, 1},
		{"answer/replay-accepted", []mockserver.Fault{stored}, 2},
		{"answer/mismatch-not-retried", []mockserver.Fault{mismatch}, 1},
		{"wait/retry-after", []mockserver.Fault{early}, 1},
	} {
		for _, killed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %d killed %v", c.rule, len(c.faults), killed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					judge := referee.New(one(c.faults...))
					server := mockserver.New(mockserver.Config{Referee: judge})
					pipe := server.Pipe()
					transport := pipe.Transport()
					for range c.sends {
						mocktest.NewClient(t, transport, pipe.URL).Post("k")
					}
					synctest.Wait() // the server is done with them
					if killed {
						transport.CloseIdleConnections() // all that the process held is gone
						transport = pipe.Transport()
					}
					mocktest.NewClient(t, transport, pipe.URL).Post("k")
					synctest.Wait()
					got := caseOf(t, judge, c.rule)
					if killed && (got.Verdict != referee.Skip || !strings.Contains(got.Reason, "another connection") || server.Err() != nil) {
						t.Errorf("killed: got %s, %q%q, %v", got.Verdict, got.Reason, got.Actual, server.Err())
					}
					if !killed && got.Verdict != referee.Fail && got.Verdict != referee.Warn {
						t.Errorf("alive: got %s, %q", got.Verdict, got.Reason)
					}
					if err := server.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// The finding on same-bytes says where two requests differ, and shows nothing of
// their values.
func TestSameBytesShowsWhatDiffers(t *testing.T) {
	t.Parallel()
	first := request{Key: "k", Path: "/payments?a=1&ts=s3cret1", Body: `{"reference":"r","card":{"no":"s3cret1"},"sent":[1,2]}`,
		Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
	size := len(first.Body)
	for _, c := range []struct {
		name   string
		change func(*request)
		want   []string
	}{
		{"a member", func(r *request) { r.Body = `{"reference":"r","card":{"no":"s3cret22"},"sent":[1,2]}` },
			[]string{fmt.Sprintf("body (%d and %d bytes, the first difference at offset %d", size, size+1, strings.Index(first.Body, "1\"}")), "JSON at /card/no)"}},
		{"members come and go", func(r *request) { r.Body = `{"reference":"r","sent":[1,3,4],"new":0}` },
			[]string{"JSON at /card, /new, /sent/1, /sent/2"}},
		{"the same JSON", func(r *request) { r.Body = `{ "reference":"r","card":{"no":"s3cret1"},"sent":[1,2]}` },
			[]string{"the same JSON, spelled otherwise"}},
		{"no JSON", func(r *request) { r.Body = `{"reference":"r"}s3cret` }, []string{fmt.Sprintf("body (%d and 23 bytes, the first difference at offset 16)", size)}},
		{"longer", func(r *request) { r.Body += " " }, []string{fmt.Sprintf("offset %d; the same JSON", size)}},
		{"the method", func(r *request) { r.Method = http.MethodPut }, []string{"method (POST, then PUT)"}},
		{"the path", func(r *request) { r.Path = "/payment/s3cret?a=1&ts=s3cret1" }, []string{"path (9 and 15 bytes, the first difference at offset 8)"}},
		{"the query", func(r *request) { r.Path = "/payments?a=1&ts=s3cret2&b=s3cret" }, []string{"query (parameters b, ts)"}},
		{"the type", func(r *request) { r.Header = http.Header{"Content-Type": {"text/plain; charset=utf-8"}} }, []string{"Content-Type (media type)"}},
		{"its parameters", func(r *request) {
			r.Header = http.Header{"Content-Type": {"application/json; charset=utf-8; boundary=s3cret"}}
		},
			[]string{"Content-Type (parameter boundary)"}},
		{"two things", func(r *request) { r.Method, r.Body = http.MethodPut, `{"reference":"r"}` }, []string{"method", "body"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play(t, mockserver.Config{}, one(mockserver.Fault{Kind: mockserver.Answer, Status: 503}), func(judge *referee.Referee, cl *client) {
				again := first
				c.change(&again)
				cl.Do(first)
				cl.Do(again)
				synctest.Wait()
				got := caseOf(t, judge, "request/same-bytes")
				for _, want := range c.want {
					if got.Verdict != referee.Fail || !strings.Contains(got.Actual, want) {
						t.Errorf("got %s %q, want %q", got.Verdict, got.Actual, want)
					}
				}
				if strings.Contains(got.Actual, "s3cret") {
					t.Errorf("it shows values: %q", got.Actual)
				}
			})
		})
	}
}
