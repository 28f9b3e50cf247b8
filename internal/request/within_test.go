package request

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// endsAt is a context that ends when it is asked for the nth time whether it has.
type endsAt struct {
	context.Context
	left  atomic.Int32
	ended chan struct{}
}

func (c *endsAt) Done() <-chan struct{} { return c.ended }

func (c *endsAt) Err() error {
	left := c.left.Add(-1)
	if left > 0 {
		return nil
	}
	if left == 0 {
		close(c.ended)
	}
	return context.Canceled
}

// closeOnly is a body that says when it is closed.
type closeOnly struct {
	*strings.Reader
	closed chan struct{}
}

func (b closeOnly) Close() error {
	close(b.closed)
	return nil
}

// TestClosedWheneverTheContextEnds: the body of a request is closed, at whatever look the context has ended.
func TestClosedWheneverTheContextEnds(t *testing.T) {
	for n := range int32(12) {
		ctx := &endsAt{Context: t.Context(), ended: make(chan struct{})}
		ctx.left.Store(n + 1)
		body := closeOnly{strings.NewReader("{}"), make(chan struct{})}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://a.test/pay", body)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = reader().Read(req, profile.Draft07(), Given{Keys: []string{"k"}})
		select {
		case <-body.closed:
		case <-time.After(5 * time.Second):
			t.Errorf("the context ends at look %d: error %v, and the body is left open", n+1, err)
		}
	}
}
