package conformance_test

import (
	"fmt"
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

// allVariants is every combination of raw and quoted keys, errors stored and not,
// duplicates that wait and that are refused, three statuses of a mismatch and three
// of a success. The other choices change from one to the next.
func allVariants() []choices {
	var all []choices
	for i := range 72 {
		c := choices{
			status: []int{201, 200, 204}[i%3], differs: []int{422, 400, 409}[i/3%3],
			keeps: i/9%2 == 0, wait: i/18%2 == 0, quoted: i/36 == 0,
			required: i%5 < 2, updates: i%4 != 3,
		}
		if !c.quoted {
			c.opaque = i%2 == 0 // else either spelling is taken
		}
		if !c.wait {
			c.busy = []int{409, 423, 429}[(i+i/3+i/9)%3]
		}
		all = append(all, c)
	}
	for i := range 4 {
		all = append(all, choices{status: http.StatusAccepted, quoted: i%2 == 0, keeps: i/2 == 0, updates: true})
	}
	return all
}

// The combinations are all there, each once, and every other choice is met by each.
func TestAllVariants(t *testing.T) {
	t.Parallel()
	combined, met := map[string]int{}, map[string]int{}
	for _, c := range allVariants() {
		combined[fmt.Sprint(c.quoted, c.keeps, c.wait, c.differs, c.status)]++
		met[fmt.Sprint("refused with ", c.busy, " for ", c.differs)]++
		met[fmt.Sprint("required ", c.required, " quoted ", c.quoted, " stored ", c.keeps)]++
		met[fmt.Sprint("opaque ", c.opaque, " stored ", c.keeps, " waits ", c.wait)]++
	}
	for _, quoted := range []bool{false, true} {
		for _, keeps := range []bool{false, true} {
			for _, wait := range []bool{false, true} {
				for _, differs := range []int{400, 409, 422} {
					for _, status := range []int{200, 201, 204} {
						if row := fmt.Sprint(quoted, keeps, wait, differs, status); combined[row] != 1 {
							t.Errorf("%s: got %d variants, want 1", row, combined[row])
						}
					}
				}
			}
			for _, also := range []bool{false, true} {
				for _, row := range []string{fmt.Sprint("required ", also, " quoted ", quoted, " stored ", keeps), fmt.Sprint("opaque ", also, " stored ", keeps, " waits ", quoted)} {
					if met[row] == 0 {
						t.Errorf("no variant is %s", row)
					}
				}
			}
		}
	}
	for _, busy := range []int{409, 423, 429} {
		for _, differs := range []int{400, 409, 422} {
			if row := fmt.Sprint("refused with ", busy, " for ", differs); met[row] == 0 {
				t.Errorf("no variant is %s", row)
			}
		}
	}
}

// A correct server gets no failure and no warning, whichever of the right choices
// it has made.
func TestVariants(t *testing.T) {
	t.Parallel()
	virtually(t, some(allVariants()), func(t *testing.T, i int, c choices) {
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
