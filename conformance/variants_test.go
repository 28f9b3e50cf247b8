package conformance_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/profile"
)

// sampleOptions are for a sample at that URL, with bounds that suit a test.
func sampleOptions(url string) conformance.Options {
	return conformance.Options{
		URL: url + "/payments", Profile: releasing(), SecondPath: "/refunds",
		Header:     http.Header{"Authorization": {"Bearer alice-alice"}},
		As:         http.Header{"Authorization": {"Bearer bob-bob-bob"}},
		Witness:    url + "/_effects?ref={ref}#/count",
		DelayQuery: "sleep={ms}", FailQuery: "fail={status}", CrashQuery: "crash=1",
		Hold: 120 * time.Millisecond, Settle: 600 * time.Millisecond, AnswerTimeout: 2 * time.Second,
		EffectWait: 50 * time.Millisecond, Rounds: 2, Seed: 7, Parallel: 16,
	}
}

// declare is the profile by which a server with these choices describes itself.
func (c choices) declare() *profile.Profile {
	p := releasing()
	p.Name = "draft-07-variant"
	code := func(status int, code string) []profile.Matcher {
		return []profile.Matcher{{Status: []int{status}, Pointer: "/code", Equals: []string{code}}}
	}
	if c.quoted {
		p.Encoding = profile.SFString
	}
	p.Mismatch = code(or(c.differs, http.StatusUnprocessableEntity), "mismatch")
	p.InProgress = code(or(c.busy, http.StatusConflict), "busy")
	p.Stored.Client = nil
	if c.keeps {
		p.Stored.ServerError = profile.Yes
		p.Stored.Client = code(http.StatusPaymentRequired, "failed")
	}
	return p
}

// allVariants pairs every choice with every other one at least once.
func allVariants() []choices {
	var all []choices
	for i := range 36 {
		c := choices{
			status:  []int{201, 200, 204, 202}[i%4],
			differs: []int{422, 400, 409}[(i+i/4)%3],
			busy:    []int{409, 423, 429}[(i+i/12)%3],
			keeps:   (i+i/12)%2 == 0, required: i%3 == 0, updates: i%4 != 3,
		}
		switch (i / 4) % 3 {
		case 0:
			c.opaque = true
		case 1:
			c.quoted = true
		}
		if (i/12)%3 == 2 {
			c.wait, c.busy = true, 0
		}
		all = append(all, c)
	}
	return all
}

// A correct server gets no failure and no warning, whichever of the right choices
// it has made.
func TestVariants(t *testing.T) {
	t.Parallel()
	beside(some(allVariants()), func(i int, c choices) {
		_, url := newSample(t, c, quirk{})
		o := sampleOptions(url)
		o.Profile = c.declare()
		rep := run(t, o)
		if rep.Summary.Fail+rep.Summary.Warn+rep.Summary.Error > 0 || rep.Summary.Pass < 45 {
			t.Errorf("%+v: got %v and %d passes, want no failure and no warning\n%s", c, wrong(rep), rep.Summary.Pass, text(rep))
		}
		if i%3 != 0 {
			return
		}
		// Without a witness there is nothing to be said against it either.
		o.Witness, o.Quick = "", true
		if rep := run(t, o); rep.Summary.Fail+rep.Summary.Warn+rep.Summary.Error > 0 {
			t.Errorf("%+v without a witness: got %v, want no failure and no warning\n%s", c, wrong(rep), text(rep))
		}
	})
}
