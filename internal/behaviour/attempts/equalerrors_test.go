package attempts_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestEqualErrorsEndARun: three equal 500s of the API's own in a row end a run early, since the API may keep the error under the key. The
// operation stays pending, and the next run goes on. What a gateway answers does not count, nor do errors that differ, nor those of an API that keeps none.
func TestEqualErrorsEndARun(t *testing.T) {
	t.Parallel()
	const own = `{"error":{"type":"api_error","message":"An unknown error occurred"}}`
	same := func(r wiretest.Reply) []wiretest.Reply { return []wiretest.Reply{r, r, r, r, r, r} }
	failed := wiretest.Reply{Status: 500, Body: own}
	for name, r := range map[string]struct {
		profile string
		replies []wiretest.Reply
		sends   int
	}{
		"an API that keeps errors":           {"zuora", same(failed), 3},
		"an API that says nothing of errors": {"draft-07", same(failed), 3},
		"an API that executes them anew":     {"modern-treasury", same(failed), 6},
		"503":                                {"draft-07", same(wiretest.Reply{Status: 503, Body: own}), 6},
		"502":                                {"draft-07", same(wiretest.Reply{Status: 502, Body: own}), 6},
		"a page":                             {"draft-07", same(wiretest.Reply{Status: 500, Header: "Content-Type: text/html", Body: "<html><body>Oops</body></html>"}), 6},
		"no body":                            {"draft-07", same(wiretest.Reply{Status: 500}), 6},
		"another error each time":            {"draft-07", []wiretest.Reply{{Status: 500, Body: `{"id":1}`}, {Status: 500, Body: `{"id":2}`}, {Status: 500, Body: `{"id":3}`}, {Status: 500, Body: `{"id":4}`}, {Status: 500, Body: `{"id":5}`}, {Status: 500, Body: `{"id":6}`}}, 6},
		"something else between":             {"draft-07", []wiretest.Reply{failed, failed, {Err: wiretest.ErrLost}, failed, failed, {Status: 503, Body: own}}, 6},
		"equal ones after others":            {"draft-07", []wiretest.Reply{{Status: 503, Body: own}, {Status: 500, Body: "{}"}, failed, failed, failed, failed}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: r.replies}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					if cfg.Profile = clienttest.Named(t, r.profile); r.profile == "draft-07" {
						cfg.Profile = profile.Draft07()
					}
				})
				_, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k1")
				rec := clienttest.Lookup(t, c, "k1")
				if w.Count() != r.sends || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || rec.State != persist.StatePending {
					t.Fatalf("%d sends, want %d; %v; the record is %v", w.Count(), r.sends, err, rec.State)
				}
				if early := r.sends < 6; early != strings.Contains(err.Error(), "three equal errors (500)") {
					t.Errorf("%d sends: %v", r.sends, err)
				}
				if r.sends == 6 {
					return
				}
				w.Then(wiretest.Reply{Status: 201, Body: "{}"})
				clienttest.Do(t, c, clienttest.Post(t, `{"amount":1}`), "k1")
			})
		})
	}
}
