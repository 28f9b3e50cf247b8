package crash

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestSendOfADeadProcessCounts: a process that died within its send had no time to count it. The next one does: the record counts what may have been sent.
func TestSendOfADeadProcessCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left persist.Journal
		j := memory.New()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}, Before: func(int, *http.Request) {
			if left == nil {
				left = journaltest.Survivors(t, j)
			}
		}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		clienttest.Do(t, c, clienttest.Post(t, "{}"), "k") // killed within
		time.Sleep(10 * time.Minute)                       // its lease ends
		next, _ := clienttest.New(t, w, clienttest.On(left))
		if how := oncehttp.ResultOf(clienttest.Do(t, next, clienttest.Post(t, "{}"), "k")); how.Sends != 2 {
			t.Errorf("the result counts %d sends, want 2", how.Sends)
		}
		if rec := clienttest.Lookup(t, next, "k"); rec.State != persist.StateConfirmed || rec.Sends != w.Count() || w.Count() != 2 {
			t.Errorf("%v with %d sends on record, the server got %d; want confirmed with 2", rec.State, rec.Sends, w.Count())
		}
	})
}
