package secrets_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
)

// TestCauseOfAContext: an errgroup ends a call with the error of another request, an *url.Error with a token in its URL. Neither the note of
// the held operation, nor the log, nor the text of the error has the token, and errors.Is and errors.As find the cause in the error. (Invariant 21.)
func TestCauseOfAContext(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*oncehttp.Client, *http.Request) (*http.Response, error){
		"Do": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) { return c.DoKey(req, "k") },
		"Transport": func(c *oncehttp.Client, req *http.Request) (*http.Response, error) {
			return c.Transport().RoundTrip(req)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log clienttest.Log
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Body: `{"e":1}`, Header: "Content-Type: application/json"}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Logger = log.Logger() })
				sibling := &url.Error{Op: "Get", URL: "https://other.example.com/v1?access_token=canarysecret", Err: io.ErrUnexpectedEOF}
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(10*time.Millisecond, func() { cancel(sibling) })
				req := clienttest.Post(t, `{}`).WithContext(ctx)
				if name == "Transport" {
					req.Header.Set("Idempotency-Key", "k")
				}
				resp, err := call(c, req)
				if resp != nil {
					clienttest.Must(t, resp.Body.Close())
				}
				synctest.Wait()
				rec := clienttest.Lookup(t, c, "k")
				for where, text := range map[string]string{"note": rec.Note, "log": log.String()} {
					if strings.Contains(text, "canarysecret") {
						t.Errorf("the %s has the token: %s", where, text)
					}
				}
				if name == "Transport" {
					return // it has the answer of the first attempt
				}
				var found *url.Error
				if !errors.Is(err, sibling) || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &found) || found != sibling {
					t.Errorf("the cause is not found in %v", err)
				}
				if err != nil && strings.Contains(err.Error(), "canarysecret") {
					t.Errorf("the error has the token: %v", err)
				}
			})
		})
	}
}
