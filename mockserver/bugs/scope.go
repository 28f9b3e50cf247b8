package bugs

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// The indexes of the parts of a fingerprint (Mutation.Print).
const (
	printMethod = 0
	printPath   = 1
	printQuery  = 2
	printType   = 3
)

// scopeBugs returns the bugs about the request named by a key, or about its owner.
func scopeBugs() []Bug {
	return slices.Concat(mismatchBugs(), refusalBugs(), principalBugs(), targetBugs(), framingBugs())
}

// mismatchBugs returns the bugs of a server that takes another request under a used key for the same one, or executes it. Cases are the test cases
// that must find the bug. Print changes what is compared of a request: method, path, query, Content-Type, and the body last. Claimed may answer when
// the key has been looked up; result is what was found. Nil: go on as a correct server.
func mismatchBugs() []Bug {
	return []Bug{
		{
			Name: "mismatch-silent", Description: "Another body under a known key is answered with the first answer.",
			Impact: "The customer changes the amount, is told 201, and the old amount is charged.",
			Cases:  []string{"conflict/not-silent"},
			change: mutation{Print: func(_ *http.Request, parts []string) []string {
				return parts[:len(parts)-1]
			}},
		}, {
			Name: "mismatch-executed", Description: "Another request under a known key is executed too.",
			Impact: "A reused key pays both amounts.",
			Cases:  []string{"conflict/not-executed"},
			change: mutation{Claimed: func(l *layer, x *exchange, e *entry, result claim) *answer {
				if result == keylayer.Mismatch && e.Answer != nil {
					return x.Execute()
				}
				return nil
			}},
		}, {
			Name: "mismatch-in-flight-executed", Description: "While the first request is handled, another one under its key is executed too.",
			Impact: "Two requests under one key at the same time both charge the customer.",
			Cases:  []string{"inflight/other-body"},
			change: mutation{Claimed: func(l *layer, x *exchange, e *entry, result claim) *answer {
				if result == keylayer.Mismatch && e.Answer == nil {
					return x.Execute()
				}
				return nil
			}},
		}, {
			Name: "mismatch-replaces", Description: "A refused mismatch takes the key over: the first answer is forgotten.",
			Impact: "After a refused mistake the retry of the first payment charges the customer again.",
			Cases:  []string{"conflict/original-survives"},
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Mismatch {
					l.Store.Expire(l.Scope(x))
				}
				return nil
			}},
		},
	}
}

// refusalBugs returns the bugs of a server that refuses another request under a used key in a misleading way. Cases are the test cases that must find
// the bug. Claimed may answer when the key has been looked up; result is what was found. Nil: go on as a correct server. Shape changes an answer
// before it is sent.
func refusalBugs() []Bug {
	return []Bug{
		{
			Name: "mismatch-500", Description: "Another request under a known key is answered 500.",
			Impact: "A client with a reused key tries again for ever instead of being told what is wrong.",
			Cases:  []string{"conflict/rejected-status"},
			change: mutation{Claimed: func(l *layer, _ *exchange, _ *entry, result claim) *answer {
				return failure(l, result == keylayer.Mismatch)
			}},
		}, {
			Name: "mismatch-as-in-progress", Description: "Another request under a known key is told that the first is in progress, for ever.",
			Impact: "A client with a reused key asks again until it gives up, and never learns why.",
			Cases:  []string{"conflict/rejected-status"},
			change: mutation{Claimed: func(l *layer, _ *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Mismatch {
					return l.InProgressAnswer()
				}
				return nil
			}},
		}, {
			Name: "mismatch-swallowed", Description: "Another request under a known key is told 200, and nothing is done.",
			Impact: "The second order of a customer is confirmed and never made.",
			Cases:  []string{"conflict/not-silent"},
			change: mutation{Claimed: func(_ *layer, _ *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Mismatch {
					return keylayer.JSONAnswer(http.StatusOK, keylayer.JSONType, map[string]string{"status": "ok"})
				}
				return nil
			}},
		}, {
			Name: "mismatch-bare", Description: "The refusal of a mismatch is neither problem+json nor has a link.",
			Impact: "The client's developer is told no, and not why.",
			Cases:  []string{"conflict/error-shape"},
			change: mutation{Shape: func(_ *layer, _ *exchange, result claim, a *answer) {
				if result == keylayer.Mismatch {
					a.Header = http.Header{"Content-Type": {"text/plain"}}
					a.Body = []byte("no")
				}
			}},
		}, {
			Name: "mismatch-leaks", Description: "The refusal of a mismatch shows the stored answer.",
			Impact: "Whoever guesses a key reads what a stranger has bought.",
			Cases:  []string{"conflict/no-leak"},
			change: mutation{Claimed: func(l *layer, _ *exchange, e *entry, result claim) *answer {
				if result != keylayer.Mismatch || e.Answer == nil {
					return nil
				}
				return keylayer.Problem(l.Profile, http.StatusUnprocessableEntity, keylayer.TitleUsed, string(e.Answer.Body))
			}},
		},
	}
}

// targetBugs returns the bugs of a server that does not compare a part of the request's target. Cases are the test cases that must find the bug.
func targetBugs() []Bug {
	return []Bug{
		{
			Name: "other-path-answered", Description: "A key that was used on one path answers every other.",
			Impact: "A refund is answered with the payment, and never happens.",
			Cases:  []string{"scope/other-path-not-answered"}, change: without(printPath),
		}, {
			Name: "other-method-answered", Description: "A key that was used with one method answers every other.",
			Impact: "A change is answered with the creation, and never happens.",
			Cases:  []string{"scope/other-method"}, change: without(printMethod),
		}, {
			Name: "other-query-answered", Description: "The query is not part of what a key names.",
			Impact: "A request with another query is answered with the first one's result.",
			Cases:  []string{"scope/other-query"}, change: without(printQuery),
		},
	}
}

