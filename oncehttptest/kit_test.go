package oncehttptest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/oncehttptest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

const key = oncehttp.Key("order-7")

// pay is the application: it pays one order.
func pay(client *oncehttp.Client, url string) error {
	req, err := http.NewRequest(http.MethodPost, url+"/payments", strings.NewReader(`{"amount":4200}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.DoKey(req, key)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("answered %d: %s, %v", resp.StatusCode, body, err)
	}
	return nil
}

// inKit runs f with a kit, in a bubble.
func inKit(t *testing.T, cfg oncehttptest.Config, f func(*testing.T, *oncehttptest.Kit)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, oncehttptest.New(t, cfg)) })
}

// check compares what the server saw under the key.
func check(t *testing.T, kit *oncehttptest.Kit, sends, effects int) {
	t.Helper()
	if s, e := kit.Sends(key), kit.Effects(key); s != sends || e != effects {
		t.Errorf("%d sends, %d effects; want %d, %d", s, e, sends, effects)
	}
}

func TestLoseAnswer(t *testing.T) {
	inKit(t, oncehttptest.Config{}, func(t *testing.T, kit *oncehttptest.Kit) {
		kit.LoseAnswer()
		if err := pay(kit.Client(), kit.URL); err != nil {
			t.Error(err)
		}
		check(t, kit, 2, 1)
	})
}

func TestNext(t *testing.T) {
	inKit(t, oncehttptest.Config{}, func(t *testing.T, kit *oncehttptest.Kit) {
		conflict := mockserver.Fault{Kind: mockserver.Answer, Status: http.StatusConflict}
		kit.Next(conflict, conflict)
		if err := pay(kit.Client(), kit.URL); err != nil {
			t.Error(err)
		}
		check(t, kit, 3, 1)
	})
}

// crashInFlight crashes while the server has acted, and the client waits for the answer.
func crashInFlight(t *testing.T, kit *oncehttptest.Kit) {
	t.Helper()
	kit.Next(mockserver.Fault{Kind: mockserver.HangAfter})
	began, lost := time.Now(), make(chan error, 1)
	old := kit.Client()
	go func() { lost <- pay(old, kit.URL) }()
	synctest.Wait()
	check(t, kit, 1, 1)
	if client := kit.Crash(); client == old || client != kit.Client() {
		t.Error("Crash and Client disagree, or the client is the old one")
	}
	select {
	case err := <-lost:
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("the call that was cut off: %v", err)
		}
	default:
		t.Error("the call that was cut off is not over")
	}
	if passed := time.Since(began); passed != 0 {
		t.Errorf("a crash took %v", passed)
	}
	if err := pay(old, kit.URL); !errors.Is(err, oncehttp.ErrClosed) {
		t.Errorf("the client of a process that is gone: %v", err)
	}
	check(t, kit, 1, 1)
}

// A crash leaves the record as it was when the request was sent, and the next process ends the operation.
func TestCrashAndResume(t *testing.T) {
	inKit(t, oncehttptest.Config{}, func(t *testing.T, kit *oncehttptest.Kit) {
		crashInFlight(t, kit)
		rec, err := kit.Client().Lookup(t.Context(), key)
		if err != nil || rec.State != persist.StatePending || !rec.MaybeSent {
			t.Errorf("after the crash: %v, maybe sent %v, %v", rec.State, rec.MaybeSent, err)
		}
		n := 0
		for res, err := range kit.Client().Resume(t.Context()) {
			if n++; err != nil || res.Outcome != oncehttp.OutcomeConfirmed {
				t.Errorf("%+v, %v", res, err)
			}
		}
		if n != 1 {
			t.Errorf("%d operations were resumed", n)
		}
		check(t, kit, 2, 1)
		if err := pay(kit.Client(), kit.URL); err != nil {
			t.Error(err)
		}
		check(t, kit, 2, 1)
	})
}

// Calls that wait between two attempts, and Run, end with their process.
func TestCrashOfWhatWaits(t *testing.T) {
	cfg := oncehttptest.Config{Client: oncehttp.Config{Retry: oncehttp.Policy{MinDelay: 20 * time.Second, MaxDelay: 20 * time.Second}}}
	inKit(t, cfg, func(t *testing.T, kit *oncehttptest.Kit) {
		kit.Next(mockserver.Fault{Kind: mockserver.Answer, Status: http.StatusServiceUnavailable, RetryAfter: "30"})
		client, ended := kit.Client(), make(chan error, 2)
		go func() { ended <- client.Run(t.Context()) }()
		go func() { ended <- pay(client, kit.URL) }()
		synctest.Wait()
		check(t, kit, 1, 0)
		kit.Crash()
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("a call of the old process has succeeded")
			}
		}
		kit.Pass(time.Hour)
		check(t, kit, 1, 0)
	})
}

// Once the server may have forgotten the key, the operation is held until somebody settles it.
func TestPass(t *testing.T) {
	inKit(t, oncehttptest.Config{}, func(t *testing.T, kit *oncehttptest.Kit) {
		crashInFlight(t, kit)
		began := time.Now()
		kit.Pass(25 * time.Hour)
		if passed := time.Since(began); passed != 25*time.Hour {
			t.Errorf("%v have passed", passed)
		}
		for _, err := range kit.Client().Resume(t.Context()) {
			if !errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrKeyExpired) {
				t.Error(err)
			}
		}
		check(t, kit, 1, 1)
		if err := kit.Client().Settle(t.Context(), key, oncehttp.Resolution{Effect: persist.EffectHappened, Note: "seen"}); err != nil {
			t.Error(err)
		}
		if err := pay(kit.Client(), kit.URL); !errors.Is(err, oncehttp.ErrSettled) {
			t.Error(err)
		}
		check(t, kit, 1, 1)
	})
}

// An application with an http.Client, the address of a real API, a profile and credentials.
func TestStandardClient(t *testing.T) {
	cfg := oncehttptest.Config{Client: oncehttp.Config{
		Profile: profile.StripeV1(), Authorize: func(req *http.Request) error { req.SetBasicAuth("sk", ""); return nil },
		Origins: []string{"https://api.stripe.com"},
	}}
	inKit(t, cfg, func(t *testing.T, kit *oncehttptest.Kit) {
		kit.LoseAnswer()
		req, err := http.NewRequest(http.MethodPost, "https://api.stripe.com/v1/charges", strings.NewReader("amount=4200"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Idempotency-Key", string(key))
		resp, err := kit.Client().StandardClient().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		check(t, kit, 2, 1)
	})
}

// Authorize alone is enough: the origin is the kit's.
func TestAuthorizeWithoutOrigins(t *testing.T) {
	asked := 0
	cfg := oncehttptest.Config{Client: oncehttp.Config{Authorize: func(*http.Request) error { asked++; return nil }}}
	inKit(t, cfg, func(t *testing.T, kit *oncehttptest.Kit) {
		if err := pay(kit.Client(), kit.URL); err != nil || asked != 1 {
			t.Errorf("%v, Authorize was asked %d times", err, asked)
		}
	})
}

// failing is a test that notes its end.
type failing struct {
	*testing.T
	said string
}

// Fatalf ends the function that calls New, not the test.
func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// What New refuses, it refuses in one line.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, cfg oncehttptest.Config) string {
		f := &failing{T: t}
		func() {
			defer func() { _ = recover() }()
			oncehttptest.New(f, cfg)
		}()
		return f.said
	}
	if said := refused(t, oncehttptest.Config{}); !strings.Contains(said, "inside of synctest.Test") {
		t.Errorf("outside of a bubble: %q", said)
	}
	synctest.Test(t, func(t *testing.T) {
		for want, cfg := range map[string]oncehttptest.Config{
			"Client.Transport": {Client: oncehttp.Config{Transport: http.DefaultTransport}},
			"MaxAttempts":      {Client: oncehttp.Config{Retry: oncehttp.Policy{MaxAttempts: -1}}},
			"unknown bug":      {Server: mockserver.Config{Bug: "no such"}},
		} {
			if said := refused(t, cfg); !strings.Contains(said, want) || strings.Contains(said, "\n") {
				t.Errorf("%s: %q", want, said)
			}
		}
	})
}

// TestOnResultAfterACrash: a process dies in OnResult, before the row is written; the next one writes it.
func TestOnResultAfterACrash(t *testing.T) {
	rows, dies := 0, true
	cfg := oncehttptest.Config{Client: oncehttp.Config{OnResult: func(ctx context.Context, rec persist.Record) error {
		if dies {
			<-ctx.Done()
			return ctx.Err()
		}
		rows++
		return nil
	}}}
	inKit(t, cfg, func(t *testing.T, kit *oncehttptest.Kit) {
		req, err := http.NewRequest(http.MethodPost, kit.URL+"/payments", strings.NewReader("{}"))
		if err == nil {
			err = kit.Client().Enqueue(req, "order-7")
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = kit.Client().Run(t.Context()) }()
		kit.Pass(time.Second)
		next := kit.Crash()
		dies = false
		go func() { _ = next.Run(t.Context()) }()
		kit.Pass(time.Minute)
		if rows != 1 || kit.Effects("order-7") != 1 {
			t.Errorf("%d rows and %d effects; want one of each", rows, kit.Effects("order-7"))
		}
	})
}
