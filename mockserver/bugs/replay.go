package bugs

import (
	"math"
	"net/http"
	"slices"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
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
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, _ *keylayer.Exchange, _ *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				if said != keylayer.Replayed {
					return nil
				}
				return l.InProgressAnswer()
			}},
		}, {
			Name: "replay-executes", Description: "A repeat gets the stored answer, but is executed as well.",
			Cases: []string{"replay/effects-once"},
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, x *keylayer.Exchange, _ *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				if said == keylayer.Replayed {
					x.Execute()
				}
				return nil
			}},
		}, {
			Name: "replay-loses-status", Description: "A repeat is always answered 200.",
			Cases:  []string{"replay/status"},
			change: onReplay(func(a, _ *keylayer.Answer) { a.Status = http.StatusOK }),
		}, {
			Name: "replay-loses-body", Description: "A repeat gets an empty body.",
			Cases:  []string{"replay/body-bytes"},
			change: onReplay(func(a, _ *keylayer.Answer) { a.Body = nil }),
		}, {
			Name: "replay-cuts-body", Description: "A repeat gets at most the first 64 bytes of the body.",
			Cases:  []string{"replay/large-body"},
			change: onReplay(func(a, _ *keylayer.Answer) { a.Body = a.Body[:min(len(a.Body), 64)] }),
		}, {
			Name: "replay-loses-type", Description: "A repeat has no Content-Type of its own.",
			Cases:  []string{"replay/headers"},
			change: onReplay(func(a, _ *keylayer.Answer) { a.Header.Set("Content-Type", "text/plain; charset=utf-8") }),
		}, {
			Name: "replay-loses-location", Description: "A repeat has no Location.",
			Cases:  []string{"replay/headers"},
			change: onReplay(func(a, _ *keylayer.Answer) { a.Header.Del("Location") }),
		}, {
			Name: "replay-gives-cookie", Description: "A repeat gets the Set-Cookie of the first caller.",
			Cases: []string{"replay/no-set-cookie"},
			change: onReplay(func(a, stored *keylayer.Answer) {
				if cookies := stored.Header.Values("Set-Cookie"); len(cookies) > 0 {
					a.Header["Set-Cookie"] = cookies
				}
			}),
		}, {
			Name: "first-marked", Description: "The first answer is marked as a replay.",
			Cases: []string{"replay/not-marked-when-first"},
			change: keylayer.Mutation{Shape: func(l *keylayer.Layer, _ *keylayer.Exchange, said keylayer.Claim, a *keylayer.Answer) {
				if p := l.Profile; said == keylayer.Fresh && len(p.Replay) > 0 {
					a.Header = a.Header.Clone()
					a.Header.Set(p.Replay[0].Header, keylayer.FirstOr(p.Replay[0].Has, "true"))
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
			change: keylayer.Mutation{Setup: func(l *keylayer.Layer) { l.Store.Limit = smallStore }},
		}, {
			Name: "expires-early", Description: "Keys are forgotten after a tenth of their window.",
			Cases:  []string{"time/not-before"},
			change: keylayer.Mutation{Setup: func(l *keylayer.Layer) { l.Store.Window /= 10 }},
		}, {
			Name: "never-expires", Description: "Keys are never forgotten.",
			Cases:  []string{"time/expires"},
			change: keylayer.Mutation{Setup: func(l *keylayer.Layer) { l.Store.Window = math.MaxInt64 }},
		},
	}
}

// onReplay changes an answer that was given from the store.
func onReplay(change func(a, stored *keylayer.Answer)) keylayer.Mutation {
	return keylayer.Mutation{Shape: func(_ *keylayer.Layer, x *keylayer.Exchange, said keylayer.Claim, a *keylayer.Answer) {
		if said == keylayer.Replayed {
			change(a, x.Entry.Answer)
		}
	}}
}
