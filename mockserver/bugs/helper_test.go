package bugs_test

import (
	"context"
	"net/http"
	"testing/synctest"

	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
)

type (
	client  = mocktest.Client
	request = mocktest.Request
	reply   = mocktest.Reply
)

// postTruncated sends a request under the key "k" whose body ends after its first byte, and returns when the server has
// seen its end.
func postTruncated(cl *client) {
	cl.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cl.URL+"/payments", &mocktest.StopReader{Text: `{`, Stop: cancel})
	if err != nil {
		cl.T.Fatal(err)
	}
	req.ContentLength = 31
	req.Header.Set("Idempotency-Key", "k")
	if response, err := cl.HTTP.Do(req); err == nil {
		response.Body.Close()
	}
	synctest.Wait()
}
