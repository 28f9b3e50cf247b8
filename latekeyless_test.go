package oncehttp_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"testing"
	"testing/iotest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// slowLister writes ends late, and what it lists is as it was before that.
type slowLister struct{ *memory.Journal }

func (j slowLister) FinishLate(ctx context.Context, rec persist.Record) error {
	time.Sleep(3 * time.Second)
	return j.Finish(ctx, rec)
}

func (j slowLister) FinishesLate() persist.Journal { return j }

func (j slowLister) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		for rec, err := range j.Journal.List(ctx, q) {
			if time.Sleep(2 * time.Second); !yield(rec, err) {
				return
			}
		}
	}
}

// TestKeylessAfterALateEnd: a caller without a key that was told the answer of its last Do goes on, also where that ends in the
// journal while the next call looks at what is unresolved. A request that cannot be read says that it had no effect.
func TestKeylessAfterALateEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		server := &wire{replies: []reply{{status: 201, body: "first"}, {status: 201, body: "second"}}}
		c, _ := newClient(t, server, on(slowLister{memory.New()}))
		for _, want := range []string{"first", "second"} {
			resp, err := c.Do(post(t, "{}"))
			if err != nil {
				t.Fatalf("the %s Do: %v", want, err)
			}
			if got := read(t, resp); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		time.Sleep(2 * time.Second) // the end is written while this call looks; the second Do has looked twice
		broken := post(t, "{}")
		broken.Body, broken.GetBody, broken.ContentLength = io.NopCloser(iotest.ErrReader(errors.New("broken"))), nil, -1
		if _, err := c.Do(broken); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("a request that cannot be read: %v", err)
		}
	})
}