// principalBugs returns the bugs of a server that mistakes one caller for another. Cases are the test cases that must find the bug. Scope changes the
// texts under which a key is stored: the caller first, the key last. Print changes what is compared of a request: method, path, query, Content-Type,
// and the body last.
func principalBugs() []Bug {
	return []Bug{
		{
			Name: "other-principal-answered", Description: "Another caller with the same key gets the stored answer.",
			Impact: "A customer is shown a stranger's payment, and his own is never made.",
			Cases:  []string{"scope/other-principal-not-answered"},
			change: mutation{Scope: func(_ *exchange, parts []string) []string {
				return parts[len(parts)-1:]
			}},
		}, {
			Name: "principal-scheme-only", Description: "Callers are told apart by the scheme of their credential alone: all bearers are one.",
			Impact: "A customer is shown a stranger's payment, and his own is never made.",
			Cases:  []string{"scope/other-principal-not-answered"},
			change: mutation{Scope: func(_ *exchange, parts []string) []string {
				parts[0], _, _ = strings.Cut(parts[0], " ")
				return parts
			}},
		}, {
			Name: "other-principal-refused", Description: "A key that a stranger has used is refused as a mismatch.",
			Impact: "A customer cannot pay because a stranger has the same key, and whoever tries keys learns which are taken.",
			change: mutation{
				Scope: func(_ *exchange, parts []string) []string { return parts[len(parts)-1:] },
				Print: func(r *http.Request, parts []string) []string { return append(parts, r.Header.Get("Authorization")) },
			},
		}, {
			Name: "connection-scoped", Description: "A key is known on its own connection only.",
			Impact: "A retry on a new connection, which is what a retry is, charges the customer again.",
			Cases:  []string{"replay/effects-once"},
			change: mutation{Scope: func(x *exchange, parts []string) []string {
				return append(parts, x.Request.RemoteAddr)
			}},
		},
	}
}

// framingBugs returns the bugs of a server that takes another HTTP framing for another request, or honours keys on methods without an effect. Cases
// are the test cases that must find the bug. Safe may answer a request without an effect, such as a GET; nil: go on as a correct server. Intercept
// may answer before the key is looked up; nil: go on as a correct server. Print changes what is compared of a request: method, path, query,
// Content-Type, and the body last.
func framingBugs() []Bug {
	return []Bug{
		{
			Name: "chunked-differs", Description: "A chunked body is another request than the same bytes with a length.",
			Impact: "A retry through a proxy that changes the framing is refused: the customer never learns the outcome.",
			Cases:  []string{"net/chunked-equals-length"},
			change: mutation{Print: func(r *http.Request, parts []string) []string {
				return append(parts, strconv.FormatBool(r.ContentLength < 0))
			}},
		}, {
			Name: "fresh-key-refused", Description: "A fresh key is refused because its body was seen under another.",
			Impact: "A customer who buys the same thing twice is refused the second time.",
			Cases:  []string{"scope/fresh-key-executes"},
			change: mutation{Intercept: bodySeen},
		}, {
			Name: "get-claims-key", Description: "A GET that carries a key claims it: the POST that follows is refused.",
			Impact: "A client that sends its key on every request cannot pay.",
			Cases:  []string{"scope/head-options"},
			change: mutation{Safe: func(l *layer, x *exchange) *answer {
				if x.Key = keylayer.ReadKey(l.Profile, x.Request, nil); x.Key.Present && x.Key.Err == nil {
					if e, result := l.Store.Begin(l.Scope(x), l.Fingerprint(x.Request, nil), time.Now()); result == keylayer.Fresh {
						l.Store.Finish(e, keylayer.JSONAnswer(http.StatusOK, keylayer.JSONType, nil))
					}
				}
				return nil
			}},
		}, {
			Name: "get-answered", Description: "A GET that carries a key is answered from the store.",
			Impact: "A read with a key shows an old state.",
			Cases:  []string{"scope/safe-method-not-answered"},
			change: mutation{Safe: func(l *layer, x *exchange) *answer {
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

// without returns a mutation (a deliberate bug): the fingerprint lacks one part, such as the path, so that requests that differ in it are taken for
// the same. part is one of the indexes above.
func without(part int) mutation {
	return mutation{Print: func(_ *http.Request, parts []string) []string {
		parts[part] = ""
		return parts
	}}
}

// bodySeen is a Mutation.Intercept, called before the key is claimed. It refuses a body that was seen under another key; nil means that the request
// goes on as at a correct server. The store of keys also keeps the bodies: the body's digest in the place of a key, and the key in the place of what
// is compared.
func bodySeen(l *layer, x *exchange) *answer {
	if !x.Key.Present || x.Key.Err != nil || len(x.Body) == 0 {
		return nil
	}
	e, result := l.Store.Begin(keylayer.DigestOf("body", string(x.Body)), keylayer.DigestOf(x.Key.Key), time.Now())
	switch result {
	case keylayer.Fresh:
		l.Store.Finish(e, &answer{})
	case keylayer.Mismatch:
		return keylayer.Problem(l.Profile, http.StatusUnprocessableEntity, "this payload was sent before", "")
	}
	return nil
}
