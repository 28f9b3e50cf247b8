package profiles_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestAlreadyDoneAtTheFirstSend: nothing was sent before, so that another request has used the key. The operation is held, unless the resource repeats its values.
func TestAlreadyDoneAtTheFirstSend(t *testing.T) {
	t.Parallel()
	done := wiretest.Reply{Status: 409, Header: "Content-Type: application/json", Body: wiretest.AlreadyDone}
	for name, r := range map[string]struct {
		found wiretest.Reply
		held  bool
	}{
		"the same values":    {wiretest.Reply{Status: 200, Body: `{"payments":{"id":"PM1","amount":4200,"currency":"GBP","links":{"mandate":"MD1"}}}`}, false},
		"another amount":     {wiretest.Reply{Status: 200, Body: `{"payments":{"id":"PM1","amount":100,"currency":"GBP","links":{"mandate":"MD1"}}}`}, true},
		"another mandate":    {wiretest.Reply{Status: 200, Body: `{"payments":{"id":"PM1","amount":4200,"currency":"GBP","links":{"mandate":"MD2"}}}`}, true},
		"no values":          {wiretest.Reply{Status: 200, Body: `{"payments":{"id":"PM1"}}`}, true},
		"the lookup fails":   {wiretest.Reply{Status: 404}, true},
		"no JSON to compare": {wiretest.Reply{Status: 200, Body: `PM1`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{done, r.found, r.found}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.GoCardless() })
				resp, err := c.DoKey(clienttest.Post(t, `{"payments":{"amount":4200,"currency":"GBP","links":{"mandate":"MD1"}}}`), "k")
				if err == nil {
					clienttest.Read(t, resp)
				}
				rec := clienttest.Lookup(t, c, "k")
				switch {
				case r.held && (!errors.Is(err, oncehttp.ErrDuplicate) || rec.State != persist.StateHeld || rec.HoldReason != persist.HoldDuplicate || rec.Answer.Status != 409):
					t.Errorf("%v, %v (%s)", err, rec.State, rec.HoldReason)
				case !r.held && (err != nil || rec.FinalEffect() != persist.EffectHappened):
					t.Errorf("%v, %v", err, rec.State)
				}
			})
		})
	}
}

// declining is a profile of an API that tells the outcome in its 2xx, takes a reference once, and names the resource of a repeat.
func declining() *profile.Profile {
	p := profile.Draft07()
	p.Name, p.InProgress = "declining", nil
	p.Duplicate = []profile.Matcher{{Status: []int{409}, Pointer: "/code", Equals: []string{"duplicate"}}}
	p.Reference = &profile.Reference{Path: "/payments?ref={/ref}", List: "/data", Same: []profile.Same{{Request: "/ref", Resource: "/ref"}, {Request: "/amount", Resource: "/amount"}}}
	p.AlreadyDone = []profile.Matcher{{Status: []int{409}, Pointer: "/code", Equals: []string{"exists"}}}
	p.Lookup = &profile.Lookup{Pointer: "/id", Path: "{path}/{id}"}
	p.Verdicts = []profile.Verdict{
		{Pointer: "/status", Equals: []string{"paid"}, Proves: profile.ProvesSucceeded}, {Pointer: "/status", Equals: []string{"declined"}, Proves: profile.ProvesRefused},
	}
	return p
}

// TestVerdictsReadWhatALookupFinds: the answer was lost, and a lookup finds the resource. It is read as the answer would have been: a declined payment is none.
func TestVerdictsReadWhatALookupFinds(t *testing.T) {
	t.Parallel()
	for status, effect := range map[string]persist.Effect{"paid": persist.EffectHappened, "declined": persist.EffectRefused, "processing": persist.EffectUnknown} {
		one := `{"id":"p1","ref":"o1","amount":4200,"status":"` + status + `"}`
		for by, replies := range map[string][]wiretest.Reply{
			"duplicate":    {{Err: wiretest.ErrLost}, {Status: 409, Body: `{"code":"duplicate"}`}, {Status: 200, Body: `{"data":[` + one + `]}`}},
			"ask first":    {{Err: wiretest.ErrLost}, {Status: 200, Body: `{"data":[` + one + `]}`}},
			"already done": {{Err: wiretest.ErrLost}, {Status: 409, Body: `{"code":"exists","id":"p1"}`}, {Status: 200, Body: one}},
		} {
			t.Run(by+" "+status, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: replies}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.Profile, cfg.Retry.AskFirst, cfg.Retry.MaxAttempts = declining(), by == "ask first", 2
					})
					resp, err := c.DoKey(clienttest.Post(t, `{"ref":"o1","amount":4200}`), "k")
					if err == nil {
						clienttest.Read(t, resp)
					}
					if rec := clienttest.Lookup(t, c, "k"); rec.FinalEffect() != effect {
						t.Errorf("%v, %v (%s), want %v", rec.FinalEffect(), err, rec.HoldReason, effect)
					}
				})
			})
		}
	}
}
