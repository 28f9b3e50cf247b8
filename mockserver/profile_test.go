package mockserver_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// What the profile counts to a request's identity makes it another one.
func TestProfileHeadersBelongToTheFingerprint(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{Profile: profile.StripeV1()}, func(s *mockserver.Server, cl *client) {
		version := func(v string) request { return request{key: "k", header: http.Header{"Stripe-Version": {v}}} }
		cl.do(version("2026-01-01")).want(t, 201)
		cl.do(version("2026-01-01")).want(t, 201)
		cl.do(version("2026-02-02")).want(t, 400)
		wantCounts(t, s, "k", 3, 1)
	})
}

// "Not now" is never stored, even where the profile says so.
func TestTransientAnswersAreNeverStored(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Stored.Client = []profile.Matcher{{Status: []int{429, 503}}}
	p.Stored.ServerError = profile.Yes
	for _, query := range []string{"fail=429", "fail=503"} {
		bubble(t, mockserver.Config{Profile: p}, func(_ *mockserver.Server, cl *client) {
			failing := request{key: "k", path: "/payments?" + query}
			if first, second := cl.do(failing), cl.do(failing); first.body == second.body {
				t.Errorf("%s was given again: %s", query, second.body)
			}
		})
	}
}

// Without a wait to announce, the header is left out.
func TestRetryAfterLeftOut(t *testing.T) {
	t.Parallel()
	bubble(t, mockserver.Config{RetryAfter: -1}, func(_ *mockserver.Server, cl *client) {
		slow := request{key: "k", path: "/payments?sleep=1000"}
		go cl.do(slow)
		synctest.Wait()
		if got := cl.do(slow).want(t, 409).header.Values("Retry-After"); len(got) != 0 {
			t.Errorf("Retry-After: got %q, want none", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
	})
}

// A profile of one's own is spelled from its matchers alone.
func TestOwnProfile(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Mismatch = []profile.Matcher{{Status: []int{417}, Header: "X-Why", Has: []string{"reused"}}}
	p.InProgress = []profile.Matcher{{Status: []int{423}, Pointer: "/errors/0/code", Equals: []string{"busy"}}}
	p.Replay = []profile.Matcher{{Header: "X-Cache-Hit"}}
	bubble(t, mockserver.Config{Profile: p}, func(_ *mockserver.Server, cl *client) {
		slow := request{key: "k", path: "/payments?sleep=1000"}
		go cl.do(slow)
		synctest.Wait()
		if got := cl.do(slow).want(t, 423); member(t, got.body, "errors", "0", "code") != "busy" {
			t.Errorf("in progress: got %s", got.body)
		}
		if got := cl.post("k").want(t, 417); got.header.Get("X-Why") != "reused" {
			t.Errorf("mismatch: got %v", got.header)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := cl.do(slow).want(t, 201); got.header.Get("X-Cache-Hit") == "" {
			t.Errorf("replay: got %v", got.header)
		}
	})
}
