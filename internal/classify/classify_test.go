package classify_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/profile"
)

// answer is a whole JSON answer whose Location, if any, stays at its origin.
func answer(status int, body string, header ...string) classify.Answer {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return classify.Answer{Status: status, Header: h, Body: []byte(body), Whole: true, SameOrigin: true}
}

// facts are those of an operation that its key protects.
func facts(inDoubt bool) classify.Facts { return classify.Facts{InDoubt: inDoubt, Protected: true} }

// TestVerdicts: what each answer proves, for an operation of which nothing is in doubt, and for one in doubt.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	const (
		unknown, refused             = classify.KindUnknown, classify.KindRefused
		inFlight, final, mismatch    = classify.KindInFlight, classify.KindFinal, classify.KindMismatch
		storedError, redirected      = classify.ReasonStoredError, classify.ReasonRedirected
		replayed, problem, stripeSay = "Idempotent-Replayed", "application/problem+json", "Stripe-Should-Retry"
	)
	type v = classify.Verdict
	draft, stripe, gocardless := profile.Draft07(), profile.StripeV1(), profile.GoCardless()
	storing := profile.Draft07()
	storing.Stored.Client = storing.KeptErrors()
	seeOther := profile.Draft07()
	seeOther.Own.SeeOther = profile.Yes
	again, done := v{Kind: unknown, Again: true}, v{Kind: final, Stored: true}
	held := func(kind classify.Kind, why classify.Reason) v { return v{Kind: kind, Reason: why, Hold: true} }
	elsewhere := answer(303, "", "Location", "https://login.example/")
	elsewhere.SameOrigin = false
	large := answer(409, `{"error":{"errors":[{"rea`)
	large.Whole = false
	for name, r := range map[string]struct {
		p              *profile.Profile
		a              classify.Answer
		fresh, inDoubt v
	}{
		"200":                        {draft, answer(200, "{}"), done, done},
		"204":                        {draft, answer(204, ""), done, done},
		"303 here":                   {draft, answer(303, "", "Location", "/r/1"), held(unknown, redirected), held(unknown, redirected)},
		"303 here, as it answers":    {seeOther, answer(303, "", "Location", "/r/1"), done, done},
		"303, as it answers, a page": {seeOther, answer(303, "<!DOCTYPE html><p>Log in", "Location", "/login", "Content-Type", "text/html"), held(unknown, redirected), held(unknown, redirected)},
		"303 here, a page":           {draft, answer(303, "<!DOCTYPE html><p>Log in", "Location", "/login", "Content-Type", "text/html"), held(unknown, redirected), held(unknown, redirected)},
		"303 elsewhere":              {draft, elsewhere, held(unknown, redirected), held(unknown, redirected)},
		"302":                        {draft, answer(302, ""), held(unknown, redirected), held(unknown, redirected)},
		"304":                        {draft, answer(304, ""), held(unknown, redirected), held(unknown, redirected)},
		"102":                        {draft, answer(102, ""), again, again},
		"400":                        {draft, answer(400, "{}"), v{Kind: final}, again},
		"400 problem":                {draft, answer(400, "{}", "Content-Type", problem), v{Kind: final}, again},
		"400 problem, declared":      {storing, answer(400, "{}", "Content-Type", problem), done, done},
		"404 problem":                {draft, answer(404, "{}", "Content-Type", problem), v{Kind: final}, again},
		"404 problem, quoted":        {profile.Draft07Quoted(), answer(404, "{}", "Content-Type", problem), v{Kind: final}, again},
		"400 replayed":               {draft, answer(400, "{}", replayed, "true"), v{Kind: final, Replayed: true, Stored: true}, v{Kind: final, Replayed: true, Stored: true}},
		"401":                        {draft, answer(401, ""), v{Kind: refused}, v{}},
		"405 replayed":               {draft, answer(405, "no", replayed, "true"), v{Kind: final, Replayed: true}, v{Kind: unknown, Again: true, Replayed: true}},
		"408":                        {draft, answer(408, ""), again, again},
		"423":                        {draft, answer(423, "{}"), again, again},
		"424":                        {draft, answer(424, "{}"), again, again},
		"499":                        {draft, answer(499, `{"code":1,"message":"context canceled"}`), again, again},
		"409":                        {draft, answer(409, ""), v{Kind: inFlight, Again: true}, v{Kind: inFlight, Again: true}},
		"422":                        {draft, answer(422, "{}"), v{Kind: final}, again},
		"422 problem":                {draft, answer(422, "{}", "Content-Type", problem), v{Kind: mismatch}, v{Kind: mismatch, Hold: true}},
		"422 described":              {draft, answer(422, "", "Link", `<https://a>; rel="describedby"`), v{Kind: mismatch}, v{Kind: mismatch, Hold: true}},
		"425":                        {draft, answer(425, ""), v{Kind: refused, Again: true}, again},
		"429":                        {draft, answer(429, ""), v{Kind: refused, Again: true}, again},
		"500":                        {draft, answer(500, ""), again, again},
		"500 replayed":               {draft, answer(500, "", replayed, "true"), v{Hold: true, Reason: storedError, Replayed: true}, v{Hold: true, Reason: storedError, Replayed: true}},
		"599":                        {draft, answer(599, ""), again, again},
		"no status":                  {draft, answer(0, ""), again, again},
		"stripe declined":            {stripe, answer(402, `{"error":{"type":"card_error"}}`), done, done},
		"stripe declined, again":     {stripe, answer(402, `{"error":{"type":"card_error"}}`, stripeSay, "true"), v{Kind: final, Again: true, Stored: true}, v{Kind: final, Again: true, Stored: true}},
		"stripe invalid":             {stripe, answer(400, `{"error":{"type":"invalid_request_error"}}`), v{Kind: final}, again},
		"stripe invalid, no":         {stripe, answer(400, `{}`, stripeSay, "false"), v{Kind: final}, v{}},
		"stripe mismatch":            {stripe, answer(400, `{"error":{"type":"idempotency_error"}}`), v{Kind: mismatch}, v{Kind: mismatch, Hold: true}},
		"stripe mismatch, yes":       {stripe, answer(400, `{"error":{"type":"idempotency_error"}}`, stripeSay, "true"), v{Kind: mismatch}, v{Kind: mismatch, Hold: true}},
		"stripe in use":              {stripe, answer(409, `{"error":{"code":"idempotency_key_in_use"}}`), v{Kind: inFlight, Again: true}, v{Kind: inFlight, Again: true}},
		"stripe locked":              {stripe, answer(429, `{"error":{"code":"lock_timeout"}}`), v{Kind: inFlight, Again: true}, v{Kind: inFlight, Again: true}},
		"stripe 500, no":             {stripe, answer(500, "", stripeSay, "false"), held(unknown, storedError), held(unknown, storedError)},
		"stripe 500, yes":            {stripe, answer(500, "", stripeSay, " TRUE"), again, again},
		"stripe 403, yes":            {stripe, answer(403, "", stripeSay, "true"), v{Kind: refused, Again: true}, v{}},
		"stripe 200, no":             {stripe, answer(200, "{}", stripeSay, "false"), done, done},
		"gocardless done":            {gocardless, answer(409, `{"error":{"errors":[{"reason":"idempotent_creation_conflict"}]}}`), v{Kind: final, AlreadyDone: true, Stored: true}, v{Kind: final, AlreadyDone: true, Stored: true}},
		"gocardless business":        {gocardless, answer(409, `{"error":{"type":"invalid_state"}}`), v{Kind: final}, again},
		"gocardless, body too long":  {gocardless, large, again, again},
	} {
		if got := classify.Classify(r.p, r.a, facts(false)); got != r.fresh {
			t.Errorf("%s: %+v, want %+v", name, got, r.fresh)
		}
		if got := classify.Classify(r.p, r.a, facts(true)); got != r.inDoubt {
			t.Errorf("%s, in doubt: %+v, want %+v", name, got, r.inDoubt)
		}
	}
}

