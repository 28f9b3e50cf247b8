package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// pay is the role of a process that is killed while it waits for the answer.
func pay(ctx context.Context, args []string) error {
	j, err := redis.Open(ctx, args[0], redis.Options{Prefix: args[1], KeepKey: redis.KeepForever})
	if err != nil {
		return err
	}
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: sqltest.Loopback(), Lease: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	req, err := http.NewRequest("POST", args[2]+"/payments", strings.NewReader(`{"amount":100}`))
	if err != nil {
		return err
	}
	_, err = client.DoKey(req, "idemp:order:1")
	return errors.Join(errors.New("it was not killed"), err)
}

// TestKilledClient kills a process whose payment has taken effect and was not answered.
// Another goes on with it: the same key, the same bytes, one effect.
func TestKilledClient(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	mock := mockserver.New(mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.HangAfter, Delay: time.Minute}}})
	if err := mock.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mock.Close() }()
	killed := sqltest.Child(t.Context(), "pay", at, opts.Prefix, mock.URL())
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); mock.Ledger().Effects("idemp:order:1") == 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatal("nothing was paid")
		}
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed

	client, err := oncehttp.New(oncehttp.Config{Journal: open(t, at, opts), Origins: sqltest.Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	var results []oncehttp.Result
	for start := time.Now(); len(results) == 0 && time.Since(start) < 30*time.Second; { // until the lease of the dead process is over
		for res, err := range client.Resume(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, res)
		}
	}
	if len(results) != 1 || results[0].Outcome != oncehttp.OutcomeConfirmed || results[0].Answer.Status != 201 {
		t.Errorf("Resume gave %+v, want the confirmed payment", results)
	}
	if effects, sends := mock.Ledger().Effects("idemp:order:1"), mock.Ledger().Sends("idemp:order:1"); effects != 1 || sends != 2 {
		t.Errorf("%d effects of %d sends, want 1 of 2", effects, sends)
	}
	req, err := http.NewRequest("POST", mock.URL()+"/payments", strings.NewReader(`{"amount":100}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.DoKey(req, "idemp:order:1")
	if err != nil || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
		t.Errorf("the same key again: %v; want the recorded answer", err)
	}
}

// TestJournalDown: while Redis is away, a Do fails and nothing is sent; a key that this very call made
// has no effect for sure.
func TestJournalDown(t *testing.T) {
	t.Parallel()
	s := start(t, durable()...)
	mock := mockserver.New(mockserver.Config{})
	if err := mock.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mock.Close() }()
	opts := own(t, s.url())
	opts.CallTimeout = 3 * time.Second
	client, err := oncehttp.New(oncehttp.Config{Journal: open(t, s.url(), opts), Origins: sqltest.Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	do := func(key oncehttp.Key) error {
		req, err := http.NewRequest("POST", mock.URL()+"/payments", strings.NewReader(fmt.Sprintf(`{"for":%q}`, key)))
		if err != nil {
			t.Fatal(err)
		}
		if key == "" {
			_, err = client.Do(req)
		} else {
			_, err = client.DoKey(req, key)
		}
		return err
	}
	s.kill(t)
	if err := do("idemp:order:1"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Errorf("with a chosen key, which may stand in the journal: %v, want ErrOutcomeUnknown", err)
	}
	_ = do("")
	if n := mock.Ledger().Snapshot().Sends; n != 0 {
		t.Errorf("%d requests were sent without a record", n)
	}
	s.run(t)
	if err := do("idemp:order:1"); err != nil {
		t.Errorf("after Redis has come back: %v", err)
	}
}
