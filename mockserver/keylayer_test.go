package mockserver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// A repeat gets the whole first answer, marked, without its cookies.
func TestReplayIsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		first := cl.post("k").want(t, 201)
		if first.replayed() || first.header.Get("Set-Cookie") == "" || first.header.Get("Location") == "" {
			t.Errorf("first answer: %v", first.header)
		}
		second := cl.post("k").want(t, 201)
		if second.body != first.body || !second.replayed() || second.header.Get("Set-Cookie") != "" {
			t.Errorf("got %q, %v, want %q, marked and without a cookie", second.body, second.header, first.body)
		}
		for _, name := range []string{"Location", "Content-Type", "Content-Length"} {
			if got, want := second.header.Get(name), first.header.Get(name); got != want || got == "" {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		wantCounts(t, s, "k", 2, 1)
	})
}

// Everything that a key names differs once; nothing of it is executed.
func TestMismatchIsRefused(t *testing.T) {
	t.Parallel()
	first := request{key: "k", body: `{"reference":"r1","secret":"s3cret"}`, header: http.Header{"Content-Type": {"application/json"}}}
	for name, other := range map[string]request{
		"body":         {key: "k", body: `{"reference":"r1","secret":"x"}`, header: first.header},
		"path":         {key: "k", body: first.body, path: "/refunds", header: first.header},
		"query":        {key: "k", body: first.body, path: "/payments?a=1", header: first.header},
		"method":       {key: "k", body: first.body, method: http.MethodPatch, header: first.header},
		"content type": {key: "k", body: first.body, header: http.Header{"Content-Type": {"application/vnd.x+json"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
				cl.do(first).want(t, 201)
				got := cl.do(other).want(t, 422)
				if kind := got.header.Get("Content-Type"); kind != "application/problem+json" {
					t.Errorf("Content-Type: got %q", kind)
				}
				if link := got.header.Get("Link"); !strings.Contains(link, `rel="describedby"`) {
					t.Errorf("Link: got %q", link)
				}
				if strings.Contains(got.body, "s3cret") || strings.Contains(got.body, "r1") {
					t.Errorf("the refusal tells what the first request held: %s", got.body)
				}
				if !cl.do(first).want(t, 201).replayed() {
					t.Error("the first answer did not survive")
				}
				wantCounts(t, s, "k", 3, 1)
			})
		})
	}
}

// While the first request is handled, the same one is told to wait, and another
// one that it is another.
func TestInFlight(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{RetryAfter: 1500 * time.Millisecond}, func(s *mockserver.Server, cl *client) {
		slow := request{key: "k", path: "/payments?sleep=5000"}
		done := make(chan reply, 1)
		go func() { done <- cl.do(slow) }()
		synctest.Wait()
		if got := cl.do(slow).want(t, 409).header.Get("Retry-After"); got != "2" {
			t.Errorf("Retry-After: got %q, want whole seconds, rounded up", got)
		}
		cl.do(request{key: "k", path: "/payments?sleep=5000", body: `{"other":1}`}).want(t, 422)
		first := (<-done).want(t, 201)
		if got := cl.do(slow).want(t, 201); got.body != first.body || !got.replayed() {
			t.Errorf("after the first: got %q, want %q, marked", got.body, first.body)
		}
		wantCounts(t, s, "k", 4, 1)
	})
}

// Of many at one instant one executes, with keys and under -race.
func TestBurstHasOneEffect(t *testing.T) {
	t.Parallel()
	server := mockserver.New(mockserver.Config{})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	cl := newClient(t, &http.Transport{MaxIdleConnsPerHost: 64}, server.URL())
	defer cl.http.CloseIdleConnections()
	for round := range 20 {
		key := fmt.Sprintf("burst-%d", round)
		var all sync.WaitGroup
		gate := make(chan struct{})
		for range 16 {
			all.Go(func() {
				<-gate
				if got := cl.post(key); got.err != nil || got.status != 201 && got.status != 409 {
					t.Errorf("got %d, %v", got.status, got.err)
				}
			})
		}
		close(gate)
		all.Wait()
		wantCounts(t, server, key, 16, 1)
	}
}

func TestPrincipalsDoNotShareKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile *profile.Profile
		header  string
	}{{nil, "Authorization"}, {profile.StripeV1(), "Stripe-Account"}} {
		bubble(t, mockserver.Config{Profile: c.profile}, func(s *mockserver.Server, cl *client) {
			a := cl.do(request{key: "k", header: http.Header{c.header: {"a"}}}).want(t, 201)
			b := cl.do(request{key: "k", header: http.Header{c.header: {"b"}}}).want(t, 201)
			if a.body == b.body || b.replayed() {
				t.Errorf("%s: a stranger's answer was given: %s", c.header, b.body)
			}
			wantCounts(t, s, "k", 2, 2)
		})
	}
}

