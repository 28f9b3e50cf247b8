package stream_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// dripping answers with a word each gap, n times.
func dripping(sends *atomic.Int32, gap time.Duration, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		sends.Add(1)
		for range n {
			if _, err := io.WriteString(w, "word "); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			nap(req, gap)
		}
	}
}

// TestAnswerTimeoutBoundsTheWholeAnswer: an answer that flows is read to its end if that comes within AnswerTimeout;
// one that comes later is cut and unknown, however steadily it flows.
func TestAnswerTimeoutBoundsTheWholeAnswer(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		words int
		whole bool
	}{{10, true}, {11, false}} { // the end comes a gap after the last word
		synctest.Test(t, func(t *testing.T) {
			var sends atomic.Int32
			c, _ := clienttest.New(t, pipes(t, dripping(&sends, 29*time.Second, r.words)), func(cfg *oncehttp.Config) {
				cfg.Retry = oncehttp.Policy{MaxAttempts: 1, AnswerTimeout: 291 * time.Second}
			})
			start := time.Now()
			resp, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
			took := time.Since(start)
			if r.whole {
				if err != nil || clienttest.Read(t, resp) != strings.Repeat("word ", r.words) {
					t.Errorf("%v after %v, want the whole body", err, took)
				}
				return
			}
			clienttest.ExactlyOne(t, err)
			if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "AnswerTimeout") || took != 291*time.Second {
				t.Errorf("%v after %v, want an unknown outcome for AnswerTimeout after 291s", err, took)
			}
		})
	}
}

// TestAnswerTimeoutBoundsEveryAttempt: answers that drip for ever hold neither Do nor a pass for longer than their
// attempts may take.
func TestAnswerTimeoutBoundsEveryAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sends atomic.Int32
		c, _ := clienttest.New(t, pipes(t, dripping(&sends, 29*time.Second, 1<<20)), nil)
		start := time.Now()
		_, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
		if took := time.Since(start); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || took > 5*time.Minute {
			t.Errorf("Do: %v after %v; want an unknown outcome within MaxElapsed and one answer", err, took)
		}
		time.Sleep(time.Hour)
		start = time.Now()
		for range c.Resume(t.Context()) {
		}
		if took := time.Since(start); took > 5*time.Minute {
			t.Errorf("a pass took %v", took)
		}
	})
}

// TestAnswerTimeoutLeavesTheRest: what is handed to the caller is not cut.
func TestAnswerTimeoutLeavesTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, pipes(t, endless), func(cfg *oncehttp.Config) {
			cfg.MaxResponseBytes, cfg.Retry.AnswerTimeout = 1000, time.Minute
		})
		resp, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
		if err != nil {
			t.Fatal(err)
		}
		if got := clienttest.Read(t, resp); len(got) != 2000+100*len("more") {
			t.Errorf("%d bytes of the rest", len(got))
		}
	})
}

// TestLeaseOutlastsAWholeAnswer: another process must not take over an operation whose answer still flows within its
// bounds, although a lease lasts seconds.
func TestLeaseOutlastsAWholeAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sends atomic.Int32
		j := memory.New()
		patient := func(cfg *oncehttp.Config) { cfg.Retry.AnswerTimeout = time.Hour }
		rt := pipes(t, dripping(&sends, 29*time.Second, 100))
		c, _ := clienttest.New(t, rt, clienttest.On(j, patient))
		other, _ := clienttest.New(t, rt, clienttest.On(journaltest.NewLeasing(j), patient))
		done := make(chan error)
		go func() {
			_, err := c.DoKey(clienttest.Request(t, "POST", "http://api.example.com/payments", "{}"), "k")
			done <- err
		}()
		for range 48 {
			time.Sleep(time.Minute)
			for _, err := range other.Resume(t.Context()) {
				t.Errorf("another process took it: %v", err)
			}
		}
		if err := <-done; err != nil || sends.Load() != 1 {
			t.Errorf("%v after %d sends, want 1", err, sends.Load())
		}
	})
}

// TestBodyShorterThanItsLength: whatever the transport, a body that ends before its Content-Length is cut off.
func TestBodyShorterThanItsLength(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sends := 0
		rt := wiretest.Func(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			resp := &http.Response{StatusCode: 201, ContentLength: 13, Body: io.NopCloser(strings.NewReader(`{"id":"p1"}  `[:11]))}
			if sends++; sends > 1 {
				resp.Body = io.NopCloser(strings.NewReader(`{"id":"p1"}  `))
			}
			return resp, nil
		})
		c, _ := clienttest.New(t, rt, nil)
		resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if err != nil || clienttest.Read(t, resp) != `{"id":"p1"}  ` || sends != 2 {
			t.Errorf("%v after %d sends, want the whole body from the second", err, sends)
		}
	})
}

// TestTruncatedJSON: a success whose JSON breaks off is not taken for the whole answer. Where only the end of the connection
// marks its end, it is asked for again, and the same bytes a second time hold it; else it is held at once, since nobody named a
// profile. Nothing else is suspected.
func TestTruncatedJSON(t *testing.T) {
	t.Parallel()
	const ends, long = wiretest.ThenHangUp + "HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n", `{"id":"p1","amount":100}`
	for name, r := range map[string]struct {
		answers []string
		body    string // of the response, unless it is held
		sends   int
		held    bool
	}{
		"cut, then whole":              {[]string{ends + long[:15], ends + long}, long, 2, false},
		"cut twice alike":              {[]string{ends + long[:15], ends + long[:15]}, "", 2, true},
		"cut, cut elsewhere, whole":    {[]string{ends + long[:15], ends + long[:9], ends + long}, long, 3, false},
		"an array":                     {[]string{ends + `[1,2`, ends + `[1,2,3]`}, `[1,2,3]`, 2, false},
		"whole":                        {[]string{ends + long}, long, 1, false},
		"with a length":                {[]string{"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\n" + `{"id"`}, "", 1, true},
		"chunked":                      {[]string{"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + `{"id"` + "\r\n0\r\n\r\n"}, "", 1, true},
		"no JSON":                      {[]string{ends + "id=p1&amo"}, "id=p1&amo", 1, false},
		"broken, but not broken off":   {[]string{ends + `{"id":}`}, `{"id":}`, 1, false},
		"an error's":                   {[]string{strings.Replace(ends, "201 Created", "400 Bad Request", 1) + `{"id"`}, `{"id"`, 1, false},
		"nothing":                      {[]string{ends}, "", 1, false},
		"broken off after blank space": {[]string{ends + " \n{", ends + " \n{}"}, " \n{}", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := wiretest.NewTap(t, r.answers...)
			c, _ := clienttest.New(t, wiretest.Transport(t), func(cfg *oncehttp.Config) { cfg.Retry = clienttest.Quick(5) })
			resp, err := c.DoKey(clienttest.Request(t, "POST", "http://"+p.Addr, "{}"), "k")
			var e *oncehttp.Error
			if r.held && errors.As(err, &e) && e.Sends == r.sends && errors.Is(err, oncehttp.ErrHeld) {
				return
			}
			if err != nil || r.held {
				t.Fatal(err)
			}
			if got := clienttest.Read(t, resp); got != r.body || oncehttp.ResultOf(resp).Sends != r.sends {
				t.Errorf("%q after %d sends, want %q after %d", got, oncehttp.ResultOf(resp).Sends, r.body, r.sends)
			}
		})
	}
}
