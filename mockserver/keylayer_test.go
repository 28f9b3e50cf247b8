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
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// A repeat gets the whole first answer, marked, without its cookies.
func TestReplayIsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		first := cl.Post("k").Want(t, 201)
		if first.Replayed() || first.Header.Get("Set-Cookie") == "" || first.Header.Get("Location") == "" {
			t.Errorf("first answer: %v", first.Header)
		}
		second := cl.Post("k").Want(t, 201)
		if second.Body != first.Body || !second.Replayed() || second.Header.Get("Set-Cookie") != "" {
			t.Errorf("got %q, %v, want %q, marked and without a cookie", second.Body, second.Header, first.Body)
		}
		for _, name := range []string{"Location", "Content-Type", "Content-Length"} {
			if got, want := second.Header.Get(name), first.Header.Get(name); got != want || got == "" {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		mocktest.WantCounts(t, s, "k", 2, 1)
	})
}

// Everything that a key names differs once; nothing of it is executed.
func TestMismatchIsRefused(t *testing.T) {
	t.Parallel()
	first := request{Key: "k", Body: `{"reference":"r1","secret":"s3cret"}`, Header: http.Header{"Content-Type": {"application/json"}}}
	for name, other := range map[string]request{
		"body":         {Key: "k", Body: `{"reference":"r1","secret":"x"}`, Header: first.Header},
		"path":         {Key: "k", Body: first.Body, Path: "/refunds", Header: first.Header},
		"query":        {Key: "k", Body: first.Body, Path: "/payments?a=1", Header: first.Header},
		"method":       {Key: "k", Body: first.Body, Method: http.MethodPatch, Header: first.Header},
		"content type": {Key: "k", Body: first.Body, Header: http.Header{"Content-Type": {"application/vnd.x+json"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mocktest.Bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
				cl.Do(first).Want(t, 201)
				got := cl.Do(other).Want(t, 422)
				if kind := got.Header.Get("Content-Type"); kind != "application/problem+json" {
					t.Errorf("Content-Type: got %q", kind)
				}
				if link := got.Header.Get("Link"); !strings.Contains(link, `rel="describedby"`) {
					t.Errorf("Link: got %q", link)
				}
				if strings.Contains(got.Body, "s3cret") || strings.Contains(got.Body, "r1") {
					t.Errorf("the refusal tells what the first request held: %s", got.Body)
				}
				if !cl.Do(first).Want(t, 201).Replayed() {
					t.Error("the first answer did not survive")
				}
				mocktest.WantCounts(t, s, "k", 3, 1)
			})
		})
	}
}

// While the first request is handled, the same one is told to wait, and another
// one that it is another.
func TestInFlight(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{RetryAfter: 1500 * time.Millisecond}, func(s *mockserver.Server, cl *client) {
		slow := request{Key: "k", Path: "/payments?sleep=5000"}
		done := make(chan reply, 1)
		go func() { done <- cl.Do(slow) }()
		synctest.Wait()
		if got := cl.Do(slow).Want(t, 409).Header.Get("Retry-After"); got != "2" {
			t.Errorf("Retry-After: got %q, want whole seconds, rounded up", got)
		}
		cl.Do(request{Key: "k", Path: "/payments?sleep=5000", Body: `{"other":1}`}).Want(t, 422)
		first := (<-done).Want(t, 201)
		if got := cl.Do(slow).Want(t, 201); got.Body != first.Body || !got.Replayed() {
			t.Errorf("after the first: got %q, want %q, marked", got.Body, first.Body)
		}
		mocktest.WantCounts(t, s, "k", 4, 1)
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
	cl := mocktest.NewClient(t, &http.Transport{MaxIdleConnsPerHost: 64}, server.URL())
	defer cl.HTTP.CloseIdleConnections()
	for round := range 20 {
		key := fmt.Sprintf("burst-%d", round)
		var all sync.WaitGroup
		gate := make(chan struct{})
		for range 16 {
			all.Go(func() {
				<-gate
				if got := cl.Post(key); got.Err != nil || got.Status != 201 && got.Status != 409 {
					t.Errorf("got %d, %v", got.Status, got.Err)
				}
			})
		}
		close(gate)
		all.Wait()
		mocktest.WantCounts(t, server, key, 16, 1)
	}
}

func TestPrincipalsDoNotShareKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile *profile.Profile
		header  string
	}{{nil, "Authorization"}, {profile.StripeV1(), "Stripe-Account"}} {
		mocktest.Bubble(t, mockserver.Config{Profile: c.profile}, func(s *mockserver.Server, cl *client) {
			a := cl.Do(request{Key: "k", Header: http.Header{c.header: {"a"}}}).Want(t, 201)
			b := cl.Do(request{Key: "k", Header: http.Header{c.header: {"b"}}}).Want(t, 201)
			if a.Body == b.Body || b.Replayed() {
				t.Errorf("%s: a stranger's answer was given: %s", c.header, b.Body)
			}
			mocktest.WantCounts(t, s, "k", 2, 2)
		})
	}
}

