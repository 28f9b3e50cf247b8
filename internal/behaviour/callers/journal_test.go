package callers_test

import (
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// wrapped is a journal inside another, as one that measures or traces.
type wrapped struct{ persist.Journal }

// Unwrap gives the journal inside.
func (w wrapped) Unwrap() persist.Journal { return w.Journal }

// TestClientsOfOneJournalShare their calls in flight, also where one of them sees the
// journal through a wrapper: two clients never send one operation side by side.
func TestClientsOfOneJournalShare(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		var wg sync.WaitGroup
		for _, j := range []persist.Journal{j, wrapped{j}, struct{ persist.Journal }{j}, wrapped{wrapped{j}}, j} {
			c, _ := clienttest.New(t, w, clienttest.On(j))
			wg.Go(func() {
				if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := c.Do(clienttest.Post(t, "{}").WithContext(oncehttp.ContextWithKey(t.Context(), "k2"))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if w.Count() != 2 {
			t.Errorf("%d sends, want one for each key", w.Count())
		}
	})
}