// TestPoisonedKeyIsHeld: a key that can never succeed again, of which the server does not say what happened.
func TestPoisonedKeyIsHeld(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Poisoned: []profile.Matcher{{Status: []int{400}, Pointer: "/code", Equals: []string{"7"}}}}
	want := classify.Verdict{Hold: true, Reason: classify.ReasonStoredError}
	for _, inDoubt := range []bool{false, true} {
		if got := classify.Classify(p, answer(400, `{"code":7}`), facts(inDoubt)); got != want {
			t.Errorf("in doubt %v: %+v, want %+v", inDoubt, got, want)
		}
	}
}

// TestSuccessThatIsNotStored: only a profile that denies that 2xx answers are kept makes one that must not be lost.
func TestSuccessThatIsNotStored(t *testing.T) {
	t.Parallel()
	for fact, want := range map[profile.Fact]bool{profile.Yes: true, profile.Unknown: true, profile.No: false} {
		p := &profile.Profile{Stored: profile.Stored{Success: fact}}
		if got := classify.Classify(p, answer(201, ""), facts(false)); got.Stored != want {
			t.Errorf("success stored %v: Stored is %v", fact, got.Stored)
		}
	}
}

// FuzzClassify: whatever a server answers, a verdict never claims more than an answer can prove.
func FuzzClassify(f *testing.F) {
	f.Add(402, "Idempotent-Replayed", "true", `{"error":{"type":"card_error"}}`, true, true)
	f.Add(303, "Location", "https://elsewhere/", "", true, false)
	f.Fuzz(func(t *testing.T, status int, name, value, body string, inDoubt, sameOrigin bool) {
		a := answer(status, body, name, value)
		a.SameOrigin = sameOrigin
		for _, p := range []*profile.Profile{profile.Draft07(), profile.StripeV1(), profile.GoCardless(), {}} {
			v := classify.Classify(p, a, facts(inDoubt))
			switch {
			case v.Kind == classify.KindNotSent:
				t.Errorf("%d: an answer proves that nothing was sent", status)
			case v.Kind == classify.KindRefused && inDoubt:
				t.Errorf("%d: a refusal settles an earlier attempt", status)
			case v.Kind == classify.KindFinal && !v.AlreadyDone && (status >= 500 || status < 200):
				t.Errorf("%d is final", status)
			case v.Kind == classify.KindFinal && status >= 300 && status < 400 && !(status == 303 && sameOrigin):
				t.Errorf("a redirect %d is final", status)
			case v.Hold && v.Again:
				t.Errorf("%d: held, and sent again", status)
			case v.Stored && v.Kind != classify.KindFinal:
				t.Errorf("%d: %v is stored", status, v.Kind)
			}
		}
	})
}

