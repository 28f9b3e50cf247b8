package mockserver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
	"github.com/oncehttp/oncehttp/profile"
)

// ticketed is the profile of an API that hands out its keys.
func ticketed() *profile.Profile {
	p := profile.Draft07()
	p.Token = &profile.Token{Method: http.MethodPost, Path: "/shops/{/shop}/tokens?purpose={path}", Pointer: "/data/0/token"}
	return p
}

// fetch asks for a token, as a caller and for a purpose; neither, if empty.
func fetch(t *testing.T, cl *client, caller, purpose string) string {
	t.Helper()
	got := cl.Do(request{Path: "/shops/7/tokens?purpose=" + purpose, Header: as(caller)}).Want(t, 201)
	token, _ := mocktest.Member(t, got.Body, "data", "0", "token").(string)
	return token
}

func as(caller string) http.Header {
	if caller == "" {
		return nil
	}
	return http.Header{"Authorization": {caller}}
}

// TestTokens: a token is bound to its caller and its purpose, lives for its time, and has one effect; the same request
// with it is answered again, also after its time, while its key is known.
func TestTokens(t *testing.T) {
	t.Parallel()
	cfg := mockserver.Config{Profile: ticketed(), TokenLife: time.Minute, Window: time.Hour}
	mocktest.Bubble(t, cfg, func(s *mockserver.Server, cl *client) {
		one, other := fetch(t, cl, "alice", "/payments"), fetch(t, cl, "alice", "")
		if one == other || one == "" || s.Tokens() != 2 {
			t.Fatalf("tokens %q and %q", one, other)
		}
		send := func(token, caller, path string, status int, why string) {
			t.Helper()
			if got := cl.Do(request{Key: token, Path: path, Header: as(caller), Body: `{"a":1}`}); got.Status != status || !strings.Contains(got.Body, why) {
				t.Errorf("%d %s, want %d with %q", got.Status, got.Body, status, why)
			}
		}
		send("made-up", "alice", "/payments", 403, "not handed out")
		send(one, "bob", "/payments", 403, "not handed out")
		send(one, "alice", "/refunds", 403, "another purpose")
		mocktest.WantCounts(t, s, one, 2, 0)
		send(one, "alice", "/payments", 201, "")
		time.Sleep(2 * time.Minute)
		send(one, "alice", "/payments", 201, "")
		send(other, "alice", "/refunds", 403, "expired")
		mocktest.WantCounts(t, s, one, 4, 1)
		time.Sleep(time.Hour)
		send(one, "alice", "/payments", 403, "was used")
		mocktest.WantCounts(t, s, one, 5, 1)
		s.Reset()
		if s.Tokens() != 0 {
			t.Errorf("%d tokens after a reset", s.Tokens())
		}
	})
}

// TestTokenFaults: requests for tokens meet faults of their own, are no sends, and need no key.
func TestTokenFaults(t *testing.T) {
	t.Parallel()
	cfg := mockserver.Config{Profile: ticketed(), RequireKey: true, TokenScript: []mockserver.Fault{
		{Kind: mockserver.DropBefore}, {Kind: mockserver.DropAfter}, {Kind: mockserver.Answer, Status: 503, RetryAfter: "1"}, {},
	}, Script: []mockserver.Fault{{Kind: mockserver.Answer, Status: 418}}}
	mocktest.Bubble(t, cfg, func(s *mockserver.Server, cl *client) {
		ask := request{Path: "/shops/7/tokens"}
		cl.Do(ask).WantLost(t)
		if s.Tokens() != 0 {
			t.Errorf("%d tokens before the request was handled", s.Tokens())
		}
		cl.Do(ask).WantLost(t)
		if got := cl.Do(ask).Want(t, 503); got.Header.Get("Retry-After") != "1" || s.Tokens() != 1 {
			t.Errorf("%v, %d tokens", got.Header, s.Tokens())
		}
		cl.Do(ask).Want(t, 201)
		cl.Do(request{Path: "/shops/7/tokens", Method: http.MethodPut}).Want(t, 418) // a send, since it is not the method of tokens
		if got := s.Ledger().Snapshot().Sends; got != 1 || s.Tokens() != 2 {
			t.Errorf("%d sends, %d tokens", got, s.Tokens())
		}
	})
	for _, bad := range []mockserver.Config{
		{TokenLife: -1}, {TokenScript: []mockserver.Fault{{}}}, {Profile: ticketed(), TokenScript: []mockserver.Fault{{Kind: mockserver.Hang}}},
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
