package redrive_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestIncomparableIsNotTold: an Enqueue whose request cannot be compared with that of a refused operation is told nothing of its end. So that stays untold, and
// is redriven in bulk. (Invariant 55.)
func TestIncomparableIsNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		account := func(cfg *oncehttp.Config) { cfg.Account = "shop" } // else their credentials already tell the two apart
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 404}}}
		one, _ := clienttest.New(t, w, clienttest.On(j, account))
		other, _ := clienttest.New(t, w, clienttest.On(j, account, func(cfg *oncehttp.Config) {
			cfg.SecretParameters = []string{"plan"}
			cfg.Authorize = func(*http.Request) error { return nil }
		}))
		req := clienttest.Post(t, `{"amount":1}`)
		req.URL.RawQuery = "plan=gold"
		clienttest.Must(t, one.Enqueue(req, "k"))
		clienttest.Resume(t, one)
		again := clienttest.Post(t, `{"amount":1}`)
		again.URL.RawQuery = "plan=silver"
		err := other.Enqueue(again, "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || clienttest.Lookup(t, one, "k").Told {
			t.Errorf("%v, told %t; want that the requests cannot be compared, and nothing told", err, clienttest.Lookup(t, one, "k").Told)
		}
		different := clienttest.Post(t, `{"amount":2}`)
		if err := one.Enqueue(different, "k"); !errors.Is(err, oncehttp.ErrKeyReused) || !clienttest.Lookup(t, one, "k").Told {
			t.Errorf("another request: %v, told %t", err, clienttest.Lookup(t, one, "k").Told)
		}
	})
}

// TestToldBeforeItsRequestIsRead: a call that fails before its request is read whole, and says that the operation of its key was refused, has told that. (Invariant 55.)
func TestToldBeforeItsRequestIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 404}}}, nil)
		if rec := enqueued(t, c, "k"); rec.Told {
			t.Fatal("told already")
		}
		wrong := clienttest.Post(t, `{"amount":1}`)
		wrong.ContentLength = 3
		_, err := c.DoKey(wrong, "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrFinal) || !clienttest.Lookup(t, c, "k").Told {
			t.Errorf("%v, told %t", err, clienttest.Lookup(t, c, "k").Told)
		}
	})
}
