package mockserver

import (
	"net/http"
	"slices"
	"strconv"
	"time"
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
			change: mutation{print: func(_ *http.Request, parts []string) []string {
				return parts[:len(parts)-1]
			}},
		}, {
			Name: "mismatch-executed", Description: "Another request under a known key is executed too.",
			Cases: []string{"conflict/not-executed"},
			change: mutation{claimed: func(s *Server, x *exchange, e *entry, said claim) *answer {
				if said == mismatch && e.answer != nil {
					return s.run(x)
				}
				return nil
			}},
		}, {
			Name: "mismatch-in-flight-executed", Description: "While the first request is handled, another one under its key is executed too.",
			Cases: []string{"inflight/other-body"},
			change: mutation{claimed: func(s *Server, x *exchange, e *entry, said claim) *answer {
				if said == mismatch && e.answer == nil {
					return s.run(x)
				}
				return nil
			}},
		}, {
			Name: "mismatch-replaces", Description: "A refused mismatch takes the key over: the first answer is forgotten.",
			Cases: []string{"conflict/original-survives"},
			change: mutation{claimed: func(s *Server, x *exchange, _ *entry, said claim) *answer {
				if said == mismatch {
					s.store.expire(s.scope(x))
				}
				return nil
			}},
		}, {
			Name: "mismatch-500", Description: "Another request under a known key is answered 500.",
			Cases: []string{"conflict/rejected-status"},
			change: mutation{claimed: func(s *Server, _ *exchange, _ *entry, said claim) *answer {
				return failure(s, said == mismatch)
			}},
		}, {
			Name: "mismatch-bare", Description: "The refusal of a mismatch is neither problem+json nor has a link.",
			Cases: []string{"conflict/error-shape"},
			change: mutation{shape: func(_ *Server, _ *exchange, said claim, a *answer) {
				if said == mismatch {
					a.header = http.Header{"Content-Type": {"text/plain"}}
					a.body = []byte("no")
				}
			}},
		}, {
			Name: "mismatch-leaks", Description: "The refusal of a mismatch shows the stored answer.",
			Cases: []string{"conflict/no-leak"},
			change: mutation{claimed: func(s *Server, _ *exchange, e *entry, said claim) *answer {
				if said != mismatch || e.answer == nil {
					return nil
				}
				return problem(s.cfg.Profile, http.StatusUnprocessableEntity, titleUsed, string(e.answer.body))
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
			change: mutation{scope: func(_ *exchange, parts []string) []string {
				return parts[len(parts)-1:]
			}},
		}, {
			Name: "connection-scoped", Description: "A key is known on its own connection only.",
			Cases: []string{"replay/effects-once"},
			change: mutation{scope: func(x *exchange, parts []string) []string {
				return append(parts, x.r.RemoteAddr)
			}},
		}, {
			Name: "chunked-differs", Description: "A chunked body is another request than the same bytes with a length.",
			Cases: []string{"net/chunked-equals-length"},
			change: mutation{print: func(r *http.Request, parts []string) []string {
				return append(parts, strconv.FormatBool(r.ContentLength < 0))
			}},
		}, {
			Name: "fresh-key-refused", Description: "A fresh key is refused because its body was seen under another.",
			Cases:  []string{"scope/fresh-key-executes"},
			change: mutation{intercept: bodySeen},
		}, {
			Name: "get-answered", Description: "A GET that carries a key is answered from the store.",
			Cases: []string{"scope/safe-method-not-answered"},
			change: mutation{safe: func(s *Server, x *exchange) *answer {
				x.key = readKey(s.cfg.Profile, x.r, nil)
				e, known := s.store.peek(s.scope(x))
				if !x.key.present || !known || e.answer == nil {
					return nil
				}
				return s.replayAnswer(e.answer)
			}},
		},
	}
}

// without leaves one part out of the fingerprint.
func without(part int) mutation {
	return mutation{print: func(_ *http.Request, parts []string) []string {
		parts[part] = ""
		return parts
	}}
}

// bodySeen remembers bodies in the store beside the keys.
func bodySeen(s *Server, x *exchange) *answer {
	if !x.key.present || x.key.err != nil || len(x.body) == 0 {
		return nil
	}
	e, said := s.store.begin(digestOf("body", string(x.body)), digestOf(x.key.key), time.Now())
	switch said {
	case fresh:
		s.store.finish(e, &answer{})
	case mismatch:
		return problem(s.cfg.Profile, http.StatusUnprocessableEntity, "this payload was sent before", "")
	}
	return nil
}
