package sim

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// ServeHTTP is the work of the simulated API, behind the mock server: it pays, or declines. It runs once for each key unknown to the server. pad, up to 600
// bytes and the same for a reference, makes some answers too large for a journal that keeps few bytes.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.find(rw, r)
		return
	}
	ref, account, key := refOf(r.URL.Path), principal(r), keyOf(r.Header)
	n := w.model.executed(account, ref)
	pad := strings.Repeat("x", int(w.dice.hash("pad "+ref, 0)%600))
	switch x := w.dice.unit("verdict "+account+ref, n); {
	case strings.HasPrefix(ref, "s"): // a stranger's
		say(rw, http.StatusCreated, "", fmt.Sprintf(`{"stranger":%q}`, ref))
	case x < 0.06: // the server keeps this answer
		w.decline(rw, ref, w.long(pad), x < 0.04)
	case x < 0.12: // and forgets this one
		say(rw, http.StatusBadRequest, "", fmt.Sprintf(`{"refused":%q,"n":%d,"note":%q}`, ref, n, w.long(pad)))
	default:
		id := w.model.effect(account, ref, key)
		say(rw, http.StatusCreated, "", fmt.Sprintf(`{"id":"pay_%d","reference":%q,"note":%q}`, id, ref, pad))
	}
}

// principal returns the customer of a request to the simulated API, by its credentials; the first one without any.
func principal(r *http.Request) string {
	if account := r.Header.Get("Authorization"); account != "" {
		return account
	}
	return accountName(0)
}

// find is the simulated API's lookup: it answers whether an effect with this business reference exists for the customer.
func (w *world) find(rw http.ResponseWriter, r *http.Request) {
	ref, found := r.URL.Query().Get("ref"), ""
	if w.model.happened(want{principal(r), ref}) {
		found = fmt.Sprintf(`{"reference":%q}`, ref)
	}
	say(rw, http.StatusOK, "", fmt.Sprintf(`{"data":[%s]}`, found))
}

// reference returns the part of the profile by which a client finds made objects. A lookup after foundWithin finds all effects: by then all copies of
// requests have arrived.
func reference() *profile.Reference {
	return &profile.Reference{
		Path: "/find?ref={/order}", List: "/data", Same: []profile.Same{{Request: "/order", Resource: "/reference"}}, FoundWithin: foundWithin,
	}
}

// foundWithin is longer than a request may be on its way, and at work.
const foundWithin = 3 * time.Minute

// decline answers with a final refusal, which the API stores. With again, the answer asks for another attempt, as Stripe's answers may. The body has the
// reference, and note as its text.
func (w *world) decline(rw http.ResponseWriter, ref, note string, again bool) {
	if w.plan.Setting.Profile.ShouldRetry.Header == "" {
		say(rw, http.StatusPaymentRequired, "application/problem+json", fmt.Sprintf(`{"title":"declined","reference":%q,"detail":%q}`, ref, note))
		return
	}
	if again {
		rw.Header().Set(w.plan.Setting.Profile.ShouldRetry.Header, w.plan.Setting.Profile.ShouldRetry.Yes)
	}
	say(rw, http.StatusPaymentRequired, "", fmt.Sprintf(`{"error":{"type":"card_error"},"reference":%q,"note":%q}`, ref, note))
}

// long returns note, the text of a refusal; none if this run's API refuses without a text.
func (w *world) long(note string) string {
	if !w.plan.Setting.LargeNo {
		return ""
	}
	return note
}

// say answers with status and body; an empty kind means application/json.
func say(rw http.ResponseWriter, status int, kind, body string) {
	if kind == "" {
		kind = "application/json"
	}
	rw.Header().Set("Content-Type", kind)
	rw.WriteHeader(status)
	_, _ = rw.Write([]byte(body)) // a recorder's
}

// weather returns the faults of the server and the network for a share of the sends. The server stays honest: its answers' statements on effects are
// true.
func weather(storm float64) mockserver.Mix {
	f := func(kind mockserver.Kind) mockserver.Fault { return mockserver.Fault{Kind: kind} }
	status := func(code int, wait string) mockserver.Fault {
		return mockserver.Fault{Kind: mockserver.Answer, Status: code, RetryAfter: wait}
	}
	faults := []mockserver.Fault{
		f(mockserver.DropBefore), f(mockserver.DropAfter), f(mockserver.DropAfter), f(mockserver.Reset), f(mockserver.ResetAfter),
		{Kind: mockserver.Hang, Delay: time.Minute}, {Kind: mockserver.HangAfter, Delay: time.Minute},
		f(mockserver.SlowBody), f(mockserver.CutBody), f(mockserver.CutBody), f(mockserver.KillIdle), f(mockserver.Redirect),
		{Kind: mockserver.Redirect, Location: "http://elsewhere.test/x"}, {Kind: mockserver.HugeError, Bytes: 20_000},
		{Kind: mockserver.AnswerAfter, Status: 500}, {Kind: mockserver.AnswerAfter, Status: 503}, {Delay: 20 * time.Second},
		status(401, ""), status(403, ""), status(408, ""), status(409, "1"), status(425, ""), status(429, ""), status(429, "2"),
		status(429, "7200"), status(500, ""), status(502, ""), status(503, ""), status(503, "30"), status(504, ""),
		status(400, ""), status(404, ""),
	}
	for _, code := range []int{401, 429, 503, 400} { // and some slow ones
		slow := status(code, "")
		slow.Delay = 2 * time.Second
		faults = append(faults, slow)
	}
	mix := make(mockserver.Mix, 0, len(faults))
	for _, fault := range faults {
		mix = append(mix, mockserver.Share{Fault: fault, Probability: storm / float64(len(faults))})
	}
	return mix
}
