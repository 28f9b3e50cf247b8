package bugs

import (
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// replicaLag is how long replica-lag does not see what was just written.
const replicaLag = 150 * time.Millisecond

// instanceBugs go wrong when there are two servers, or one after the other.
func instanceBugs() []Bug {
	return []Bug{
		{
			Name: "two-instances", Description: "Two instances take turns, and each knows the keys of its own requests only.",
			Impact: "A retry that reaches the other instance charges the customer again.",
			change: mutation{Scope: func(x *exchange, parts []string) []string {
				return append(parts, "instance "+strconv.FormatUint(x.Number%2, 10))
			}},
		}, {
			Name: "replica-lag", Description: "Keys are looked up in a replica that is 150 ms behind.",
			Impact: "A retry that comes at once charges the customer again.",
			change: mutation{Begin: func(l *layer, id, print digest) (*entry, claim) {
				if existing, known := l.Store.Peek(id); known && time.Since(existing.First) < replicaLag {
					return &entry{ID: id, Fingerprint: print, First: time.Now()}, keylayer.Fresh
				}
				return l.Store.Begin(id, print, time.Now())
			}},
		}, {
			Name: "restart-forgets", Description: "Keys are kept in memory: a restart forgets them all.",
			Impact: "After a deployment every retry charges its customer again.",
			change: mutation{Restarted: func(l *layer) { l.Store.Reset() }},
		}, {
			Name: "restart-leaves-locks", Description: "What was being handled at a restart keeps its key locked.",
			Impact: "Whose payment was under way during a deployment never learns how it ended.",
			change: mutation{KillLeaks: true},
		}, {
			Name: "restart-runs-again", Description: "What was being handled at a restart is done by a recovery job, which knows nothing of keys.",
			Impact: "Whose payment was under way during a deployment is charged by the recovery and by the retry.", Hidden: true,
			change: mutation{Killed: func(_ *layer, x *exchange) {
				restore := withoutFaults(x)
				defer restore()
				quietly(x)
			}},
		},
	}
}
