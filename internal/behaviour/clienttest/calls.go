package clienttest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// Post returns a POST request with this body in JSON, to the address of payments.
func Post(t *testing.T, body string) *http.Request {
	t.Helper()
	return Request(t, "POST", "https://api.example.com/payments?via=test", body)
}

// Request returns a request with this body, in JSON.
func Request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// Lookup returns the record of a key.
func Lookup(t *testing.T, c *oncehttp.Client, key oncehttp.Key) persist.Record {
	t.Helper()
	rec, err := c.Lookup(context.Background(), key)
	if err != nil {
		t.Fatalf("Lookup(%q): %v", key, err)
	}
	return rec
}

// Read returns the body of a response, and closes it.
func Read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the body: %v", err)
	}
	resp.Body.Close()
	return string(b)
}

// Resumed is a pair yielded by Resume.
type Resumed struct {
	Result oncehttp.Result
	Err    error
}

// Resume makes one whole pass (runs each due operation once), and returns its results by key.
func Resume(t *testing.T, c *oncehttp.Client) map[oncehttp.Key]Resumed {
	t.Helper()
	all := map[oncehttp.Key]Resumed{}
	for r, err := range c.Resume(t.Context()) {
		if _, twice := all[r.Key]; twice {
			t.Errorf("%q was yielded twice", r.Key)
		}
		all[r.Key] = Resumed{r, err}
	}
	return all
}

// Pass makes one whole pass of Resume (runs each due operation once). The pass must have no error.
func Pass(t *testing.T, c *oncehttp.Client) {
	t.Helper()
	for _, err := range c.Resume(t.Context()) {
		if err != nil {
			t.Error(err)
		}
	}
}

// Run begins a Run in the background, in virtual time, and returns once the Run is idle; stop ends it and returns its error.
func Run(t *testing.T, c *oncehttp.Client) (stop func() error) {
	t.Helper()
	stop = Start(t, c)
	synctest.Wait()
	return stop
}

// Start begins a Run in the background; stop ends it and returns its error.
func Start(t *testing.T, c *oncehttp.Client) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- c.Run(ctx) }()
	return func() error {
		cancel()
		return <-result
	}
}

// Do sends the request under a key, and returns its response. An error fails the test.
func Do(t *testing.T, c *oncehttp.Client, req *http.Request, key oncehttp.Key) *http.Response {
	t.Helper()
	resp, err := c.DoKey(req, key)
	if err != nil {
		t.Fatalf("%q: %v", key, err)
	}
	return resp
}

// SDK sends as a generated SDK does: through StandardClient, with a key of its own in the header; with "" it names none, and the client makes one.
func SDK(t *testing.T, c *oncehttp.Client, key string) (*http.Response, error) {
	t.Helper()
	req := Post(t, "{}")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return c.StandardClient().Do(req)
}
