// Package clienttest holds the clients of the tests of behaviour: their configurations and limiters, the frequent calls of
// tests, and the checks of every error.
package clienttest

import (
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// New returns a client on a journal of its own, in memory, and the journal. change, if it is not nil, changes the Config first. A Config that needs Origins and
// has none gets those of the tests. Each write (POST and so on) is an operation, with or without a key. The client is closed with the test.
func New(t *testing.T, rt http.RoundTripper, change func(*oncehttp.Config)) (*oncehttp.Client, persist.Journal) {
	t.Helper()
	cfg := oncehttp.Config{Journal: memory.New(), Transport: rt, Operation: oncehttp.Writes}
	if change != nil {
		change(&cfg)
	}
	if (cfg.Authorize != nil || onServer(cfg.Journal)) && cfg.Origins == nil && cfg.OriginAllowed == nil {
		cfg.Origins = Origins()
	}
	c, err := oncehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, cfg.Journal
}

// onServer reports whether New must give a client Origins for its journal: other processes may use it (it has claims of records, as a Claimer, and is
// not in this process alone), so the client must list the origins that it sends to.
func onServer(j persist.Journal) bool {
	_, shared := persist.As[persist.Claimer](j)
	alone, is := persist.As[persist.InProcess](j)
	return shared && !(is && alone.InProcess())
}

// Origins returns the origins of the tests' servers, for clients with a duty to list their origins.
func Origins() []string {
	return []string{
		"https://api.example.com", "https://*.example.com", "https://api.example.com:8443", "http://api.example.com", "http://api.test", "https://api.test",
		"http://mock.test", "http://127.0.0.1:*", "https://127.0.0.1:*", "https://one.example", "https://held.example",
	}
}

// On returns a change of a Config that puts the client on this journal, and makes these further changes.
func On(j persist.Journal, changes ...func(*oncehttp.Config)) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) {
		cfg.Journal = j
		for _, change := range changes {
			change(cfg)
		}
	}
}

// Sealed returns a client on the journal, sealed (its records encrypted) with these keys (a letter for each). Without keys, the client is on the journal as it
// is. It sends through w, and makes one attempt in a call.
func Sealed(t *testing.T, w *wiretest.Wire, j persist.Journal, keys string) *oncehttp.Client {
	t.Helper()
	if keys != "" {
		j = journaltest.Sealed(t, j, keys)
	}
	c, _ := New(t, w, func(cfg *oncehttp.Config) {
		cfg.Journal, cfg.Retry.MaxAttempts = j, 1
	})
	return c
}
