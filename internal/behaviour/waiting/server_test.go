// Package waiting_test tests docs/waiting.md: the length of a call, and its result when its deadline ends first.
package waiting_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
)

// server answers a request as the last of its replies, after the others.
type server struct {
	replies []reply

	mu sync.Mutex
	at []time.Time // of each send
}

type reply func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	wiretest.HandedOver(req)
	s.mu.Lock()
	next := s.replies[min(len(s.at), len(s.replies)-1)]
	s.at = append(s.at, time.Now())
	s.mu.Unlock()
	return next(req)
}

// sends returns the times of the sends so far.
func (s *server) sends() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

// silent never answers.
func silent(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// says answers at once. retryAfter may be empty.
func says(status int, retryAfter string) reply {
	return func(req *http.Request) (*http.Response, error) {
		resp := answer(req, status, http.NoBody)
		if retryAfter != "" {
			resp.Header.Set("Retry-After", retryAfter)
		}
		return resp, nil
	}
}

// endless begins an answer whose body never ends.
func endless(req *http.Request) (*http.Response, error) {
	return answer(req, http.StatusCreated, &drips{req.Context()}), nil
}

func answer(req *http.Request, status int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: body, Request: req, ContentLength: -1, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

// drips is a body with one byte each half second, until its request ends.
type drips struct{ ctx context.Context }

// Read implements [io.Reader].
func (d *drips) Read(p []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(500 * time.Millisecond):
		return copy(p, "x"), nil
	}
}

// Close implements [io.Closer].
func (*drips) Close() error { return nil }

// rows returns the cells of the rows of a table in docs/waiting.md, by the heading above it.
func rows(t *testing.T, heading string) (all [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/waiting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "\n## "+heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for line := range strings.Lines(part) {
		if row, is := strings.CutPrefix(strings.TrimSpace(line), "| "); is {
			all = append(all, strings.Split(strings.TrimSuffix(row, " |"), " | "))
		}
	}
	if len(all) < 2 {
		t.Fatalf("no table under %q", heading)
	}
	return all[1:]
}

// duration reads a duration of the page.
func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Error(err)
	}
	return d
}