// TestWaitTakesTheLongest: of two lines, and of two headers, the longer wait counts; what cannot be read counts
// for nothing.
func TestWaitTakesTheLongest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	hints := []profile.Hint{{Header: "Retry-After", Unit: profile.HTTPDelay}, {Header: "Retry-After-Ms", Unit: profile.Milliseconds}}
	for _, r := range []struct {
		lines, millis []string
		want          time.Duration
	}{
		{nil, nil, 0},
		{[]string{"5"}, nil, 5 * time.Second},
		{[]string{"5", "90"}, nil, 90 * time.Second},
		{[]string{"90", "5"}, nil, 90 * time.Second},
		{[]string{"soon", "5"}, nil, 5 * time.Second},
		{[]string{"5", now.Add(time.Minute).Format(http.TimeFormat)}, nil, time.Minute},
		{[]string{now.Add(-time.Minute).Format(http.TimeFormat)}, nil, 0},
		{[]string{"1"}, []string{"1500", "20"}, 1500 * time.Millisecond},
		{[]string{"-1", "1.5", "3, 4", "9223372037", "99999999999999999999"}, []string{"9223372036855"}, 0},
	} {
		h := http.Header{"Retry-After": r.lines, "Retry-After-Ms": r.millis}
		if got := classify.Wait(hints, classify.Answer{Header: h}, now); got != r.want {
			t.Errorf("%v and %v: %v, want %v", r.lines, r.millis, got, r.want)
		}
	}
}

