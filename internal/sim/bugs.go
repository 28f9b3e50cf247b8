package sim

import (
	"net/http"

	"github.com/oncehttp/oncehttp/persist"
)

// Bug names a defect that is put in at a seam, to see that it is found. The zero
// value is none.
type Bug string

// The bugs.
const (
	BugSendBeforeSync Bug = "send before sync"
	BugTornCommit     Bug = "torn commit accepted"
)

// faulty is the journal with the bug.
func (w *world) faulty(j persist.Journal) persist.Journal { return j }

// transport is the client's transport with the bug.
func (b Bug) transport(rt http.RoundTripper) http.RoundTripper { return rt }
