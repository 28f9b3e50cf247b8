package otherconfig_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestAnswerIsKeptByBoth: of an answer nothing is recorded that is a credential by the Config of who began the operation, or by that of who
// ends it; the rest is.
func TestAnswerIsKeptByBoth(t *testing.T) {
	t.Parallel()
	const header = "X-Passcode: p4ss\nX-Session-Note: n0te\nLocation: /p/1?code=c0de&via=test\nX-Plain: plain"
	keepsNote := func(cfg *oncehttp.Config) {
		cfg.KeepHeader = func(name string) bool { return strings.EqualFold(name, "X-Session-Note") }
	}
	for name, r := range map[string]struct {
		companions
		gone []string
	}{
		"nothing is named":      {companions{one: plainly, other: plainly}, []string{"n0te"}},
		"a header":              {companions{one: clienttest.SecretHeaders("x-passcode"), other: plainly}, []string{"n0te", "p4ss"}},
		"a header more":         {companions{one: clienttest.SecretHeaders("x-passcode"), other: clienttest.SecretHeaders("X-Other")}, []string{"n0te", "p4ss"}},
		"a parameter":           {companions{one: clienttest.SecretParameters("code"), other: plainly}, []string{"n0te", "c0de"}},
		"both":                  {companions{one: clienttest.SecretParameters("code"), other: clienttest.SecretHeaders("X-Passcode")}, []string{"n0te", "c0de", "p4ss"}},
		"one that one keeps":    {companions{one: keepsNote, other: plainly}, []string{"n0te"}},
		"one that both keep":    {companions{one: keepsNote, other: keepsNote}, nil},
		"one that both keep, +": {companions{one: clienttest.Together(keepsNote, clienttest.SecretHeaders("X-Passcode")), other: keepsNote}, []string{"p4ss"}},
	} {
		for direction, pair := range map[string]companions{"": r.companions, ", reversed": r.reversed()} {
			for how, end := range endsByOther() {
				t.Run(name+direction+", "+how, func(t *testing.T) {
					t.Parallel()
					journaltest.Each(t, func(t *testing.T, j persist.Journal) {
						w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}", Header: header}}}
						first, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, pair.one))
						second, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, pair.other))
						if err := first.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
							t.Fatal(err)
						}
						shown := end(t, second)
						recorded := spelled(clienttest.Lookup(t, first, "k").Answer)
						for _, value := range []string{"p4ss", "n0te", "c0de", "plain"} {
							gone := strings.Contains(strings.Join(r.gone, " "), value)
							if strings.Contains(recorded, value) == gone || shown != "" && strings.Contains(shown, value) == gone {
								t.Errorf("%q: recorded %q, shown %q; want without %q", value, recorded, shown, r.gone)
							}
						}
					})
				})
			}
		}
	}
}

// endsByOther are the ways in which a client ends an operation that another has begun. Each returns the answer of the result, if it has one.
func endsByOther() map[string]func(*testing.T, *oncehttp.Client) string {
	return map[string]func(*testing.T, *oncehttp.Client) string{
		"Resume": func(t *testing.T, c *oncehttp.Client) (shown string) {
			for res, err := range c.Resume(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				shown = spelled(res.Answer)
			}
			return shown
		},
		"Do": func(t *testing.T, c *oncehttp.Client) string {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			return ""
		},
		"Settle": func(t *testing.T, c *oncehttp.Client) string {
			a := &persist.Answer{Status: 201, Body: []byte("{}"), Header: map[string][]string{
				"X-Passcode": {"p4ss"}, "X-Session-Note": {"n0te"}, "Location": {"/p/1?code=c0de&via=test"}, "X-Plain": {"plain"},
			}}
			if err := c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: a}); err != nil {
				t.Fatal(err)
			}
			return ""
		},
	}
}

// spelled are an answer's headers as text.
func spelled(a *persist.Answer) string {
	if a == nil {
		return "no answer"
	}
	var b strings.Builder
	for name, lines := range a.Header {
		b.WriteString(name + ": " + strings.Join(lines, ",") + "\n")
	}
	return b.String()
}
