package bugs

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// replayBugs returns the bugs in the answer to a repeat.
func replayBugs() []Bug { return slices.Concat(bodyBugs(), headBugs()) }

// bodyBugs returns the bugs of a server that refuses a repeat, executes it, or changes the status or body of its answer. Hidden: the answers look
// right, and only a count of effects shows the bug. Cases are the test cases that must find the bug. Claimed may answer when the key has been looked
// up; result is what was found. Nil: go on as a correct server.
func bodyBugs() []Bug {
	return []Bug{
		{
			Name: "replay-rejected", Description: "Every identical repeat is refused as a conflict.",
			Impact: "A client whose answer was lost never learns that the payment succeeded.",
			Cases:  []string{"replay/answered"},
			change: mutation{Claimed: func(l *layer, _ *exchange, _ *entry, result claim) *answer {
				if result != keylayer.Replayed {
					return nil
				}
				return l.InProgressAnswer()
			}},
		}, {
			Name: "replay-executes", Description: "A repeat gets the stored answer, but is executed as well.",
			Impact: "Every retry charges the customer again, behind an answer that looks right.", Hidden: true,
			Cases: []string{"replay/effects-once"},
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Replayed {
					x.Execute()
				}
				return nil
			}},
		}, {
			Name: "replay-loses-status", Description: "A repeat is always answered 200.",
			Impact: "A retry of a refused payment looks like a success.",
			Cases:  []string{"replay/status"},
			change: onReplay(func(a, _ *answer) { a.Status = http.StatusOK }),
		}, {
			Name: "replay-loses-body", Description: "A repeat gets an empty body.",
			Impact: "After a lost answer the client has no payment id.",
			Cases:  []string{"replay/body-bytes"},
			change: onReplay(func(a, _ *answer) { a.Body = nil }),
		}, {
			Name: "replay-cuts-body", Description: "A repeat gets at most the first 64 bytes of the body.",
			Impact: "After a lost answer the client cannot read what it has bought.",
			Cases:  []string{"replay/large-body"},
			change: onReplay(func(a, _ *answer) { a.Body = a.Body[:min(len(a.Body), 64)] }),
		}, {
			Name: "replay-respelled", Description: "The stored answer is parsed and written anew: its members are in another order, its numbers rounded.",
			Impact: "A client that checks a signature or an id beyond 2^53 rejects what it is given after a lost answer.",
			Cases:  []string{"replay/body-bytes"},
			change: onReplay(func(a, _ *answer) {
				var value any
				if json.Unmarshal(a.Body, &value) == nil {
					if text, err := json.MarshalIndent(value, "", " "); err == nil {
						a.Body = text
					}
				}
			}),
		}, {
			Name: "replay-wrapped", Description: "A repeat gets the stored body inside an object of its own.",
			Impact: "After a lost answer the client finds no payment id where it looks for it.",
			Cases:  []string{"replay/body-bytes"},
			change: onReplay(func(a, _ *answer) {
				a.Body = slices.Concat([]byte(`{"cached":true,"response":`), a.Body, []byte("}"))
			}),
		},
	}
}

// headBugs returns the bugs of a server in the headers of its answer to a repeat, or to the first request. Cases are the test cases that must find
// the bug. Shape changes an answer before it is sent.
func headBugs() []Bug {
	return []Bug{
		{
			Name: "replay-loses-type", Description: "A repeat has no Content-Type of its own.",
			Impact: "After a lost answer the client cannot parse what it is given.",
			Cases:  []string{"replay/headers"},
			change: onReplay(func(a, _ *answer) { a.Header.Set("Content-Type", "text/plain; charset=utf-8") }),
		}, {
			Name: "replay-loses-location", Description: "A repeat has no Location.",
			Impact: "After a lost answer the client does not find its payment.",
			Cases:  []string{"replay/headers"},
			change: onReplay(func(a, _ *answer) { a.Header.Del("Location") }),
		}, {
			Name: "replay-gives-cookie", Description: "A repeat gets the Set-Cookie of the first caller.",
			Impact: "Whoever repeats a request is logged in as the first caller.",
			Cases:  []string{"replay/no-set-cookie"},
			change: onReplay(func(a, stored *answer) {
				if cookies := stored.Header.Values("Set-Cookie"); len(cookies) > 0 {
					a.Header["Set-Cookie"] = cookies
				}
			}),
		}, {
			Name: "first-marked", Description: "The first answer is marked as a replay.",
			Impact: "A client that tells new from old by the mark ships nothing, for everything looks old.",
			Cases:  []string{"replay/not-marked-when-first"},
			change: mutation{Shape: func(l *layer, _ *exchange, result claim, a *answer) {
				if p := l.Profile; result == keylayer.Fresh && len(p.Replay) > 0 {
					a.Header = a.Header.Clone()
					a.Header.Set(p.Replay[0].Header, keylayer.FirstOr(p.Replay[0].Has, "true"))
				}
			}},
		},
	}
}

// onReplay returns a mutation of the mock: change is called with each stored answer before it is given again. a is a copy to be changed; stored must
// stay as it is.
func onReplay(change func(a, stored *answer)) mutation {
	return mutation{Shape: func(_ *layer, x *exchange, result claim, a *answer) {
		if result == keylayer.Replayed {
			change(a, x.Entry.Answer)
		}
	}}
}