func TestKeyless(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		a, b := cl.Post("").Want(t, 201), cl.Post("").Want(t, 201)
		if a.Body == b.Body || s.Ledger().Snapshot().Effects != 2 {
			t.Error("two requests without a key were merged")
		}
	})
	mocktest.Bubble(t, mockserver.Config{RequireKey: true}, func(s *mockserver.Server, cl *client) {
		got := cl.Post("").Want(t, 400)
		if title := mocktest.Member(t, got.Body, "title"); title != "Idempotency-Key is missing" {
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
	mocktest.Bubble(t, mockserver.Config{Profile: profile.StripeV1()}, func(s *mockserver.Server, cl *client) {
		made := cl.Post("k").Want(t, 201)
		path := made.Header.Get("Location")
		cl.Do(request{Method: http.MethodPatch, Path: path, Key: "k", Body: "amount=7"}).Want(t, 200)
		got := cl.Do(request{Method: http.MethodGet, Path: path, Key: "k"}).Want(t, 200)
		if amount := mocktest.Member(t, got.Body, "amount"); amount != "7" {
			t.Errorf("amount: got %v, want 7", amount)
		}
		cl.Do(request{Method: http.MethodDelete, Path: path, Key: "k"}).Want(t, 204)
		cl.Do(request{Method: http.MethodGet, Path: path}).Want(t, 404)
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
			mocktest.Bubble(t, mockserver.Config{Profile: c.profile}, func(s *mockserver.Server, cl *client) {
				failing := request{Key: "k", Path: "/payments?" + c.query}
				first := cl.Do(failing).Want(t, c.status)
				second := cl.Do(failing).Want(t, c.status)
				if second.Replayed() != c.stored || c.query != "crash=1" && (second.Body == first.Body) != c.stored {
					t.Errorf("got %q after %q, replayed %v, want it stored: %v", second.Body, first.Body, second.Replayed(), c.stored)
				}
				if advice := second.Header.Get("Stripe-Should-Retry"); (advice == "false") != (c.stored && c.status == 500) {
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
		mocktest.Bubble(t, mockserver.Config{Handler: handler}, func(s *mockserver.Server, cl *client) {
			if got := cl.Post("k"); got.Status == 202 {
				t.Errorf("%v: got %d", crash, got.Status)
			}
			cl.Post("k").Want(t, 202)
			mocktest.WantCounts(t, s, "k", 2, 1)
		})
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Window: time.Hour}, func(s *mockserver.Server, cl *client) {
		cl.Post("k").Want(t, 201)
		time.Sleep(time.Hour - time.Nanosecond)
		if !cl.Post("k").Replayed() {
			t.Error("inside the window the key was forgotten")
		}
		time.Sleep(time.Nanosecond)
		if cl.Post("k").Replayed() {
			t.Error("the key outlived its window")
		}
		mocktest.WantCounts(t, s, "k", 3, 2)
		s.Expire()
		cl.Post("k").Want(t, 201)
		mocktest.WantCounts(t, s, "k", 4, 3)
	})
	mocktest.Bubble(t, mockserver.Config{}, func(_ *mockserver.Server, cl *client) {
		cl.Post("k").Want(t, 201)
		time.Sleep(24*time.Hour - 1)
		if !cl.Post("k").Replayed() {
			t.Error("the profile's window was cut short")
		}
	})
}

func TestDialects(t *testing.T) {
	t.Parallel()
	slow := request{Key: "k", Path: "/payments?sleep=1000"}
	other := request{Key: "k", Path: "/payments?sleep=1000", Body: `{"x":1}`}
	t.Run("Stripe", func(t *testing.T) {
		t.Parallel()
		mocktest.Bubble(t, mockserver.Config{Profile: profile.StripeV1()}, func(_ *mockserver.Server, cl *client) {
			go cl.Do(slow)
			synctest.Wait()
			got := cl.Do(slow).Want(t, 409)
			if code := mocktest.Member(t, got.Body, "error", "code"); code != "idempotency_key_in_use" {
				t.Errorf("in progress: got %s", got.Body)
			}
			got = cl.Do(other).Want(t, 400)
			if kind := mocktest.Member(t, got.Body, "error", "type"); kind != "idempotency_error" {
				t.Errorf("mismatch: got %s", got.Body)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		})
	})
	t.Run("GoCardless", func(t *testing.T) {
		t.Parallel()
		mocktest.Bubble(t, mockserver.Config{Profile: profile.GoCardless()}, func(s *mockserver.Server, cl *client) {
			go cl.Do(slow)
			synctest.Wait()
			got := cl.Do(slow).Want(t, 409)
			if strings.Contains(got.Body, "idempotent_creation_conflict") {
				t.Errorf("in progress is not done: got %s", got.Body)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			got = cl.Do(slow).Want(t, 409)
			if reason := mocktest.Member(t, got.Body, "error", "errors", "0", "reason"); reason != "idempotent_creation_conflict" {
				t.Errorf("already done: got %s", got.Body)
			}
			id, _ := mocktest.Member(t, got.Body, "error", "errors", "0", "links", "conflicting_resource_id").(string)
			cl.Do(request{Method: http.MethodGet, Path: "/payments/" + id}).Want(t, 200)
			mocktest.WantCounts(t, s, "k", 3, 1)
		})
	})
}

// An upload that ends too soon claims no key, counts as no send, has no effect.
func TestTruncatedUploadClaimsNothing(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
		ctx, cancel := context.WithCancel(context.Background())
		body := &mocktest.StopReader{Text: `{"reference":`, Stop: cancel}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, cl.URL+"/payments", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 40
		req.Header.Set("Idempotency-Key", "k")
		if response, err := cl.HTTP.Do(req); err == nil {
			response.Body.Close()
			t.Fatal("got an answer to half a request")
		}
		synctest.Wait()
		mocktest.WantCounts(t, s, "k", 0, 0)
		if cl.Post("k").Want(t, 201).Replayed() {
			t.Error("half a request claimed the key")
		}
	})
}

func TestRequestBytesBound(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{MaxRequestBytes: 20}, func(s *mockserver.Server, cl *client) {
		cl.Do(request{Key: "a", Body: `{"a":"` + strings.Repeat("x", 12) + `"}`}).Want(t, 201)
		cl.Do(request{Key: "b", Body: `{"a":"` + strings.Repeat("x", 13) + `"}`}).Want(t, 413)
		mocktest.WantCounts(t, s, "b", 0, 0)
	})
}

func TestService(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{}, func(s *mockserver.Server, cl *client) {
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
			cl.Do(request{Body: c.body, Header: header}).Want(t, c.want)
		}
		path := cl.Post("").Want(t, 201).Header.Get("Location")
		req, err := http.NewRequest(http.MethodPost, cl.URL+path+"/cancel", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := cl.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		got := cl.Do(request{Method: http.MethodGet, Path: path}).Want(t, 200)
		if response.StatusCode != 200 || mocktest.Member(t, got.Body, "status") != "cancel" {
			t.Errorf("got %d and %s", response.StatusCode, got.Body)
		}
		for _, query := range []string{"sleep=x", "sleep=-1", "sleep=600001", "fail=200", "fail=x"} {
			cl.Do(request{Path: "/payments?" + query}).Want(t, 400)
		}
		cl.Do(request{Method: http.MethodOptions}).Want(t, 204)
		cl.Do(request{Method: http.MethodHead, Path: path}).Want(t, 200)
	})
}
