package sqltest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// FactRights checks a database role with rights on the records of a journal, and none on its facts (named values beside the records): it reads sealed
// records, and begins nothing, neither sealed nor in clear. owner and role open the journal, each time anew.
func FactRights(t *testing.T, owner, role func() persist.Journal) {
	var sends atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		sends.Add(1)
		rw.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(api.Close)
	send := func(j persist.Journal, key string) error {
		c, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.DoKey(req, oncehttp.Key(key))
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	if err := send(sealed(t, owner(), "a"), "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := role().Fact(t.Context(), persist.FactSeal, nil, nil); !errors.Is(err, persist.ErrDenied) {
		t.Errorf("Fact of the role: %v, want ErrDenied", err)
	}
	var keys []string
	for rec, err := range sealed(t, role(), "a").List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, rec.Key+" "+rec.Method)
	}
	if len(keys) != 1 || keys[0] != "first POST" {
		t.Errorf("the role reads %q", keys)
	}
	for name, j := range map[string]persist.Journal{"in clear": role(), "sealed": sealed(t, role(), "a")} {
		if err := send(j, "second"); !errors.Is(err, persist.ErrDenied) {
			t.Errorf("the role begins %s: %v; want ErrDenied", name, err)
		}
	}
	if _, err := otherHash(t, role()); !errors.Is(err, persist.ErrSealed) {
		t.Errorf("the role opens it with a HashKey that the journal does not have: %v", err)
	}
	records := 0
	for range owner().List(t.Context(), persist.Query{AllAccounts: true}) {
		records++
	}
	if sends.Load() != 1 || records != 1 {
		t.Errorf("%d sends, %d records; want one each", sends.Load(), records)
	}
}

// otherHash opens a journal with a HashKey, although it was sealed without one, and returns the result.
func otherHash(t *testing.T, j persist.Journal) (persist.Journal, error) {
	t.Helper()
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}, HashKey: make([]byte, seal.SecretSize)})
	if err != nil {
		t.Fatal(err)
	}
	return s.Journal(context.WithoutCancel(t.Context()), j)
}
