package conformance

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// tokenCases returns the cases about tokens: keys that the server hands out before the operation. A case is skipped if the target lacks one of its
// Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own.
func tokenCases() []Case {
	needs := []Need{NeedToken, NeedEffects}
	after := []string{"replay/answered", "replay/effects-once"}
	return []Case{
		{
			ID: "token/unknown-refused", Level: LevelSafety, Since: "1.1", Needs: needs, After: after,
			Spec:   []Ref{invariant("S4"), practice("A token that was never handed out is refused.")},
			Rule:   "A token that was not handed out is refused and executes nothing.",
			Impact: "A client that makes tokens up is not protected, and is not told.",
			Fix:    "Look the token up before the work, and refuse what is not there. Usual cause: a delete of the token whose result is not looked at.",
			run: func(x *trial) {
				op := x.newOperation().with(func(dup *operation) {
					dup.key = x.r.key("unknown\x00" + dup.ref)
					dup.fill(x.r)
				})
				x.wantRefused(op, "with a token that was not handed out")
			},
		}, {
			ID: "token/other-caller-refused", Level: LevelSafety, Since: "1.1", Needs: append([]Need{NeedPrincipal}, needs...), After: after,
			Spec:   []Ref{invariant("S3"), practice("A token is bound to the caller that fetched it.")},
			Rule:   "A token that was handed out to one caller is refused to another.",
			Impact: "A stranger uses a customer's token up, and the customer is told that the order was placed.",
			Fix:    "Store the caller with the token, and compare. Usual cause: the token alone is the key of the store.",
			run: func(x *trial) {
				if !x.strangerServed() {
					x.inconclusive("the second caller's own operations are not taken; look at --as")
					return
				}
				op := x.newOperation().with(func(dup *operation) { dup.stranger = true })
				x.wantRefused(op, "with the first caller's token")
			},
		}, {
			ID: "token/fetched-apart", Level: LevelSafety, Since: "1.1", Needs: []Need{NeedToken},
			Spec:   []Ref{invariant("S5")},
			Rule:   "Each fetch hands out another token.",
			Impact: "Two customers share a token, and the second is given the first one's order.",
			Fix:    "Draw tokens at random, at least 16 bytes of them. Usual causes: a clock, a counter that starts again, or a cache in front of the path.",
			run: func(x *trial) {
				one, two := x.newOperation(), x.newOperation()
				x.want(one.key != two.key && one.key != "", "two tokens", "%q, then %q", one.key, two.key)
			},
		},
	}
}

// wantRefused sends an operation, and checks that it is refused without an effect. note describes it in the report.
func (x *trial) wantRefused(op *operation, note string) {
	a := x.do(op, note)
	if a.kind == noAnswer {
		x.inconclusive("it met no answer: %s", a)
		return
	}
	x.want(a.kind != done, "a refusal", "%s", a)
	x.notExecuted(op, a, "the request "+note)
}

// token fetches a key for an operation from the server, as the operation's caller, and returns it; "" if there is none. The server then refuses the
// operation for its empty key. A success whose body is no JSON, or has nothing at the default pointer, is the key as text.
func (x *trial) token(op *operation) string {
	_, _, pointer := x.tokenRequest(op)
	a := x.do(x.tokenFetch(op), "a token is fetched")
	if a.kind != done {
		return ""
	}
	if text, found := lookupText(a.body, pointer); found {
		return text
	}
	if json.Valid(a.body) && x.r.o.TokenPointer != "" {
		return "" // there is no key where it was said to be
	}
	return strings.TrimSpace(string(a.body))
}

// tokenFetch returns the request that fetches a key for the operation.
func (x *trial) tokenFetch(op *operation) *operation {
	method, target, _ := x.tokenRequest(op)
	return op.with(func(dup *operation) {
		dup.method, dup.target, dup.body, dup.keyless = method, target, nil, true
	})
}

// tokenDefault is the JSON pointer to a key in an answer, if neither options nor profile name
// one.
const tokenDefault = "/token"

// tokenRequest returns method and target of the request for a key, and the JSON pointer to the key in its answer: from Options.TokenPath, or else
// from the profile. One of them must have a path. In the profile's path, {path} stands for the path of the operation, and {/pointer} for the value at
// this pointer in its body.
func (x *trial) tokenRequest(op *operation) (method, target, pointer string) {
	if x.r.o.TokenPath != "" {
		return cmp.Or(x.r.o.TokenMethod, http.MethodGet), x.r.o.TokenPath, cmp.Or(x.r.o.TokenPointer, tokenDefault)
	}
	t := x.r.o.Profile.Token
	path, _, _ := strings.Cut(op.target, "?")
	parts := strings.Split(strings.ReplaceAll(t.Path, "{path}", path), "{")
	for i, part := range parts[1:] {
		inBody, rest, _ := strings.Cut(part, "}")
		text, _ := lookupText([]byte(render(x.r.o.Body, op.ref, "")), inBody) // the body without a key: it is asked for now
		parts[i+1] = url.QueryEscape(text) + rest
	}
	return cmp.Or(t.Method, http.MethodPost), strings.Join(parts, ""), t.Pointer
}

// handsOutKeys reports whether the server hands out the keys.
func (o *Options) handsOutKeys() bool {
	return o.TokenPath != "" || o.Profile.Token != nil && o.Profile.Token.Path != ""
}
