package mockserver_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
)

// accesses collects what a server tells, without its times.
type accesses struct {
	mu   sync.Mutex
	told []string
}

func (a *accesses) add(e mockserver.Access) {
	a.mu.Lock()
	defer a.mu.Unlock()
	timed := ""
	if e.Begun.IsZero() || e.Took <= 0 {
		timed = " without a time"
	}
	a.told = append(a.told, fmt.Sprintf("%s %s key=%s %d %d %v replay=%v%s", e.Method, e.Path, e.Key, e.Status, e.Bytes, e.Fault.Kind, e.Replay, timed))
}

// Access is told once of each request, whatever became of it.
func TestAccess(t *testing.T) {
	t.Parallel()
	var got accesses
	server := mockserver.New(mockserver.Config{
		Access: got.add, MaxRequestBytes: 100,
		Script: []mockserver.Fault{
			{}, {}, {Kind: mockserver.DropBefore}, {Kind: mockserver.DropAfter}, {Kind: mockserver.CutBody, Bytes: 3},
			{Kind: mockserver.Answer, Status: 429, Body: "later"}, {Kind: mockserver.Duplicate}, {Kind: mockserver.KillIdle},
		},
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	send := func(method, target, key, body string) {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL()+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.GetBody = nil // net/http must not send again by itself
		req.Header.Set("Authorization", "Bearer secret")
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		resp, err := transport.RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // it may be cut off
			_ = resp.Body.Close()
		}
	}
	send("POST", "/payments?token=secret", "a", "{}")
	send("POST", "/payments?token=secret", "a", "{}")
	for _, key := range []string{"b", "c", "d", "e", "f"} {
		send("POST", "/payments", key, "{}")
	}
	send("POST", "/payments", "g", "{}") // its connection is dead afterwards
	send("POST", "/payments", "h", "{}")
	send("POST", "/payments", strings.Repeat("k", 300), "{}")
	send("POST", "/payments", "i", strings.Repeat("x", 101))
	send("GET", "/pay%0Aments/x", "j", "")
	send("HEAD", "/payments/x", "", "")
	send("GET", "/_effects?ref=secret", "", "")
	transport.CloseIdleConnections()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"POST /payments key=a 201 48 none replay=false",
		"POST /payments key=a 201 48 none replay=true",
		"POST /payments key=b 0 0 drop-before replay=false",
		"POST /payments key=c 0 0 drop-after replay=false",
		"POST /payments key=d 201 3 cut-body replay=false",
		"POST /payments key=e 429 5 answer replay=false",
		"POST /payments key=f 201 48 duplicate replay=false",
		"POST /payments key=g 201 48 kill-idle replay=false",
		"POST /payments key=h 0 0 none replay=false",
		"POST /payments key= 400 N none replay=false",
		"POST /payments key= 413 N none replay=false",
		"GET /pay%0Aments/x key= 404 N none replay=false",
		"HEAD /payments/x key= 404 0 none replay=false",
		"GET /_effects key= 200 N none replay=false",
	}
	// Of some answers only that they have a body counts; and a client may see a cut
	// before the server has told of it, so that the order says nothing.
	for i, line := range got.told {
		words := strings.Fields(line)
		if len(words) == 7 && words[3] != "201" && len(words[4]) > 1 {
			words[4] = "N"
		}
		got.told[i] = strings.Join(words, " ")
	}
	slices.Sort(got.told)
	slices.Sort(want)
	if !slices.Equal(got.told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(got.told, "\n"), strings.Join(want, "\n"))
	}
}
