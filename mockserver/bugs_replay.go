package mockserver

import (
	"math"
	"net/http"
	"slices"
)

// smallStore is how many keys the store that is too small remembers.
const smallStore = 32

// replayBugs give the stored answer wrongly, or have it no more.
func replayBugs() []Bug { return slices.Concat(repeatBugs(), memoryBugs()) }

// repeatBugs give a repeat something else than the first answer.
func repeatBugs() []Bug {
	return []Bug{
		{
			Name: "replay-rejected", Description: "Every identical repeat is refused as a conflict.",
			Cases: []string{"replay/answered"},
			change: mutation{claimed: func(s *Server, _ *exchange, _ *entry, said claim) *answer {
				if said != replayed {
					return nil
				}
				return s.inProgressAnswer()
			}},
		}, {
			Name: "replay-executes", Description: "A repeat gets the stored answer, but is executed as well.",
			Cases: []string{"replay/effects-once"},
			change: mutation{claimed: func(s *Server, x *exchange, _ *entry, said claim) *answer {
				if said == replayed {
					s.run(x)
				}
				return nil
			}},
		}, {
			Name: "replay-loses-status", Description: "A repeat is always answered 200.",
			Cases:  []string{"replay/status"},
			change: onReplay(func(a, _ *answer) { a.status = http.StatusOK }),
		}, {
			Name: "replay-loses-body", Description: "A repeat gets an empty body.",
			Cases:  []string{"replay/body-bytes"},
			change: onReplay(func(a, _ *answer) { a.body = nil }),
		}, {
			Name: "replay-cuts-body", Description: "A repeat gets at most the first 64 bytes of the body.",
			Cases:  []string{"replay/large-body"},
			change: onReplay(func(a, _ *answer) { a.body = a.body[:min(len(a.body), 64)] }),
		}, {
			Name: "replay-loses-type", Description: "A repeat has no Content-Type of its own.",
			Cases:  []string{"replay/headers"},
			change: onReplay(func(a, _ *answer) { a.header.Set("Content-Type", "text/plain; charset=utf-8") }),
		}, {
			Name: "replay-loses-location", Description: "A repeat has no Location.",
			Cases:  []string{"replay/headers"},
			change: onReplay(func(a, _ *answer) { a.header.Del("Location") }),
		}, {
			Name: "replay-gives-cookie", Description: "A repeat gets the Set-Cookie of the first caller.",
			Cases: []string{"replay/no-set-cookie"},
			change: onReplay(func(a, stored *answer) {
				if cookies := stored.header.Values("Set-Cookie"); len(cookies) > 0 {
					a.header["Set-Cookie"] = cookies
				}
			}),
		}, {
			Name: "first-marked", Description: "The first answer is marked as a replay.",
			Cases: []string{"replay/not-marked-when-first"},
			change: mutation{shape: func(s *Server, _ *exchange, said claim, a *answer) {
				if p := s.cfg.Profile; said == fresh && len(p.Replay) > 0 {
					a.header = a.header.Clone()
					a.header.Set(p.Replay[0].Header, firstOr(p.Replay[0].Has, "true"))
				}
			}},
		},
	}
}

// memoryBugs forget too early, or too late.
func memoryBugs() []Bug {
	return []Bug{
		{
			Name: "store-too-small", Description: "Only the last 32 keys are remembered, so that live ones are forgotten.",
			Cases:  []string{"replay/after-100-requests"},
			change: mutation{setup: func(s *Server) { s.store.limit = smallStore }},
		}, {
			Name: "expires-early", Description: "Keys are forgotten after a tenth of their window.",
			Cases:  []string{"time/not-before"},
			change: mutation{setup: func(s *Server) { s.store.window /= 10 }},
		}, {
			Name: "never-expires", Description: "Keys are never forgotten.",
			Cases:  []string{"time/expires"},
			change: mutation{setup: func(s *Server) { s.store.window = math.MaxInt64 }},
		},
	}
}

// onReplay changes an answer that was given from the store.
func onReplay(change func(a, stored *answer)) mutation {
	return mutation{shape: func(_ *Server, x *exchange, said claim, a *answer) {
		if said == replayed {
			change(a, x.entry.answer)
		}
	}}
}
