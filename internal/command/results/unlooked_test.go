package results_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestEndOfAnotherRequest: a call of a closed client tells the end of the operation under its key, and has not compared its request with that one: the result is unknown,
// whatever that end was.
func TestEndOfAnotherRequest(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusCreated, http.StatusPaymentRequired, http.StatusNotFound} {
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"code":"x"}`)
		})
		j := memory.New()
		call := func(body string, closed bool) error {
			c, err := oncehttp.New(oncehttp.Config{Journal: j})
			if err != nil {
				t.Fatal(err)
			}
			if closed {
				_ = c.Close()
			}
			req, _ := http.NewRequest(http.MethodPost, s.URL, strings.NewReader(body))
			resp, err := c.DoKey(req, "k")
			if err == nil {
				_ = resp.Body.Close()
			}
			_ = c.Close()
			return err
		}
		if err := call("1", false); err != nil {
			t.Fatal(err)
		}
		if l := results.Failed("k", call("2", true)); l.Result != results.Unknown || l.Exit != 3 || l.Error == nil {
			t.Errorf("after a %d: %s, status %d, error %+v", status, l.Result, l.Exit, l.Error)
		}
	}
}
