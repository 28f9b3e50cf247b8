package keeping_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestKeyOutlastsWhatIsEnqueued: a program prepares the next generation of a key, and begins it in a transaction beside a Do of the key itself, which takes effect. Nobody sends the
// generation for hours, longer than the window and KeepKey. It finds the key all the same, and is held: there is no second effect. (Invariants 1, 34 and 54.)
func TestKeyOutlastsWhatIsEnqueued(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]func(*oncehttp.Config){
		"a time":          func(cfg *oncehttp.Config) { cfg.KeepAnswer, cfg.KeepKey = -1, time.Hour },
		"with the answer": func(cfg *oncehttp.Config) { cfg.KeepAnswer, cfg.KeepKey = time.Hour, -1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, keep, func(cfg *oncehttp.Config) { cfg.Profile = clienttest.OwnWindow(time.Hour) }))
				next, err := c.Prepare(clienttest.Post(t, `{"of":"one"}`), "k:gen=2")
				clienttest.Must(t, err)
				time.Sleep(time.Second)
				resp, err := c.DoKey(clienttest.Post(t, `{"of":"one"}`), "k")
				clienttest.Must(t, err)
				_ = resp.Body.Close()
				clienttest.Must(t, c.Flush(t.Context()))
				_, created, err := j.Begin(t.Context(), next)
				if err != nil || !created {
					t.Fatal(created, err)
				}
				time.Sleep(20 * time.Hour)
				_, err = c.Sweep(t.Context())
				clienttest.Must(t, err)
				clienttest.Resume(t, c)
				if rec := clienttest.Lookup(t, c, "k:gen=2"); w.Count() != 1 || rec.HoldReason != persist.HoldPredecessor {
					t.Errorf("%d sends, the generation is %v %q; want one, and held (predecessor)", w.Count(), rec.State, rec.HoldReason)
				}
				time.Sleep(5 * time.Hour)
				if _, err = c.Sweep(t.Context()); err != nil || len(journaltest.All(t, j)) != 1 {
					t.Errorf("swept, error %v: %d records, want the generation alone", err, len(journaltest.All(t, j)))
				}
			})
		})
	}
}
