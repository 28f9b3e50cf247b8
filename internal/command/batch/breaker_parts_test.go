package batch

import (
	"errors"
	"io"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/persist"
)

// What rows that ended alike have in common is said once.
func TestStatusAndCode(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]results.Group{
		" (401 refused)": {Status: 401, Code: "refused"}, " (not sent)": {Code: "not_sent"}, " (503)": {Status: 503}, "": {},
	} {
		if got := statusAndCode(g); got != want {
			t.Errorf("%+v: %q, want %q", g, got, want)
		}
	}
}

// Only rows in a row count, and only those that the journal kept from being tried.
func TestBreakerStuck(t *testing.T) {
	t.Parallel()
	var cause error
	b := newBreaker(20, "https://api.example.com:443", func(err error) { cause = err })
	row := func(err error) {
		b.begin(t.Context())
		l := results.Failed("k", err)
		b.end(&l)
	}
	for range 3 {
		for range stuckRowsMost - 1 {
			row(persist.ErrUncertain)
		}
		row(errors.New("of the row"))
	}
	if cause != nil {
		t.Fatalf("stopped: %v", cause)
	}
	for range stuckRowsMost {
		row(io.ErrUnexpectedEOF)
	}
	if !errors.Is(cause, io.ErrUnexpectedEOF) {
		t.Errorf("stopped by %v", cause)
	}
}
