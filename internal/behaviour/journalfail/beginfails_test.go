package journalfail_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestAnswerWithoutBegin: the journal writes no more (a full disk, a server in a failover), and reads as before. The call of an operation that has
// ended gives the recorded answer; a call of another request gives none, and nothing is sent. (Invariant 5.)
func TestAnswerWithoutBegin(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	j := &journaltest.Faulty{Journal: memory.New()}
	wire := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: `{"id":"pay_1"}`}}}
	c, _ := clienttest.New(t, wire, func(cfg *oncehttp.Config) { cfg.Journal = j })
	if _, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k"); err != nil {
		t.Fatal(err)
	}
	j.OnBegin = func() error { return full }
	resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k")
	if err != nil {
		t.Fatalf("%v, want the recorded answer", err)
	}
	if body := clienttest.Read(t, resp); resp.StatusCode != http.StatusCreated || body != `{"id":"pay_1"}` || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
		t.Errorf("%d %s, %+v", resp.StatusCode, body, oncehttp.ResultOf(resp))
	}
	if _, err := c.DoKey(clienttest.Post(t, `{"amount":2}`), "k"); !errors.Is(err, full) {
		t.Errorf("another request under the key: %v", err)
	}
	if _, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), "k2"); !errors.Is(err, full) || !errors.Is(err, oncehttp.ErrNoEffect) {
		t.Errorf("another key: %v", err)
	}
	if n := wire.Count(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}
