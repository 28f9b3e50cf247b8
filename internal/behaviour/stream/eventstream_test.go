package stream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestEventStream: a success that is told in events has decided with its head. It is sent once; the caller reads each event when it comes,
// however long the server is silent; the record is confirmed without the body. A failure in this form is read as any other.
func TestEventStream(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		status int
		kind   string
		sends  int32 // at least
		stream bool
	}{
		"200":             {200, "text/event-stream", 1, true},
		"202":             {202, "Text/Event-Stream ; charset=utf-8", 1, true},
		"503":             {503, "text/event-stream", 2, false},
		"of another name": {200, "text/event-streams", 2, false},
		"of parts":        {200, "multipart/x-mixed-replace; boundary=text/event-stream", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var sends atomic.Int32
				rt := pipes(t, func(w http.ResponseWriter, req *http.Request) {
					sends.Add(1)
					w.Header().Set("Content-Type", r.kind)
					w.WriteHeader(r.status)
					for n := range 3 {
						_, _ = fmt.Fprintf(w, "data: %d\n", n)
						_ = http.NewResponseController(w).Flush()
						nap(req, 10*time.Minute)
					}
				})
				c, _ := clienttest.New(t, rt, nil)
				resp, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
				rec := clienttest.Lookup(t, c, "k")
				if !r.stream {
					if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || sends.Load() < r.sends {
						t.Errorf("%v after %d sends, want it in doubt", err, sends.Load())
					}
					return
				}
				if err != nil || resp.StatusCode != r.status || rec.State != persist.StateConfirmed || !rec.Answer.BodyDropped || len(rec.Answer.Body) != 0 {
					t.Fatalf("%v, record %v", err, rec.State)
				}
				lines, start := bufio.NewReader(resp.Body), time.Now()
				for n := range 3 {
					line, err := lines.ReadString('\n')
					if after := time.Since(start); err != nil || line != fmt.Sprintf("data: %d\n", n) || after != time.Duration(n)*10*time.Minute {
						t.Errorf("%q, %v after %v", line, err, after)
					}
				}
				if _, err := lines.ReadByte(); err != io.EOF || sends.Load() != 1 {
					t.Errorf("%v after %d sends", err, sends.Load())
				}
				resp.Body.Close()
			})
		})
	}
}

// TestEventStreamEndsWithTheCaller, with its context and when it closes the body; Resume and Close wait for no event.
func TestEventStreamEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		rt := pipes(t, func(w http.ResponseWriter, req *http.Request) {
			open.Add(1)
			defer open.Add(-1)
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			nap(req, 1000*time.Hour)
		})
		c, _ := clienttest.New(t, rt, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		resp, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}").WithContext(ctx), "k")
		if err != nil {
			t.Fatal(err)
		}
		gone := errors.New("the shopper left")
		time.AfterFunc(time.Hour, func() { cancel(gone) })
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, gone) {
			t.Errorf("%v, want the caller's cause", err)
		}
		resp.Body.Close()
		if resp, err = c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "closed"); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if err := c.Enqueue(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "e"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if got := clienttest.Resume(t, c)["e"]; got.Err != nil || got.Result.Outcome != oncehttp.OutcomeConfirmed {
			t.Errorf("%+v", got)
		}
		if err := c.Close(); err != nil || time.Since(start) > time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Second)
		if n := open.Load(); n != 0 {
			t.Errorf("%d streams are still open", n)
		}
	})
}
