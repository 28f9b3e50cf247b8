package journal

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// notFound answers every request with 404, without a network.
type notFound struct{}

// RoundTrip implements http.RoundTripper.
func (notFound) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"error":"no route"}`)), Request: req}, nil
}

// TestRedriveBesideAnother: of two runs at once on the same operations each counts only what it has begun itself.
func TestRedriveBesideAnother(t *testing.T) {
	t.Parallel()
	j := memory.New()
	c, err := oncehttp.New(oncehttp.Config{Journal: j, Transport: notFound{}, Origins: []string{"https://api.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	var all []persist.Record
	for _, key := range []string{"a", "b", "c"} {
		req, err := http.NewRequest("POST", "https://api.example.com/payments", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Enqueue(req, oncehttp.Key(key)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range c.Resume(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	ses := &session.Session{Journal: j, Place: place.Place{Name: "j", Arg: "j", Path: filepath.Join(t.TempDir(), "j")}}
	if err := session.EachRecord(t.Context(), ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) error {
		all = append(all, *rec)
		return nil
	}); err != nil || len(all) != 3 {
		t.Fatalf("%d operations, %v; want 3", len(all), err)
	}
	run := func(id string) *redriving {
		return &redriving{
			redriveFlags: &redriveFlags{actFlags: actFlags{JournalFlags: &session.JournalFlags{}, reason: "r"}, run: id}, ses: ses, profile: profile.Draft07(),
			s: terminal.Streams{Out: io.Discard, Err: io.Discard}, clients: map[string]*oncehttp.Client{},
		}
	}
	first, second := run("20260131T101500.000000Z-0001"), run("20260131T101500.000001Z-0002")
	first.one(t.Context(), &all[0])
	for i := range all {
		second.one(t.Context(), &all[i])
	}
	first.one(t.Context(), &all[2])
	if first.begun != 1 || first.already != 1 || second.begun != 2 || second.already != 1 || first.refused+first.unknown+second.refused+second.unknown != 0 {
		t.Errorf("the first run has %d begun and %d already, the second %d and %d; want 1, 1, 2 and 1", first.begun, first.already, second.begun, second.already)
	}
	if text := second.alreadyText(); text != "; already: 1 by another run" {
		t.Errorf("it says %q", text)
	}
	for _, r := range []*redriving{first, second} {
		for _, c := range r.clients {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