func TestKeyless(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		a, b := cl.post("").want(t, 201), cl.post("").want(t, 201)
		if a.body == b.body || s.Ledger().Snapshot().Effects != 2 {
			t.Error("two requests without a key were merged")
		}
	})
	bubble(t, mockserver.Config{RequireKey: true}, func(s *mockserver.Server, cl *client) {
		got := cl.post("").want(t, 400)
		if title := member(t, got.body, "title"); title != "Idempotency-Key is missing" {
			t.Errorf("title: got %v", title)
		}
		if effects := s.Ledger().Snapshot().Effects; effects != 0 {
			t.Errorf("got %d effects, want 0", effects)
		}
	})
}

// Methods that the profile does not list ignore the key.
func TestOtherMethodsIgnoreTheKey(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{Profile: profile.StripeV1()}, func(s *mockserver.Server, cl *client) {
		made := cl.post("k").want(t, 201)
		path := made.header.Get("Location")
		cl.do(request{method: http.MethodPatch, path: path, key: "k", body: `{"amount":7}`}).want(t, 200)
		got := cl.do(request{method: http.MethodGet, path: path, key: "k"}).want(t, 200)
		if amount := member(t, got.body, "amount"); amount != 7.0 {
			t.Errorf("amount: got %v, want 7", amount)
		}
		cl.do(request{method: http.MethodDelete, path: path, key: "k"}).want(t, 204)
		cl.do(request{method: http.MethodGet, path: path}).want(t, 404)
	})
}

// Handlers that fail release the key; those that answer decide by the profile.
func TestOutcomesByProfile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		profile *profile.Profile
		query   string
		status  int
		stored  bool
	}{
		{"draft 402", nil, "fail=402", 402, true},
		{"draft 422", nil, "fail=422", 422, true},
		{"draft 401", nil, "fail=401", 401, false},
		{"draft 429", nil, "fail=429", 429, false},
		{"draft 500", nil, "fail=500", 500, false},
		{"draft 503", nil, "fail=503", 503, false},
		{"draft crash", nil, "crash=1", 500, false},
		{"Stripe 402", profile.StripeV1(), "fail=402", 402, true},
		{"Stripe 400", profile.StripeV1(), "fail=400", 400, false},
		{"Stripe 429", profile.StripeV1(), "fail=429", 429, false},
		{"Stripe 500", profile.StripeV1(), "fail=500", 500, true},
		{"Stripe 503", profile.StripeV1(), "fail=503", 503, false},
		{"GoCardless 500", profile.GoCardless(), "fail=500", 500, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, mockserver.Config{Profile: c.profile}, func(s *mockserver.Server, cl *client) {
				failing := request{key: "k", path: "/payments?" + c.query}
				first := cl.do(failing).want(t, c.status)
				second := cl.do(failing).want(t, c.status)
				if second.replayed() != c.stored || c.query != "crash=1" && (second.body == first.body) != c.stored {
					t.Errorf("got %q after %q, replayed %v, want it stored: %v", second.body, first.body, second.replayed(), c.stored)
				}
				if advice := second.header.Get("Stripe-Should-Retry"); (advice == "false") != (c.stored && c.status == 500) {
					t.Errorf("Stripe-Should-Retry: got %q", advice)
				}
				if effects := s.Ledger().Effects("k"); effects != 0 {
					t.Errorf("got %d effects of a failure", effects)
				}
			})
		})
	}
}

// A handler that aborts the connection, or panics, leaves no lock behind.
func TestHandlerThatFailsReleasesTheKey(t *testing.T) {
	t.Parallel()
	for _, crash := range []any{"boom", http.ErrAbortHandler} {
		runs := 0
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if runs++; runs == 1 {
				panic(crash)
			}
			w.WriteHeader(http.StatusAccepted)
		})
		bubble(t, mockserver.Config{Handler: handler}, func(s *mockserver.Server, cl *client) {
			if got := cl.post("k"); got.status == 202 {
				t.Errorf("%v: got %d", crash, got.status)
			}
			cl.post("k").want(t, 202)
			wantCounts(t, s, "k", 2, 1)
		})
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{Window: time.Hour}, func(s *mockserver.Server, cl *client) {
		cl.post("k").want(t, 201)
		time.Sleep(time.Hour - time.Nanosecond)
		if !cl.post("k").replayed() {
			t.Error("inside the window the key was forgotten")
		}
		time.Sleep(time.Nanosecond)
		if cl.post("k").replayed() {
			t.Error("the key outlived its window")
		}
		wantCounts(t, s, "k", 3, 2)
		s.Expire()
		cl.post("k").want(t, 201)
		wantCounts(t, s, "k", 4, 3)
	})
	bubble(t, mockserver.Config{}, func(_ *mockserver.Server, cl *client) {
		cl.post("k").want(t, 201)
		time.Sleep(24*time.Hour - 1)
		if !cl.post("k").replayed() {
			t.Error("the profile's window was cut short")
		}
	})
}

