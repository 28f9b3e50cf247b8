package bugs

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// The places of the parts that a fingerprint is made of.
const (
	printMethod = 0
	printPath   = 1
	printQuery  = 2
	printType   = 3
)

// scopeBugs mistake what a key names, or whose it is.
func scopeBugs() []Bug { return slices.Concat(mismatchBugs(), targetBugs()) }

// mismatchBugs take another request for the same one, or refuse it badly.
func mismatchBugs() []Bug {
	return []Bug{
		{
			Name: "mismatch-silent", Description: "Another body under a known key is answered with the first answer.",
			Cases: []string{"conflict/not-silent"},
			change: keylayer.Mutation{Print: func(_ *http.Request, parts []string) []string {
				return parts[:len(parts)-1]
			}},
		}, {
			Name: "mismatch-executed", Description: "Another request under a known key is executed too.",
			Cases: []string{"conflict/not-executed"},
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, x *keylayer.Exchange, e *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				if said == keylayer.Mismatch && e.Answer != nil {
					return x.Execute()
				}
				return nil
			}},
		}, {
			Name: "mismatch-in-flight-executed", Description: "While the first request is handled, another one under its key is executed too.",
			Cases: []string{"inflight/other-body"},
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, x *keylayer.Exchange, e *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				if said == keylayer.Mismatch && e.Answer == nil {
					return x.Execute()
				}
				return nil
			}},
		}, {
			Name: "mismatch-replaces", Description: "A refused mismatch takes the key over: the first answer is forgotten.",
			Cases: []string{"conflict/original-survives"},
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, x *keylayer.Exchange, _ *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				if said == keylayer.Mismatch {
					l.Store.Expire(l.Scope(x))
				}
				return nil
			}},
		}, {
			Name: "mismatch-500", Description: "Another request under a known key is answered 500.",
			Cases: []string{"conflict/rejected-status"},
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, _ *keylayer.Exchange, _ *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				return failure(l, said == keylayer.Mismatch)
			}},
		}, {
			Name: "mismatch-bare", Description: "The refusal of a mismatch is neither problem+json nor has a link.",
			Cases: []string{"conflict/error-shape"},
			change: keylayer.Mutation{Shape: func(_ *keylayer.Layer, _ *keylayer.Exchange, said keylayer.Claim, a *keylayer.Answer) {
				if said == keylayer.Mismatch {
					a.Header = http.Header{"Content-Type": {"text/plain"}}
					a.Body = []byte("no")
				}
			}},
		}, {
			Name: "mismatch-leaks", Description: "The refusal of a mismatch shows the stored answer.",
			Cases: []string{"conflict/no-leak"},
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, _ *keylayer.Exchange, e *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				if said != keylayer.Mismatch || e.Answer == nil {
					return nil
				}
				return keylayer.Problem(l.Profile, http.StatusUnprocessableEntity, keylayer.TitleUsed, string(e.Answer.Body))
			}},
		},
	}
}

// targetBugs forget part of what a key belongs to, or add to it.
func targetBugs() []Bug {
	return []Bug{
		{
			Name: "other-path-answered", Description: "A key that was used on one path answers every other.",
			Cases: []string{"scope/other-path-not-answered"}, change: without(printPath),
		}, {
			Name: "other-method-answered", Description: "A key that was used with one method answers every other.",
			Cases: []string{"scope/other-method"}, change: without(printMethod),
		}, {
			Name: "other-query-answered", Description: "The query is not part of what a key names.",
			Cases: []string{"scope/other-query"}, change: without(printQuery),
		}, {
			Name: "other-principal-answered", Description: "Another caller with the same key gets the stored answer.",
			Cases: []string{"scope/other-principal-not-answered"},
			change: keylayer.Mutation{Scope: func(_ *keylayer.Exchange, parts []string) []string {
				return parts[len(parts)-1:]
			}},
		}, {
			Name: "connection-scoped", Description: "A key is known on its own connection only.",
			Cases: []string{"replay/effects-once"},
			change: keylayer.Mutation{Scope: func(x *keylayer.Exchange, parts []string) []string {
				return append(parts, x.Request.RemoteAddr)
			}},
		}, {
			Name: "chunked-differs", Description: "A chunked body is another request than the same bytes with a length.",
			Cases: []string{"net/chunked-equals-length"},
			change: keylayer.Mutation{Print: func(r *http.Request, parts []string) []string {
				return append(parts, strconv.FormatBool(r.ContentLength < 0))
			}},
		}, {
			Name: "fresh-key-refused", Description: "A fresh key is refused because its body was seen under another.",
			Cases:  []string{"scope/fresh-key-executes"},
			change: keylayer.Mutation{Intercept: bodySeen},
		}, {
			Name: "get-answered", Description: "A GET that carries a key is answered from the store.",
			Cases: []string{"scope/safe-method-not-answered"},
			change: keylayer.Mutation{Safe: func(l *keylayer.Layer, x *keylayer.Exchange) *keylayer.Answer {
				x.Key = keylayer.ReadKey(l.Profile, x.Request, nil)
				e, known := l.Store.Peek(l.Scope(x))
				if !x.Key.Present || !known || e.Answer == nil {
					return nil
				}
				return l.ReplayAnswer(e.Answer)
			}},
		},
	}
}

// without leaves one part out of the fingerprint.
func without(part int) keylayer.Mutation {
	return keylayer.Mutation{Print: func(_ *http.Request, parts []string) []string {
		parts[part] = ""
		return parts
	}}
}

// bodySeen remembers bodies in the store beside the keys.
func bodySeen(l *keylayer.Layer, x *keylayer.Exchange) *keylayer.Answer {
	if !x.Key.Present || x.Key.Err != nil || len(x.Body) == 0 {
		return nil
	}
	e, said := l.Store.Begin(keylayer.DigestOf("body", string(x.Body)), keylayer.DigestOf(x.Key.Key), time.Now())
	switch said {
	case keylayer.Fresh:
		l.Store.Finish(e, &keylayer.Answer{})
	case keylayer.Mismatch:
		return keylayer.Problem(l.Profile, http.StatusUnprocessableEntity, "this payload was sent before", "")
	}
	return nil
}
