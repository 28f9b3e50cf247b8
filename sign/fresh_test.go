package sign_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/sign"
)

// TestAge: five minutes old is accepted and a second more is not; the same ahead. A nonce is refused for as long as its
// signature could be accepted.
func TestAge(t *testing.T) {
	t.Parallel()
	for name, scheme := range schemes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				signed := func() *http.Request {
					req, err := http.NewRequest("POST", "https://example.com/payments", strings.NewReader(payment))
					fatal(t, err)
					req.Header.Set("Idempotency-Key", "order-7")
					fatal(t, scheme.authorize(req))
					return req
				}
				old, older, played := signed(), signed(), signed()
				fatal(t, scheme.verify(played, []byte(payment)))
				time.Sleep(time.Minute)
				if short := strings.Contains(name, "hmac-sha256"); short { // whose Lifetime is a minute
					fatal(t, scheme.verify(old, []byte(payment)))
					time.Sleep(time.Second)
				} else {
					time.Sleep(4 * time.Minute)
					fatal(t, scheme.verify(old, []byte(payment)))
					if err := scheme.verify(played, []byte(payment)); !errors.Is(err, sign.ErrReplayed) {
						t.Errorf("played again after five minutes: %v, want ErrReplayed", err)
					}
					time.Sleep(time.Second)
				}
				for _, req := range []*http.Request{older, old, played} {
					if err := scheme.verify(req, []byte(payment)); !errors.Is(err, sign.ErrTime) {
						t.Errorf("too old: %v, want ErrTime", err)
					}
				}
			})
		})
	}
}

// TestClockAhead: a signature of a clock that is ahead is refused while it is too far ahead, then accepted once, and
// never again, for all the time that it could be accepted in.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	verify, err := hmacLayout.Verifier(sign.Freshness{})
	fatal(t, err)
	authorize, err := hmacLayout.Authorize()
	fatal(t, err)
	var req *http.Request
	synctest.Test(t, func(t *testing.T) { // ahead: bubbles begin at one time
		time.Sleep(6 * time.Minute)
		req, err = http.NewRequest("POST", "https://example.com/payments", strings.NewReader(payment))
		fatal(t, err)
		req.Header.Set("Idempotency-Key", "order-7")
		fatal(t, authorize(req))
	})
	synctest.Test(t, func(t *testing.T) {
		if err := verify(req, []byte(payment)); !errors.Is(err, sign.ErrTime) {
			t.Errorf("six minutes ahead: %v, want ErrTime", err)
		}
		time.Sleep(time.Minute)
		fatal(t, verify(req, []byte(payment)))
		for range 10 * 60 {
			time.Sleep(time.Second)
			if err := verify(req, []byte(payment)); !errors.Is(err, sign.ErrReplayed) {
				t.Fatalf("played again: %v, want ErrReplayed", err)
			}
		}
		for range 20 {
			time.Sleep(time.Minute)
			if err := verify(req, []byte(payment)); !errors.Is(err, sign.ErrTime) {
				t.Fatalf("played again when it is too old: %v, want ErrTime", err)
			}
		}
	})
}

// TestNoncesAreBounded: at MaxNonces the next signature is refused, and room comes back with time.
func TestNoncesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		verify, err := hmacLayout.Verifier(sign.Freshness{MaxAge: time.Minute, MaxNonces: 2})
		fatal(t, err)
		authorize, err := hmacLayout.Authorize()
		fatal(t, err)
		send := func() error {
			req, err := http.NewRequest("GET", "https://example.com/payments", nil)
			fatal(t, err)
			fatal(t, authorize(req))
			return verify(req, nil)
		}
		fatal(t, send())
		fatal(t, send())
		if err := send(); !errors.Is(err, sign.ErrReplayed) {
			t.Errorf("the third: %v, want ErrReplayed", err)
		}
		time.Sleep(5 * time.Minute)
		fatal(t, send())
	})
}

// TestConcurrentAttempts: one function signs for many goroutines, each time with another nonce, and a verifier that many
// ask at once accepts one signature once.
func TestConcurrentAttempts(t *testing.T) {
	t.Parallel()
	for name, scheme := range schemes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wait sync.WaitGroup
			results := make(chan error, 64)
			for range 8 {
				wait.Go(func() {
					req, err := http.NewRequest("POST", "https://example.com/payments", strings.NewReader(payment))
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("Idempotency-Key", "order-7")
					if err := scheme.authorize(req); err != nil {
						t.Error(err)
					}
					for range 4 {
						wait.Go(func() { results <- scheme.verify(req, []byte(payment)) })
					}
				})
			}
			wait.Wait()
			close(results)
			good := 0
			for err := range results {
				if err == nil {
					good++
				} else if !errors.Is(err, sign.ErrReplayed) {
					t.Error(err)
				}
			}
			if good != 8 {
				t.Errorf("%d of 32 were accepted, want 8", good)
			}
		})
	}
}