// TestWaitInTheBody: a number or a text at the pointer, in seconds, as a date or in milliseconds; beside a header the
// longer one counts; a body that is cut off, is no JSON or has something else there asks for nothing.
func TestWaitInTheBody(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	hints := []profile.Hint{
		{Header: "Retry-After", Unit: profile.HTTPDelay}, {Pointer: "/error/retry_after", Unit: profile.HTTPDelay}, {Pointer: "/ms", Unit: profile.Milliseconds},
	}
	for _, r := range []struct {
		header, body string
		cut          bool
		want         time.Duration
	}{
		{"", `{"error": {"retry_after": 5}}`, false, 5 * time.Second},
		{"", `{"error": {"retry_after": "5"}}`, false, 5 * time.Second},
		{"", `{"error": {"retry_after": 1.25}}`, false, 2 * time.Second},
		{"", `{"error": {"retry_after": 3.0}}`, false, 3 * time.Second},
		{"", `{"error": {"retry_after": "` + now.Add(time.Minute).Format(http.TimeFormat) + `"}}`, false, time.Minute},
		{"", `{"ms": 1500}`, false, 1500 * time.Millisecond},
		{"", `{"ms": 1500, "error": {"retry_after": 1}}`, false, 1500 * time.Millisecond},
		{"7", `{"error": {"retry_after": 5}}`, false, 7 * time.Second},
		{"3", `{"error": {"retry_after": 5}}`, false, 5 * time.Second},
		{"3", `{"error": {"retry_after": 5}}`, true, 3 * time.Second},
		{"", `{"retry_after": 5}`, false, 0},
		{"", `{"error": {"retry_after": {"seconds": 5}}}`, false, 0},
		{"", `{"error": {"retry_after": -5}, "ms": -1.5}`, false, 0},
		{"", `{"error": {"retry_after": 1e3}, "ms": true}`, false, 0},
		{"", `{"error": {"retry_after": 9223372037}, "ms": 99999999999999999999}`, false, 0},
		{"", `{"error": {"retry_after": 99999999999.5}, "ms": "1.2.3"}`, false, 0},
		{"", `<error>5</error>`, false, 0},
		{"", ``, false, 0},
	} {
		a := classify.Answer{Header: http.Header{}, Body: []byte(r.body), Whole: !r.cut}
		if r.header != "" {
			a.Header.Set("Retry-After", r.header)
		}
		if got := classify.Wait(hints, a, now); got != r.want {
			t.Errorf("%q and %s (cut: %v): %v, want %v", r.header, r.body, r.cut, got, r.want)
		}
	}
}

// FuzzWait: no hint is negative, and another line never makes the wait shorter.
func FuzzWait(f *testing.F) {
	f.Add("5", "Sun, 06 Nov 2044 08:49:37 GMT", true)
	f.Add("9223372036854775807", "-1", false)
	f.Fuzz(func(t *testing.T, one, two string, millis bool) {
		hint := profile.Hint{Header: "Retry-After", Unit: profile.HTTPDelay}
		if millis {
			hint.Unit = profile.Milliseconds
		}
		wait := func(lines ...string) time.Duration {
			return classify.Wait([]profile.Hint{hint}, classify.Answer{Header: http.Header{"Retry-After": lines}}, time.Unix(1e9, 0))
		}
		a, b, both := wait(one), wait(two), wait(one, two)
		if a < 0 || b < 0 || both != max(a, b) {
			t.Errorf("%q: %v, %q: %v, both: %v", one, a, two, b, both)
		}
	})
}

