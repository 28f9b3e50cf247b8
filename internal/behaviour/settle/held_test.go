package settle_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// A held operation keeps the server's last answer for whoever has to settle it;
// once it is settled, that answer is nobody's answer.
func TestHeldKeepsItsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 500, Header: "Idempotent-Replayed: true", Body: `{"error":"stored"}`}}}
		c, _ := clienttest.New(t, w, nil)
		if _, err := c.DoKey(clienttest.Post(t, `{}`), "k1"); !errors.Is(err, oncehttp.ErrStoredError) {
			t.Fatalf("err = %v, want ErrStoredError", err)
		}
		rec := clienttest.Lookup(t, c, "k1")
		if rec.State != persist.StateHeld || rec.Answer == nil || rec.Answer.Status != 500 || string(rec.Answer.Body) != `{"error":"stored"}` {
			t.Fatalf("record is %v with answer %+v, want held with the stored 500", rec.State, rec.Answer)
		}
		if err := c.Settle(t.Context(), "k1", oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
			t.Fatal(err)
		}
		resp, err := c.DoKey(clienttest.Post(t, `{}`), "k1")
		if resp != nil || !errors.Is(err, oncehttp.ErrSettled) || !errors.Is(err, oncehttp.ErrAnswerGone) {
			t.Errorf("after Settle: %v, %v; want ErrSettled and ErrAnswerGone, and not the 500 as an answer", resp, err)
		}
		if w.Count() != 1 {
			t.Errorf("%d sends, want 1", w.Count())
		}
	})
}
