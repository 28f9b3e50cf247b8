package redrive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestGenerationAfterASuccess: a program counts its tries itself. The next one was refused while the first one was in doubt. Then Run confirms the first one, or a
// person settles it, and the program calls the next one again: nothing is sent. It is sent where the program has learned since that the success was a decline.
func TestGenerationAfterASuccess(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(f *family){
		"Run": func(f *family) { time.Sleep(time.Hour); clienttest.Resume(f.t, f.Client) },
		"a person": func(f *family) {
			clienttest.Must(f.t, f.Settle(f.t.Context(), "k", oncehttp.Resolution{Effect: persist.EffectHappened}))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFamily(t, nil, lostReply, paid)
			_ = f.do(f.Client, "k")
			f.refused(f.do(f.Client, "k:gen=2"))
			ends(f)
			sends := f.wire.Count()
			for _, next := range []oncehttp.Key{"k:gen=2", "k:gen=3"} {
				f.refused(f.do(f.Client, next))
				f.refused(f.Enqueue(charge(t), next))
			}
			if f.wire.Count() != sends {
				t.Errorf("after %s: %d sends more", name, f.wire.Count()-sends)
			}
		})
	}
}

// TestGenerationAfterADecline: the profile of a client reads the recorded success of the first try as a decline. The next try is made.
func TestGenerationAfterADecline(t *testing.T) {
	t.Parallel()
	f := newFamily(t, nil, paid)
	clienttest.Must(t, f.do(f.Client, "k"))
	f.refused(f.do(f.Client, "k:gen=2"))
	reads := profile.StripeV1()
	reads.Verdicts = []profile.Verdict{
		{Pointer: "/id", Equals: []string{"ch_2"}, Proves: profile.ProvesRefused}, {Pointer: "/status", Equals: []string{"succeeded"}, Proves: profile.ProvesSucceeded},
	}
	clienttest.Must(t, f.do(f.client(func(cfg *oncehttp.Config) { cfg.Profile = reads }), "k:gen=2"))
	f.sends(2)
}