// TestKindNames: each kind has a name of its own, and what is none is unknown.
func TestKindNames(t *testing.T) {
	t.Parallel()
	var names []string
	for k := classify.KindUnknown; k <= classify.KindMismatch; k++ {
		if slices.Contains(names, k.String()) || k.String() == "" {
			t.Errorf("kind %d is called %q", k, k)
		}
		names = append(names, k.String())
	}
	if classify.Kind(200).String() != "unknown" {
		t.Errorf("kind 200 is called %q", classify.Kind(200))
	}
}

// TestOnce: where the API takes no key, nothing is made again but what was not sent, and what is unknown is held.
func TestOnce(t *testing.T) {
	t.Parallel()
	type v = classify.Verdict
	for _, c := range []struct{ in, want v }{
		{v{}, v{Hold: true, Reason: classify.ReasonNoKey}},
		{v{Again: true}, v{Hold: true, Reason: classify.ReasonNoKey}},
		{v{Kind: classify.KindInFlight, Again: true}, v{Hold: true, Reason: classify.ReasonNoKey}},
		{v{Hold: true, Reason: classify.ReasonRedirected}, v{Hold: true, Reason: classify.ReasonRedirected}},
		{v{Kind: classify.KindNotSent, Again: true}, v{Kind: classify.KindNotSent, Again: true}},
		{v{Kind: classify.KindRefused, Again: true}, v{Kind: classify.KindRefused}},
		{v{Kind: classify.KindFinal, Again: true}, v{Kind: classify.KindFinal}},
	} {
		if got := classify.Once(c.in); got != c.want {
			t.Errorf("%+v becomes %+v, want %+v", c.in, got, c.want)
		}
	}
}

// TestUnclear: an answer whose meaning only a weak source gives is held, whatever its status, in doubt or not, and no
// should-retry header changes that. What a good source says of it goes before.
func TestUnclear(t *testing.T) {
	t.Parallel()
	p := profile.StripeV1()
	p.Unclear = []profile.Matcher{{Status: []int{200, 400, 409, 423, 429, 500}, Pointer: "/state", Equals: []string{"busy"}}}
	held := classify.Verdict{Kind: classify.KindUnknown, Hold: true, Reason: classify.ReasonUnclear}
	for _, status := range p.Unclear[0].Status {
		for _, inDoubt := range []bool{false, true} {
			for _, header := range [][]string{nil, {"Stripe-Should-Retry", "true"}} {
				if got := classify.Classify(p, answer(status, `{"state":"busy"}`, header...), facts(inDoubt)); got != held {
					t.Errorf("%d, in doubt %t, %v: %+v", status, inDoubt, header, got)
				}
			}
		}
	}
	known := classify.Classify(p, answer(409, `{"state":"busy","error":{"code":"idempotency_key_in_use"}}`), facts(false))
	if known.Kind != classify.KindInFlight || known.Hold {
		t.Errorf("a good source does not go before: %+v", known)
	}
}

// TestSeeOtherUnderVerdicts: where the body of an answer tells what was done, a 303 tells nothing: it may lead to a login page of the same origin.
func TestSeeOtherUnderVerdicts(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Verdicts = []profile.Verdict{{Pointer: "/status", Equals: []string{"succeeded"}, Proves: profile.ProvesSucceeded}}
	want := classify.Verdict{Kind: classify.KindUnknown, Hold: true, Reason: classify.ReasonRedirected}
	for _, inDoubt := range []bool{false, true} {
		if got := classify.Classify(p, answer(303, `{"status":"succeeded"}`, "Location", "/login"), facts(inDoubt)); got != want {
			t.Errorf("in doubt %t: %+v, want %+v", inDoubt, got, want)
		}
	}
}
