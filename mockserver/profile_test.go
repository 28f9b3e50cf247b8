package mockserver_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// What the profile counts to a request's identity makes it another one.
func TestProfileHeadersBelongToTheFingerprint(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{Profile: profile.StripeV1()}, func(s *mockserver.Server, cl *client) {
		version := func(v string) request { return request{Key: "k", Header: http.Header{"Stripe-Version": {v}}} }
		cl.Do(version("2026-01-01")).Want(t, 201)
		cl.Do(version("2026-01-01")).Want(t, 201)
		cl.Do(version("2026-02-02")).Want(t, 400)
		mocktest.WantCounts(t, s, "k", 3, 1)
	})
}

// "Not now" is never stored, even where the profile says so.
func TestTransientAnswersAreNeverStored(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Stored.Client = []profile.Matcher{{Status: []int{429, 503}}}
	p.Stored.ServerError = profile.Yes
	for _, query := range []string{"fail=429", "fail=503"} {
		mocktest.Bubble(t, mockserver.Config{Profile: p}, func(_ *mockserver.Server, cl *client) {
			failing := request{Key: "k", Path: "/payments?" + query}
			if first, second := cl.Do(failing), cl.Do(failing); first.Body == second.Body {
				t.Errorf("%s was given again: %s", query, second.Body)
			}
		})
	}
}

// Without a wait to announce, the header is left out.
func TestRetryAfterLeftOut(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{RetryAfter: -1}, func(_ *mockserver.Server, cl *client) {
		slow := request{Key: "k", Path: "/payments?sleep=1000"}
		go cl.Do(slow)
		synctest.Wait()
		if got := cl.Do(slow).Want(t, 409).Header.Values("Retry-After"); len(got) != 0 {
			t.Errorf("Retry-After: got %q, want none", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
	})
}

// TestWaitInTheBody: where the profile says that bodies ask for waits, the "in progress" answer has one there, and a
// client that comes back sooner breaks a rule, also where the header allows it.
func TestWaitInTheBody(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.RetryAfter = []profile.Hint{{Pointer: "/error/wait", Unit: profile.Milliseconds}}
	mocktest.Bubble(t, mockserver.Config{Profile: p, RetryAfter: 1500 * time.Millisecond}, func(s *mockserver.Server, cl *client) {
		slow := request{Key: "k", Path: "/payments?sleep=5000"}
		go cl.Do(slow)
		synctest.Wait()
		if got := mocktest.Member(t, cl.Do(slow).Want(t, 409).Body, "error", "wait"); got != 1500. {
			t.Errorf("the answer asks for %v, want 1500", got)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if rules := mocktest.Rules(s); slices.Contains(rules, mockserver.RuleRetryAfter) {
			t.Errorf("nobody came too soon: %v", rules)
		}
		hasty := mockserver.Fault{Kind: mockserver.Answer, Status: 503, Body: `{"error": {"wait": 3000}}`}
		s.Inject(hasty)
		cl.Do(request{Key: "hasty"}).Want(t, 503)
		time.Sleep(2 * time.Second)
		cl.Do(request{Key: "hasty"}).Want(t, 201)
		if rules := mocktest.Rules(s); !slices.Contains(rules, mockserver.RuleRetryAfter) {
			t.Errorf("a send 1 s too soon breaks %v", rules)
		}
	})
}

// TestDraftTitles: the answers of the key layer have the titles of the draft's
// examples (draft-ietf-httpapi-idempotency-key-header-07, section 2.7).
func TestDraftTitles(t *testing.T) {
	t.Parallel()
	mocktest.Bubble(t, mockserver.Config{}, func(_ *mockserver.Server, cl *client) {
		slow := request{Key: "k", Path: "/payments?sleep=1000"}
		go cl.Do(slow)
		synctest.Wait()
		inProgress := cl.Do(slow).Want(t, 409)
		time.Sleep(time.Second)
		synctest.Wait()
		for want, got := range map[string]string{
			"A request is outstanding for this Idempotency-Key": inProgress.Body,
			"Idempotency-Key is already used":                   cl.Post("k").Want(t, 422).Body,
		} {
			if title := mocktest.Member(t, got, "title"); title != want {
				t.Errorf("title: got %q, want %q", title, want)
			}
		}
	})
}

// A profile of one's own is spelled from its matchers alone.
func TestOwnProfile(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Mismatch = []profile.Matcher{{Status: []int{417}, Header: "X-Why", Has: []string{"reused"}}}
	p.InProgress = []profile.Matcher{{Status: []int{423}, Pointer: "/errors/0/code", Equals: []string{"busy"}}}
	p.Replay = []profile.Matcher{{Header: "X-Cache-Hit"}}
	mocktest.Bubble(t, mockserver.Config{Profile: p}, func(_ *mockserver.Server, cl *client) {
		slow := request{Key: "k", Path: "/payments?sleep=1000"}
		go cl.Do(slow)
		synctest.Wait()
		if got := cl.Do(slow).Want(t, 423); mocktest.Member(t, got.Body, "errors", "0", "code") != "busy" {
			t.Errorf("in progress: got %s", got.Body)
		}
		if got := cl.Post("k").Want(t, 417); got.Header.Get("X-Why") != "reused" {
			t.Errorf("mismatch: got %v", got.Header)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := cl.Do(slow).Want(t, 201); got.Header.Get("X-Cache-Hit") == "" {
			t.Errorf("replay: got %v", got.Header)
		}
	})
}
