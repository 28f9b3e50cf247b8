package classify_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/profile"
)

// TestAbsentAdvice: where an API says that an error without its should-retry header must not be sent again, one that is the
// API's own is not; what a gateway or a page answers, a wait, and a request in progress are as without that rule.
func TestAbsentAdvice(t *testing.T) {
	t.Parallel()
	const (
		header  = "Transient-Error"
		unknown = "unknown" // another attempt at once does not help, and nothing is concluded
		refused = "refused"
	)
	p := profile.Draft07()
	p.ShouldRetry = profile.ShouldRetry{Header: header, Yes: "true", No: "false", Absent: profile.No}
	p.InProgress = []profile.Matcher{{Status: []int{422}, Pointer: "/errorCode", Equals: []string{"704"}}}
	p.Stored.Client = nil
	page := answer(500, "<!DOCTYPE html><title>Error</title>", "Content-Type", "text/html")
	unread := answer(500, "")
	unread.Body, unread.Whole = nil, false
	for name, r := range map[string]struct {
		a              classify.Answer
		fresh, inDoubt string
	}{
		"500":               {answer(500, `{"status":500}`), held, held},
		"501":               {answer(501, `{"status":501}`), held, held},
		"500, false":        {answer(500, `{"status":500}`, header, "false"), held, held},
		"500, true":         {answer(500, `{"status":500}`, header, "True"), again, again},
		"500, another word": {answer(500, `{"status":500}`, header, "maybe"), again, again},
		"500 without body":  {answer(500, " "), again, again},
		"500, a page":       {page, again, again},
		"500, body unread":  {unread, again, again},
		"502":               {answer(502, `{"status":502}`), again, again},
		"503":               {answer(503, `{"status":503}`), again, again},
		"504":               {answer(504, `{"status":504}`), again, again},
		"505":               {answer(505, `{"status":505}`), held, held},
		"408":               {answer(408, `{"status":408}`), unknown, unknown},
		"429":               {answer(429, `{"status":429}`), refusal, again},
		"422":               {answer(422, `{"errorCode":"130"}`), final, unknown},
		"422, true":         {answer(422, `{"errorCode":"130"}`, header, "true"), "final, again", again},
		"in progress":       {answer(422, `{"errorCode":"704"}`), inFlight, inFlight},
		"in progress, no":   {answer(422, `{"errorCode":"704"}`, header, "false"), "in flight", "in flight"},
		"401":               {answer(401, `{}`), refused, unknown},
		"201":               {answer(201, `{}`), stored, stored},
	} {
		for inDoubt, want := range map[bool]string{false: r.fresh, true: r.inDoubt} {
			if got := inWords(classify.Classify(p, r.a, facts(inDoubt))); got != want {
				t.Errorf("%s, in doubt %t: %q, want %q", name, inDoubt, got, want)
			}
		}
	}
	p.ShouldRetry.Absent = profile.Unknown
	if got := inWords(classify.Classify(p, answer(500, `{"status":500}`), facts(false))); got != again {
		t.Errorf("500, and of an absent header nothing is known: %q, want %q", got, again)
	}
}
