package lease_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// sending is a way to send the request under the key "k". finished gets a value when a run of it is over.
type sending func(c *oncehttp.Client, req *http.Request, finished <-chan struct{}) error

// sendDo sends with DoKey.
func sendDo(c *oncehttp.Client, req *http.Request, _ <-chan struct{}) error {
	resp, err := c.DoKey(req, "k")
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

// recordWhileSent sends an operation, and returns its record as it stood while the first send was on its way, and as it stood at the
// end. The answer is this status.
func recordWhileSent(t *testing.T, j persist.Journal, cfg oncehttp.Config, status int, send sending) (during, after persist.Record) {
	t.Helper()
	id, finished := persist.ID{Key: "k"}, make(chan struct{}, 16)
	var seen atomic.Pointer[persist.Record]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if rec, err := j.Get(context.Background(), id); err == nil {
			seen.CompareAndSwap(nil, &rec)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	cfg.Journal = j
	cfg.Observe = func(_ context.Context, e oncehttp.Event) {
		if e.Kind == oncehttp.EventFinished {
			finished <- struct{}{}
		}
	}
	client, err := oncehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
	if err == nil {
		err = send(client, req, finished)
	}
	if err == nil {
		err = client.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if after, err = j.Get(t.Context(), id); err != nil || seen.Load() == nil {
		t.Fatalf("the record at the end: %v, and it was sent: %t", err, seen.Load() != nil)
	}
	_ = client.Close()
	return *seen.Load(), after
}

// TestSendUntil: while a send is on its way, its record says until when it may be, whoever marked it: Do, a pass over a file, or a
// claim.
func TestSendUntil(t *testing.T) {
	t.Parallel()
	retry := oncehttp.Policy{MaxElapsed: 10 * time.Minute, AttemptTimeout: time.Minute, AnswerTimeout: 20 * time.Minute}
	resume := func(c *oncehttp.Client, req *http.Request, _ <-chan struct{}) error {
		err := c.Enqueue(req, "k")
		for _, failed := range c.Resume(req.Context()) {
			if err == nil {
				err = failed
			}
		}
		return err
	}
	claim := func(c *oncehttp.Client, req *http.Request, finished <-chan struct{}) error {
		if err := c.Enqueue(req, "k"); err != nil {
			return err
		}
		ctx, stop := context.WithCancel(req.Context())
		go func() {
			<-finished
			stop()
		}()
		return c.Run(ctx)
	}
	for name, send := range map[string]sending{"Do": sendDo, "Resume": resume, "Run": claim} {
		for kind, open := range map[string]func() persist.Journal{
			"memory": func() persist.Journal { return memory.New() },
			"file": func() persist.Journal {
				j, err := bolt.Open(testrun.Dir(t)+"/journal.db", bolt.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return j
			},
		} {
			before := time.Now()
			during, after := recordWhileSent(t, open(), oncehttp.Config{Retry: retry}, http.StatusCreated, send)
			least := before.Add(retry.MaxElapsed + retry.AnswerTimeout).Add(-time.Second)
			if during.SendUntil.Before(least) || during.SendUntil.After(least.Add(2*time.Minute)) || after.SendUntil.Before(during.SendUntil) {
				t.Errorf("%s on %s: a send may be on its way until %v, and at the end %v; want at least %v", name, kind, during.SendUntil, after.SendUntil, least)
			}
			if !during.MaybeSent || !during.Protected || !after.Answer.Stored {
				t.Errorf("%s on %s: maybe sent %t, protected %t, answer stored %t; want all", name, kind, during.MaybeSent, during.Protected, after.Answer.Stored)
			}
		}
	}
}

// TestUnprotected: where the API takes no key, another send may take effect again, and no answer is given again.
func TestUnprotected(t *testing.T) {
	t.Parallel()
	during, after := recordWhileSent(t, memory.New(), oncehttp.Config{Profile: profile.None()}, http.StatusCreated, sendDo)
	if during.Protected || after.Answer.Stored {
		t.Errorf("protected %t, answer stored %t; want neither", during.Protected, after.Answer.Stored)
	}
}