func TestDialects(t *testing.T) {
	t.Parallel()
	slow := request{key: "k", path: "/payments?sleep=1000"}
	other := request{key: "k", path: "/payments?sleep=1000", body: `{"x":1}`}
	t.Run("Stripe", func(t *testing.T) {
		t.Parallel()
		bubble(t, mockserver.Config{Profile: profile.StripeV1()}, func(_ *mockserver.Server, cl *client) {
			go cl.do(slow)
			synctest.Wait()
			got := cl.do(slow).want(t, 409)
			if code := member(t, got.body, "error", "code"); code != "idempotency_key_in_use" {
				t.Errorf("in progress: got %s", got.body)
			}
			got = cl.do(other).want(t, 400)
			if kind := member(t, got.body, "error", "type"); kind != "idempotency_error" {
				t.Errorf("mismatch: got %s", got.body)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		})
	})
	t.Run("GoCardless", func(t *testing.T) {
		t.Parallel()
		bubble(t, mockserver.Config{Profile: profile.GoCardless()}, func(s *mockserver.Server, cl *client) {
			go cl.do(slow)
			synctest.Wait()
			got := cl.do(slow).want(t, 409)
			if strings.Contains(got.body, "idempotent_creation_conflict") {
				t.Errorf("in progress is not done: got %s", got.body)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			got = cl.do(slow).want(t, 409)
			if reason := member(t, got.body, "error", "errors", "0", "reason"); reason != "idempotent_creation_conflict" {
				t.Errorf("already done: got %s", got.body)
			}
			id, _ := member(t, got.body, "error", "errors", "0", "links", "conflicting_resource_id").(string)
			cl.do(request{method: http.MethodGet, path: "/payments/" + id}).want(t, 200)
			wantCounts(t, s, "k", 3, 1)
		})
	})
}

// An upload that ends too soon claims no key, counts as no send, has no effect.
func TestTruncatedUploadClaimsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		ctx, cancel := context.WithCancel(context.Background())
		body := &stopReader{text: `{"reference":`, stop: cancel}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, cl.url+"/payments", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 40
		req.Header.Set("Idempotency-Key", "k")
		if response, err := cl.http.Do(req); err == nil {
			response.Body.Close()
			t.Fatal("got an answer to half a request")
		}
		synctest.Wait()
		wantCounts(t, s, "k", 0, 0)
		if cl.post("k").want(t, 201).replayed() {
			t.Error("half a request claimed the key")
		}
	})
}

// stopReader gives its text, then ends the request and blocks no longer.
type stopReader struct {
	text string
	stop func()
}

func (r *stopReader) Read(p []byte) (int, error) {
	if r.text == "" {
		r.stop()
		return 0, context.Canceled
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

func TestRequestBytesBound(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{MaxRequestBytes: 20}, func(s *mockserver.Server, cl *client) {
		cl.do(request{key: "a", body: `{"a":"` + strings.Repeat("x", 12) + `"}`}).want(t, 201)
		cl.do(request{key: "b", body: `{"a":"` + strings.Repeat("x", 13) + `"}`}).want(t, 413)
		wantCounts(t, s, "b", 0, 0)
	})
}

func TestService(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		for _, c := range []struct {
			body, kind string
			want       int
		}{
			{`{}`, "application/json", 201}, {`[]`, "application/json", 400}, {`null`, "", 400}, {`{"a":`, "", 400},
			{`a=1&b=2`, "application/x-www-form-urlencoded", 201}, {"\x00\xff", "application/octet-stream", 201},
		} {
			header := http.Header{}
			if c.kind != "" {
				header.Set("Content-Type", c.kind)
			}
			cl.do(request{body: c.body, header: header}).want(t, c.want)
		}
		path := cl.post("").want(t, 201).header.Get("Location")
		req, err := http.NewRequest(http.MethodPost, cl.url+path+"/cancel", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := cl.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		got := cl.do(request{method: http.MethodGet, path: path}).want(t, 200)
		if response.StatusCode != 200 || member(t, got.body, "status") != "cancel" {
			t.Errorf("got %d and %s", response.StatusCode, got.body)
		}
		for _, query := range []string{"sleep=x", "sleep=-1", "sleep=600001", "fail=200", "fail=x"} {
			cl.do(request{path: "/payments?" + query}).want(t, 400)
		}
		cl.do(request{method: http.MethodOptions}).want(t, 204)
		cl.do(request{method: http.MethodHead, path: path}).want(t, 200)
	})
}
