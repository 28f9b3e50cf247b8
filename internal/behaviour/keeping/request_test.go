package keeping_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestRequestGoneIsNotSent: a process whose clock is ahead sweeps the body of a request before the window of its key is over. A call that would ask
// the server again for an answer too large to keep has then nothing to send, and says that the answer is gone. (Invariant 6.)
func TestRequestGoneIsNotSent(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "an answer of more than sixteen bytes"}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.Retry.MaxAttempts, cfg.MaxResponseBytes, cfg.KeepAnswer, cfg.KeepRequest = 1, 16, 72*time.Hour, oncehttp.DropRequestAfterEnd
		}))
		for range 2 { // the second call asks again, within the window
			resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if err != nil || resp.StatusCode != http.StatusCreated {
				t.Fatalf("%v, %v", resp, err)
			}
			clienttest.Read(t, resp)
		}
		ahead := persist.Limits{Now: time.Now().Add(25 * time.Hour), KeepAnswer: 72 * time.Hour}
		if n, err := j.Sweep(t.Context(), ahead); n != 1 || err != nil {
			t.Fatalf("the sweep changed %d records, %v", n, err)
		}
		if rec := clienttest.Lookup(t, c, "k"); !rec.RequestDropped || rec.Answer == nil {
			t.Fatalf("the request is there: %+v", rec)
		}
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if resp != nil || !errors.Is(err, oncehttp.ErrAnswerGone) {
			t.Errorf("after the sweep: %v, %v; want ErrAnswerGone", resp, err)
		}
		if w.Count() != 2 {
			t.Errorf("%d requests, want 2", w.Count())
		}
	})
}
