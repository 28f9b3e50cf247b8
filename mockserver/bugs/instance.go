package bugs

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// replicaLag is the time for which replica-lag does not see a new key.
const replicaLag = time.Second

// inTurn returns a Mutation.Scope (it changes the name under which a key is stored): the requests with one key go to two instances by turns, and
// neither knows the other's keys. It counts per key, so other requests make no difference. It is safe for concurrent use.
func inTurn() func(*exchange, []string) []string {
	type turns struct{ latest, n uint64 } // the latest Exchange.Number, and the requests so far
	var mu sync.Mutex
	known := map[string]turns{}
	return func(x *exchange, parts []string) []string {
		mu.Lock()
		defer mu.Unlock()
		key := strings.Join(parts, "\x00")
		at := known[key]
		if at.latest != x.Number { // Scope is called more than once for a request
			at = turns{latest: x.Number, n: at.n + 1}
			known[key] = at
		}
		return append(parts, "instance "+strconv.FormatUint(at.n%2, 10))
	}
}

// instanceBugs returns the bugs of a server that runs as two instances, at once or one after the other. Hidden: the answers look right, and only a
// count of effects shows the bug. Cases are the test cases that must find the bug. Scope changes the texts under which a key is stored: the caller
// first, the key last. Begin looks the key up in the place of the store. KillLeaks leaves the key of a killed handler locked. Killed is called for
// each request that a restart has killed. Restarted is called after a restart.
func instanceBugs() []Bug {
	return []Bug{
		{
			Name: "two-instances", Description: "Two instances take turns, and each knows the keys of its own requests only.",
			Impact: "A retry that reaches the other instance charges the customer again.",
			Cases:  []string{"replay/effects-once"},
			change: mutation{Scope: inTurn()},
		}, {
			Name: "replica-lag", Description: "Keys are looked up in a replica that is a second behind.",
			Impact: "A retry that comes at once charges the customer again.",
			Cases:  []string{"replay/answered", "replay/effects-once"},
			change: mutation{Begin: func(l *layer, id, print digest) (*entry, claim) {
				if existing, known := l.Store.Peek(id); known && time.Since(existing.First) < replicaLag {
					return &entry{ID: id, Fingerprint: print, First: time.Now()}, keylayer.Fresh
				}
				return l.Store.Begin(id, print, time.Now())
			}},
		}, {
			Name: "restart-forgets", Description: "Keys are kept in memory: a restart forgets them all.",
			Impact: "After a deployment every retry charges its customer again.",
			Cases:  []string{"restart/replay-survives"},
			change: mutation{Restarted: func(l *layer) { l.Store.Reset() }},
		}, {
			Name: "restart-leaves-locks", Description: "What was being handled at a restart keeps its key locked.",
			Impact: "Whose payment was under way during a deployment never learns how it ended.",
			Cases:  []string{"restart/inflight-killed-resolves"},
			change: mutation{KillLeaks: true},
		}, {
			Name: "restart-runs-again", Description: "What was being handled at a restart is done by a recovery job, which knows nothing of keys.",
			Impact: "Whose payment was under way during a deployment is charged by the recovery and by the retry.", Hidden: true,
			Cases: []string{"restart/no-double-after-kill"},
			change: mutation{Killed: func(_ *layer, x *exchange) {
				restore := withoutFaults(x)
				defer restore()
				quietly(x)
			}},
		},
	}
}
