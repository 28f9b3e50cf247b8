package redis_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/redis"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// TestUsedKey: of a used key one field is left, without its text. It answers as the same key in memory does, where a record keeps all that an erase leaves.
func TestUsedKey(t *testing.T) {
	t.Parallel()
	url := durableURL(t)
	opts := own(t, url)
	opts.Buckets = 3
	j := open(t, url, opts)
	secret, err := j.Secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := memory.NewWithSecret([persist.SecretSize]byte(secret))
	var ids []persist.ID
	for i, account := range []string{"", "canary shop", persist.Account("canary shop", [2]string{"", "canary 1"})} {
		for n := range 6 {
			rec := usedRecord(account, fmt.Sprintf("canary %d %d", i, n), n)
			ids = append(ids, rec.ID)
			for _, j := range []persist.Journal{j, other} {
				begun, _, err := j.Begin(t.Context(), rec)
				if err == nil {
					err = j.Finish(t.Context(), usedEnd(begun, n))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, j := range []persist.Journal{j, other} {
		if n, err := j.Sweep(t.Context(), persist.Limits{Now: time.Now().Add(1000 * time.Hour)}); n != len(ids) || err != nil {
			t.Fatalf("swept %d, error %v", n, err)
		}
	}
	usedFields(t, url, opts, len(ids))
	for _, id := range ids {
		got, err := j.Get(t.Context(), id)
		want, err2 := other.Get(t.Context(), id)
		if begun, created, err := j.Begin(t.Context(), sqltest.Record(id.Account, id.Key)); created || err != nil || !reflect.DeepEqual(begun, got) {
			t.Errorf("Begin of %q: %t, %v", id, created, err)
		}
		if err := errors.Join(err, err2); err != nil || got.ID != want.ID || got.WireKey != want.WireKey || !reflect.DeepEqual(usedParts(got), usedParts(want)) {
			t.Errorf("Get of %q: %+v, %v\nin memory %+v", id, got, err, want)
		}
		for _, q := range []persist.Query{{AllAccounts: true}, {Account: id.Account}, {Account: id.Account, Key: id.Key}, {AllAccounts: true, Key: id.Key}, {Account: "canary shop", Key: id.Key}, {Account: "another", Key: id.Key}, {AllAccounts: true, States: []persist.State{want.State}}} {
			if got, want := usedList(t, j, q), usedList(t, other, q); !reflect.DeepEqual(got, want) {
				t.Errorf("List of %+v: %q, in memory %q", q, got, want)
			}
		}
	}
	if n, err := j.Sweep(t.Context(), persist.Limits{Prune: true, KeepKey: -1, KeepAnswer: -1, Now: time.Now().Add(1000 * time.Hour)}); n != len(ids) || err != nil {
		t.Errorf("pruned %d, error %v", n, err)
	}
}

// TestUsedKeyDamaged: a used key that cannot be read is told as damage, and one of a later format as that.
func TestUsedKeyDamaged(t *testing.T) {
	t.Parallel()
	url := durableURL(t)
	opts := own(t, url)
	opts.Buckets = 1
	j := open(t, url, opts)
	rec, _, err := j.Begin(t.Context(), usedRecord("shop", "key", 0))
	if err == nil {
		err = j.Finish(t.Context(), usedEnd(rec, 0))
	}
	if err == nil {
		_, err = j.Sweep(t.Context(), persist.Limits{Now: time.Now().Add(1000 * time.Hour)})
	}
	if err != nil {
		t.Fatal(err)
	}
	client, key, field := connect(t, url), redis.BucketKeys(opts.Prefix, 0)[0], "h"+j.IDOf(rec.ID)
	head, err := client.HGet(t.Context(), key, field).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for n := 35; n < len(head); n++ {
		if err := client.HSet(t.Context(), key, field, head[:n]).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Get(t.Context(), rec.ID); !errors.Is(err, persist.ErrCorrupt) {
			t.Errorf("cut off after %d bytes: %v", n, err)
		}
	}
	head[34]++
	if err := client.HSet(t.Context(), key, field, head).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Get(t.Context(), rec.ID); !errors.Is(err, persist.ErrNewer) {
		t.Errorf("of a later format: %v", err)
	}
}

// usedRecord returns a record whose text goes with its answer, of the n-th kind.
func usedRecord(account, key string, n int) persist.Record {
	rec := sqltest.Record(account, key)
	rec.Window, rec.KeepAnswer, rec.KeepText = time.Second, -1, -1
	switch n % 3 {
	case 1:
		rec.WireKey = `"` + key + `"`
	case 2:
		rec.WireKey, rec.ServerToken = "", true
		rec.Scopes = []persist.Scope{{Name: "Stripe-Account", Value: "canary"}, {Name: "X-Of"}}
	}
	if n > 2 {
		rec.KeepKey = 1e5 * time.Hour
	}
	return rec
}

// usedEnd returns the record as it ends.
func usedEnd(rec persist.Record, n int) persist.Record {
	rec = sqltest.Finished(rec)
	rec.Attempts, rec.Sends = n, 100*n
	if rec.ServerToken {
		rec.Token = "canary"
	}
	if n%2 == 1 {
		rec.Answer.Status = 402
	}
	return rec
}

// usedParts returns what a used key has of a record, without its names and numbers.
func usedParts(r persist.Record) persist.Record {
	return persist.Record{Revision: r.Revision, State: r.State, Effect: r.Effect, Status: r.Status, Finished: r.Finished.UTC(), KeepKey: r.KeepKey, Attempts: r.Attempts, Sends: r.Sends,
		Scopes: r.Scopes, ServerToken: r.ServerToken, Swept: r.Swept, Erased: r.Erased, Generated: r.Generated}
}

// usedList returns how many used keys a listing has in each state, and the names that are those of the query.
func usedList(t *testing.T, j persist.Journal, q persist.Query) map[string]int {
	t.Helper()
	secret, _ := j.Secret(t.Context())
	erased, all := q.Erased(secret), map[string]int{}
	for rec, err := range j.List(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(rec.State, rec.Effect, rec.Status, rec.Attempts)
		if q.Key != "" {
			text += rec.Key + rec.WireKey
		}
		if !q.AllAccounts && rec.Account == erased.Account {
			text += rec.Account
		} else if !q.AllAccounts && strings.HasPrefix(rec.Account, erased.Account+"|") {
			text += " inside"
		}
		all[text]++
	}
	return all
}

// usedFields checks the hashes of the journal: each used key has one field, and none has its text.
func usedFields(t *testing.T, url string, opts redis.Options, want int) {
	t.Helper()
	n, client := 0, connect(t, url)
	for number := range opts.Buckets {
		all, err := client.HGetAll(t.Context(), redis.BucketKeys(opts.Prefix, number)[0]).Result()
		if err != nil {
			t.Fatal(err)
		}
		for field, value := range all {
			if field == "journal" {
				continue
			}
			if n++; strings.Contains(field+value, "canary") || strings.Contains(field+value, hex.EncodeToString([]byte("canary"))) || len(value) > 130 {
				t.Errorf("%q has %q", field, value)
			}
		}
	}
	if n != want {
		t.Errorf("%d fields, want %d", n, want)
	}
}

// TestUsedKeySealed: a used key of a sealed journal is proved by its seal when account and key are named, and a changed one is told.
func TestUsedKeySealed(t *testing.T) {
	t.Parallel()
	url := durableURL(t)
	opts := own(t, url)
	opts.Buckets = 1
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}})
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Journal(t.Context(), open(t, url, opts))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		id := persist.ID{Account: "shop", Key: fmt.Sprint("key ", n)}
		rec, _, err := j.Begin(t.Context(), usedRecord(id.Account, id.Key, n))
		if err == nil {
			err = j.Finish(t.Context(), usedEnd(rec, n))
		}
		if err != nil {
			t.Fatal(err)
		}
		if n, err := j.Sweep(t.Context(), persist.Limits{Now: time.Now().Add(1000 * time.Hour)}); n != 1 || err != nil {
			t.Fatalf("swept %d, error %v", n, err)
		}
		rec, err = j.Get(t.Context(), id)
		if err != nil || !rec.Erased || rec.State != persist.StateConfirmed || len(rec.Scopes) != 2*(n%3/2) {
			t.Errorf("Get of %q: %+v, %v", id, rec, err)
		}
		if all := usedList(t, j, persist.Query{AllAccounts: true}); len(all) != min(n+1, 2) {
			t.Errorf("listed: %q", all)
		}
		client, key, field := connect(t, url), redis.BucketKeys(opts.Prefix, 0)[0], "h"+open(t, url, opts).IDOf(id)
		head, err := client.HGet(t.Context(), key, field).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		head[35]++ // the time of the end
		if err := client.HSet(t.Context(), key, field, head).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Get(t.Context(), id); !errors.Is(err, persist.ErrSealed) {
			t.Errorf("Get of %q, which was changed: %v", id, err)
		}
	}
}
