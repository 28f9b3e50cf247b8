package erase_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestErasedAndReplaced: of two tries of an intent the first had no effect, and the second took effect. Once both are erased, the record of the first does not tell any more
// which other one there was. A call with its key is told that it is final, and neither that it was refused nor that nothing happened: its program might charge under
// another key. (Invariants 1, 2, 54 and 57.)
func TestErasedAndReplaced(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		first wiretest.Reply
		begin func(t *testing.T, c *oncehttp.Client)
	}{
		"refused and redriven": {wiretest.Reply{Status: 402}, func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Enqueue(post(t, card), "k"))
			clienttest.Resume(t, c)
			_, err := c.Redrive(t.Context(), "k")
			clienttest.Must(t, err)
			clienttest.Resume(t, c)
		}},
		"absent and rekeyed": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.DoKey(post(t, card), "k")
			clienttest.Absent(t, c, "k")
			clienttest.Must(t, clienttest.RekeyAsSeen(c, t.Context(), "k", "other", "it is not there"))
			clienttest.Resume(t, c)
		}},
		"forgotten and skipped": {wiretest.Reply{Refused: true}, func(t *testing.T, c *oncehttp.Client) {
			if _, err := c.DoKey(post(t, card), "k"); !errors.Is(err, oncehttp.ErrNoEffect) {
				t.Fatal(err)
			}
			resp, err := c.DoKey(post(t, card), "k:gen=2")
			clienttest.Must(t, err)
			_ = resp.Body.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{r.first, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, keeping))
				r.begin(t, c)
				time.Sleep(long)
				clienttest.Must(t, c.Erase(t.Context(), "k"))
				for how, call := range map[string]func() error{
					"the same":   func() error { _, err := c.DoKey(post(t, card), "k"); return err },
					"another":    func() error { _, err := c.DoKey(post(t, `{}`), "k"); return err },
					"enqueued":   func() error { return c.Enqueue(post(t, card), "k") },
					"unreadable": func() error { _, err := c.DoKey(unreadable(t), "k"); return err },
				} {
					err := call()
					e := new(oncehttp.Error)
					if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || errors.Is(err, oncehttp.ErrNoEffect) || e.Effect() != persist.EffectUnknown {
						t.Errorf("%s: %v, effect %q; want nothing of the effect", how, err, e.Effect())
					}
					if how != "unreadable" && !errors.Is(err, oncehttp.ErrFinal) {
						t.Errorf("%s: %v, want ErrFinal", how, err)
					}
				}
				if w.Count() != 2 {
					t.Errorf("%d sends", w.Count())
				}
			})
		})
	}
}

// unreadable is a request with a body that breaks off.
func unreadable(t *testing.T) *http.Request {
	t.Helper()
	req := post(t, card)
	req.Body, req.GetBody = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)), nil
	return req
}
