package profiles_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestProblemAfterDoubt: after a lost answer a 4xx in problem+json may be that of a framework or a gateway that has not looked at the key. It settles nothing, the
// next send has the answer, and no next generation is allowed. A mark of a replay settles it, and so does a profile that declares such answers stored.
func TestProblemAfterDoubt(t *testing.T) {
	t.Parallel()
	const problem = "Content-Type: application/problem+json"
	for _, p := range []*profile.Profile{profile.Draft07(), profile.Draft07Quoted()} {
		for _, status := range []int{400, 402, 404, 410} {
			for name, r := range map[string]struct {
				header  string
				declare bool
				settles bool
			}{"bare": {problem, false, false}, "with the mark": {problem + "\nIdempotent-Replayed: true", false, true}, "declared": {problem, true, true}} {
				synctest.Test(t, func(t *testing.T) {
					p := p.Clone()
					if r.declare {
						p.Stored.Client = p.KeptErrors()
					}
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: status, Header: r.header, Body: `{"type":"about:blank"}`}, {Status: 201, Body: `{"id":"p1"}`}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
					resp, err := c.DoKey(clienttest.Post(t, `{"amount":4200}`), "order:1")
					if err != nil {
						t.Fatal(err)
					}
					if got := oncehttp.ResultOf(resp).Outcome; r.settles != (got == oncehttp.OutcomeRefused) || r.settles != (w.Count() == 2) {
						t.Errorf("%s, %d %s: %v after %d sends", p.Name, status, name, got, w.Count())
					}
				})
			}
		}
	}
}

// TestRedriveAfterProblem: what such a 404 met after a lost answer is not refused, so that an operator cannot begin it once more.
func TestRedriveAfterProblem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 404, Header: "Content-Type: application/problem+json", Body: `{"title":"Not Found"}`}}}
		c, _ := clienttest.New(t, w, nil)
		clienttest.Must(t, c.Enqueue(clienttest.Post(t, `{"amount":4200}`), "order:1"))
		clienttest.Resume(t, c)
		time.Sleep(time.Hour)
		clienttest.Resume(t, c)
		if next, err := c.Redrive(t.Context(), "order:1"); err == nil {
			t.Errorf("begun once more, as %q", next)
		}
		if rec := clienttest.Lookup(t, c, "order:1"); rec.State != persist.StatePending || !rec.MaybeSent {
			t.Errorf("record %v, maybe sent %t", rec.State, rec.MaybeSent)
		}
	})
}

// TestKeyUsedBeforeIsNoRefusal: a plain 422 or 400 that says that the key was used, perhaps by a program whose journal is lost, and with an effect, is held.
func TestKeyUsedBeforeIsNoRefusal(t *testing.T) {
	t.Parallel()
	for _, r := range []wiretest.Reply{
		{Status: 422, Body: `{"error":"Idempotency key already used with a different request body"}`},
		{Status: 400, Body: `{"error":{"type":"idempotency_error","message":"Keys for idempotent requests can only be used with the same parameters they were first used with."}}`},
		{Status: 422, Body: `{"code":"IDEMPOTENCY_KEY_REUSE"}`},
		{Status: 422, Header: "Content-Type: application/json", Body: `{"error":"key used with another request"}`},
		{Status: 422, Header: "Content-Type: application/json", Body: `{"code":"KEY_REUSED"}`},
		{Status: 400, Header: "Content-Type: application/json", Body: `{"detail":"Duplicate request"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{r}}, nil)
			_, err := c.DoKey(clienttest.Post(t, `{"amount":4200,"currency":"EUR"}`), "order:1")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeld) || clienttest.Lookup(t, c, "order:1").HoldReason != persist.HoldUnclear {
				t.Errorf("%d %s: %v, want it held as unclear", r.Status, r.Body, err)
			}
			if _, err := c.DoKey(clienttest.Post(t, `{"amount":4200,"currency":"EUR"}`), oncehttp.Key("order:1").Generation(2)); err == nil {
				t.Errorf("%d %s: a next generation is sent", r.Status, r.Body)
			}
		})
	}
}

// TestValidationIsARefusal: a 422 about the content of the request is a refusal, also where it has the word key.
func TestValidationIsARefusal(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"error":"amount is too small"}`, `{"error":"unknown key: colour"}`, `{"error":"an unused key is not allowed"}`, `{"errors":{"api_key":["is required"]}}`, `{"error":"the key field must be set"}`} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 422, Header: "Content-Type: application/json", Body: body}}}, nil)
			resp, err := c.DoKey(clienttest.Post(t, `{"amount":4200,"currency":"EUR"}`), "order:1")
			if err != nil || oncehttp.ResultOf(resp).Outcome != oncehttp.OutcomeRefused {
				t.Errorf("%s: %v, want a refusal", body, err)
			}
		})
	}
}
