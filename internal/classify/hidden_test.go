package classify_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/profile"
)

// hiding returns a profile whose outcomes stand in the bodies of its 2xx.
func hiding() *profile.Profile {
	p := profile.Draft07()
	p.Verdicts = []profile.Verdict{
		{Pointer: "/result", Proves: profile.ProvesSucceeded},
		{Pointer: "/result", Equals: []string{"null"}, Proves: profile.ProvesSucceeded},
		{Pointer: "/error", Proves: profile.ProvesRefused},
		{Pointer: "/error/code", Equals: []string{"-32001", "busy"}, Proves: profile.ProvesInProgress},
		{Pointer: "/error/code", Equals: []string{"-32002"}, Proves: profile.ProvesMismatch},
		{Pointer: "/error/code", Equals: []string{"-32603"}, Proves: profile.ProvesUnknown},
		{Pointer: "/errors", Equals: []string{"[]"}, Proves: profile.ProvesSucceeded},
		{Pointer: "/none", Equals: []string{"{}"}, Proves: profile.ProvesSucceeded},
	}
	return p
}

// TestOutcomesInBodies: the most cautious outcome that a 2xx proves counts; what proves none is held. Other statuses, pages and the
// matchers of the profile are read as without verdicts.
func TestOutcomesInBodies(t *testing.T) {
	t.Parallel()
	type v = classify.Verdict
	var (
		success  = v{Kind: classify.KindFinal, Stored: true}
		refused  = v{Kind: classify.KindFinal, Refused: true}
		busy     = v{Kind: classify.KindInFlight, Again: true}
		mismatch = v{Kind: classify.KindMismatch}
		held     = v{Hold: true, Reason: classify.ReasonUnclear}
	)
	inDoubt := func(w v) v {
		switch w.Kind {
		case classify.KindMismatch:
			w.Hold = true
		case classify.KindFinal:
			if w.Refused {
				return v{Again: true} // as of a 4xx that no store has given
			}
		}
		return w
	}
	for body, want := range map[string]v{
		`{"result":{"id":1}}`: success, `{"result":false}`: success, `{"result":null}`: success, `{"result":[]}`: success, `{"errors":[]}`: success, `{"none":{}}`: success,
		`{"error":{"code":-32000}}`: refused, `{"error":"no"}`: refused, `{"result":1,"error":{"code":1}}`: refused, `{"errors":[],"error":{}}`: refused,
		`{"error":null,"result":1}`: success, `{"error":{"code":"busy"}}`: busy, `{"result":1,"error":{"code":-32001}}`: busy,
		`{"error":{"code":-32002}}`: mismatch, `{"error":{"code":-32603}}`: held, `{"result":1,"error":{"code":-32603}}`: held,
		`{}`: held, `{"error":null}`: held, `{"errors":[1]}`: held, `{"none":{"a":1}}`: held, ``: held, `ok`: held, `"result"`: held, `[]`: held, `<result/>`: held,
		`{"result":1} x`: held, `{"result":1,"result":2}`: held,
	} {
		for _, status := range []int{200, 201, 202} {
			if got := classify.Classify(hiding(), answer(status, body), facts(false)); got != want {
				t.Errorf("%d %s: %+v, want %+v", status, body, got, want)
			}
			if got := classify.Classify(hiding(), answer(status, body), facts(true)); got != inDoubt(want) {
				t.Errorf("%d %s, in doubt: %+v, want %+v", status, body, got, inDoubt(want))
			}
		}
	}
	large := answer(200, `{"result":1}`)
	large.Whole = false
	unread := answer(200, "")
	unread.Unread = true
	for name, a := range map[string]classify.Answer{"not whole": large, "a coding that nobody knows": unread} {
		if got := classify.Classify(hiding(), a, facts(false)); got != held {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := classify.Classify(hiding(), answer(400, `{"result":1}`), facts(false)); got.Kind != classify.KindFinal || got.Refused {
		t.Errorf("400: %+v", got)
	}
	if got := classify.Classify(hiding(), answer(500, `{"result":1}`), facts(false)); got.Kind != classify.KindUnknown || !got.Again {
		t.Errorf("500: %+v", got)
	}
	marked := classify.Classify(hiding(), answer(200, `{"error":{"code":-32000}}`, "Idempotent-Replayed", "true"), facts(true))
	if want := (v{Kind: classify.KindFinal, Refused: true, Replayed: true, Stored: true}); marked != want {
		t.Errorf("a refusal with the mark of a replay: %+v, want %+v", marked, want)
	}
	matched := hiding()
	matched.AlreadyDone = []profile.Matcher{{Status: []int{200}, Pointer: "/error/done"}}
	if got := classify.Classify(matched, answer(200, `{"error":{"done":true}}`), facts(false)); !got.AlreadyDone || got.Refused {
		t.Errorf("a matcher goes first: %+v", got)
	}
}

// TestGraphQLByShape: errors without data, or with data whose members are all null, in the 200 of a GraphQL request are held, unless the profile's verdicts say more.
func TestGraphQLByShape(t *testing.T) {
	t.Parallel()
	held := classify.Verdict{Hold: true, Reason: classify.ReasonUnclear, Flaw: classify.FlawErrors}
	for body, holds := range map[string]bool{
		`{"errors":[{"message":"no"}]}`: true, `{"errors":[{"message":"no"}],"data":null}`: true,
		`{"errors":[{"message":"no"}],"data":{}}`: true, `{"errors":[{"message":"no"}],"data":{"pay":null}}`: true, `{"errors":[{"message":"no"}],"data":{"pay":null,"log":null}}`: true,
		`{"errors":[{"message":"no"}],"data":{"pay":{"id":1},"log":null}}`: false, `{"errors":[{"message":"no"}],"data":{"pay":false}}`: false, `{"errors":[{"message":"no"}],"data":[]}`: false,
		`{"errors":[],"data":{"pay":null}}`: false, `{"data":{"pay":null}}`: false,
		`{"errors":[],"data":null}`: false, `{"data":{"pay":{"id":1}}}`: false, `{"errors":"x"}`: false, ``: false,
	} {
		f := facts(false)
		f.GraphQL = true
		if got := classify.Classify(profile.Draft07(), answer(200, body), f); (got == held) != holds {
			t.Errorf("%s: %+v", body, got)
		}
		if got := classify.Classify(profile.Draft07(), answer(200, body), facts(false)); got.Kind != classify.KindFinal {
			t.Errorf("%s of another request: %+v", body, got)
		}
	}
	p := profile.Draft07()
	p.Verdicts = []profile.Verdict{{Pointer: "/errors/0/message", Equals: []string{"no"}, Proves: profile.ProvesRefused}, {Pointer: "/data/pay/id", Proves: profile.ProvesSucceeded}}
	f := facts(false)
	f.GraphQL = true
	if got := classify.Classify(p, answer(200, `{"errors":[{"message":"no"}],"data":null}`), f); !got.Refused {
		t.Errorf("by verdicts: %+v", got)
	}
}

// TestGraphQLMayBe: where the request only may be GraphQL, the answer must be in GraphQL's form. That of a plain API stays a success.
func TestGraphQLMayBe(t *testing.T) {
	t.Parallel()
	for body, holds := range map[string]bool{
		`{"errors":[{"message":"no"}]}`: true, `{"errors":[{"message":"no","path":["pay"]}],"data":null,"extensions":{"cost":1}}`: true,
		`{"errors":[{"message":"no"}],"data":{"pay":null}}`: true, `{"errors":[],"data":null}`: false, `{"errors":[{"message":"late"}],"id":"pay_1"}`: false,
		`{"errors":[{"code":"late"}],"data":null}`: false, `{"errors":["late"]}`: false, `{"errors":[{"message":1}]}`: false, `{"errors":[{"message":"no"},{}]}`: false, `[{"errors":[{"message":"no"}]}]`: false, ``: false,
	} {
		f := facts(false)
		f.MayBeGraphQL = true
		if got := classify.Classify(profile.Draft07(), answer(200, body), f); (got.Hold && got.Flaw == classify.FlawErrors) != holds || !holds && got.Kind != classify.KindFinal {
			t.Errorf("%s: %+v", body, got)
		}
	}
}
