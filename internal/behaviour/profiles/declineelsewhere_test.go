package profiles_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/profile"
)

// TestVerdictOfAnotherEndpoint: a verdict of a profile for another endpoint makes no decline of a recorded success, so that no next generation begins after it. That of the
// endpoint itself does. (Invariants 47 and 54.)
func TestVerdictOfAnotherEndpoint(t *testing.T) {
	t.Parallel()
	for path, begins := range map[string]bool{"/refunds": false, "/payments": true} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: `{"status":"failed"}`}, {Status: 201, Body: `{"status":"paid"}`}}}
			before, now := profile.Draft07(), profile.Draft07()
			at := []profile.Endpoint{{Method: "POST", Path: "/payments"}}
			now.Verdicts = []profile.Verdict{
				{At: at, Pointer: "/status", Equals: []string{"failed"}, Proves: profile.ProvesRefused}, {At: at, Pointer: "/status", Equals: []string{"paid"}, Proves: profile.ProvesSucceeded},
			}
			first, j := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = before })
			clienttest.Do(t, first, clienttest.Request(t, "POST", "https://api.example.com"+path, "{}"), "k")
			second, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile = now }))
			_, err := second.DoKey(clienttest.Request(t, "POST", "https://api.example.com"+path, "{}"), oncehttp.Key("k").Generation(2))
			if begins != (err == nil) || !begins && !errors.Is(err, oncehttp.ErrKeyReused) || begins != (w.Count() == 2) {
				t.Errorf("%s: %v after %d sends", path, err, w.Count())
			}
		})
	}
}
