package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

func record(key string) persist.Record {
	return persist.Record{
		ID: persist.ID{Key: key}, Origin: "https://api.example:443",
		Method: "POST", Target: "/v1/charges", Header: map[string][]string{"Content-Type": {"application/json"}},
		Body: []byte(`{"amount":100,"currency":"eur","customer":"cus_1"}`), WireKey: key, Fingerprint: make([]byte, 32),
		Created: time.Now(), Generated: true, Window: time.Hour,
	}
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j.db")
	j, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 50 {
				r, created, err := j.Begin(ctx, record(fmt.Sprintf("k%d-%d", w, i)))
				if err != nil || !created {
					t.Error(err, created)
					return
				}
				if i%2 == 0 {
					r.State, r.Finished = persist.Confirmed, time.Now()
					r.Answer = &persist.Answer{Status: 201, Body: []byte("ok")}
					if err := j.Finish(ctx, r); err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
	wg.Wait()
	t.Logf("%+v", j.Stats())
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err = bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, open := 0, 0
	for r, err := range j.List(ctx, persist.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if !r.State.Final() {
			open++
		}
	}
	if n != 3200 || open != 1600 {
		t.Error(n, open)
	}
	if _, err := bolt.Open(path, bolt.Options{LockWait: -1}); !errors.Is(err, persist.ErrLocked) {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
