package sqltest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
	"github.com/oncehttp/oncehttp/profile"
)

// UsedKey checks the rows of used keys, what is left of erased records: they have no text, and each call for a record finds them. texts has, by the
// name of each table with such rows, an expression for a whole row as text. narrow is the table of used keys with a condition for a row with nothing
// but their columns. With sealed the records are encrypted. One of the four records has a key already used by another account: it keeps digests in place of its
// texts, and does not become a used key. The word "canary" is in each text of the records, and so shows what is left.
func UsedKey(t *testing.T, e Engine, texts map[string]string, narrow string, sealed bool) {
	ctx, j, reader := t.Context(), e.Open(t, e.Address, 30*time.Second), e.Reader(t)
	if sealed {
		c := seal.Config{HashKey: bytes.Repeat([]byte("h"), seal.SecretSize)}
		j, reader = sealedBy(t, j, c), sealedBy(t, reader, c)
	}
	sends := 0
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		sends++
		rw.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(api.Close)
	client := func(p *profile.Profile) *oncehttp.Client {
		c, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback(), Profile: p, Account: "canary shop", KeepText: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	stripe, draft := client(profile.StripeV1()), client(profile.Draft07Quoted())
	call := func(c *oncehttp.Client, key, account, body string) error {
		return callOf(t, c, api.URL, key, account, body)
	}
	calls := []struct {
		c            *oncehttp.Client
		key, account string
	}{{stripe, "canary-1", ""}, {stripe, "canary-1", "canary_acct"}, {stripe, "canary-2", "canary_acct"}, {draft, "canary-3", ""}}
	for _, is := range calls {
		if err := call(is.c, is.key, is.account, `{"of":"canary"}`); err != nil {
			t.Fatalf("%s of %q: %v", is.key, is.account, err)
		}
	}
	if err := errors.Join(stripe.Flush(ctx), draft.Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	if n, err := j.Sweep(ctx, persist.Limits{Now: time.Now().Add(1e4 * time.Hour)}); n != len(calls) || err != nil {
		t.Fatalf("swept %d, error %v; want %d", n, err, len(calls))
	}
	e.usedRows(t, texts, narrow, len(calls)-1) // the second place of a key keeps digests
	for _, is := range calls {
		usedAgain(t, is.key+" of "+is.account, func(body string) error { return call(is.c, is.key, is.account, body) })
	}
	if err := call(stripe, `"canary-3"`, "", `{"of":"canary"}`); err == nil {
		t.Error("the same key in another spelling is sent once more")
	}
	if sends != len(calls) {
		t.Errorf("%d requests, want %d", sends, len(calls))
	}
	if err := call(stripe, "canary-2", "another", `{"of":"canary"}`); err != nil {
		t.Errorf("the key of another account: %v", err)
	}
	for name, j := range map[string]persist.Journal{"the journal": j, "a reader": reader} {
		usedListed(t, name, j, len(calls))
	}
}

// callOf makes a call with a key, and with an account in its header unless that is empty.
func callOf(t *testing.T, c *oncehttp.Client, url, key, account, body string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if account != "" {
		req.Header.Set("Stripe-Account", account)
	}
	resp, err := c.DoKey(req, oncehttp.Key(key))
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// usedAgain requires that a repeat of a used key (the rest of an erased record) gets ErrFinal, with the effect that the first call had, for the same body
// and for another. A used key has no fingerprint of the request, and so cannot tell the two apart.
func usedAgain(t *testing.T, name string, call func(body string) error) {
	t.Helper()
	for _, body := range []string{`{"of":"canary"}`, `{"of":"another"}`} {
		var of *oncehttp.Error
		if err := call(body); !errors.As(err, &of) || !errors.Is(err, oncehttp.ErrFinal) || of.Effect() != persist.EffectHappened {
			t.Errorf("%s again, with %s: %v", name, body, err)
		}
	}
}

// sealedBy returns the journal with encrypted records, by the settings c and one fixed key.
func sealedBy(t testing.TB, j persist.Journal, c seal.Config) persist.Journal {
	t.Helper()
	c.Keys = []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}
	s, err := seal.New(c)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := s.Journal(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// usedRows checks the rows of the tables: none has its text (the word "canary", as it is or in hexadecimal) any more, and want of them have the few columns
// of a used key. texts has an expression for a whole row by the table's name, and narrow is a table with a condition for rows with only those columns.
func (e Engine) usedRows(t *testing.T, texts map[string]string, narrow string, want int) {
	t.Helper()
	var rows int
	for table, text := range texts {
		if err := e.DB.QueryRow("SELECT COUNT(*) FROM " + table + " WHERE " + text + " LIKE '%canary%' OR " + text + " LIKE '%" + fmt.Sprintf("%x", "canary") + "%'").Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%d rows of %s have their text, error %v", rows, table, err)
		}
	}
	if err := e.DB.QueryRow("SELECT COUNT(*) FROM " + narrow).Scan(&rows); err != nil || rows != want {
		t.Errorf("%d rows are those of used keys, error %v; want %d", rows, err, want)
	}
}

// usedListed checks for several queries that a listing has the used keys that it selects, want of them if it selects all. name is that of the journal, for
// errors.
func usedListed(t *testing.T, name string, j persist.Journal, want int) {
	t.Helper()
	count := func(q persist.Query) (n int) {
		t.Helper()
		for rec, err := range j.List(t.Context(), q) {
			if err != nil {
				t.Fatalf("%s: List of %+v: %v", name, q, err)
			}
			if rec.Erased {
				n++
			}
		}
		return n
	}
	account := persist.Account("canary shop")
	for what, c := range map[string]struct {
		q    persist.Query
		want int
	}{
		"all": {persist.Query{AllAccounts: true}, want}, "the account": {persist.Query{Account: account}, want}, "another account": {persist.Query{Account: "another"}, 0},
		"what is confirmed": {persist.Query{AllAccounts: true, States: []persist.State{persist.StateConfirmed}}, want},
		"what was settled":  {persist.Query{AllAccounts: true, States: []persist.State{persist.StateSettled}}, 0},
		"a key":             {persist.Query{AllAccounts: true, Key: "canary-1"}, 2}, "a key of the account": {persist.Query{Account: account, Key: "canary-1"}, 2},
		"another key": {persist.Query{AllAccounts: true, Key: "canary-4"}, 0}, "a key of another account": {persist.Query{Account: "another", Key: "canary-3"}, 0},
	} {
		if n := count(c.q); n != c.want {
			t.Errorf("%s: List of %s has %d used keys, want %d", name, what, n, c.want)
		}
	}
	if rec, err := j.Get(t.Context(), persist.ID{Account: account, Key: "canary-3"}); err != nil || !rec.Erased || rec.State != persist.StateConfirmed {
		t.Errorf("%s: Get: %v, %v", name, rec.State, err)
	}
}
