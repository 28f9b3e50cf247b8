package oncehttp_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestLeaseEnds: a process that died with a lease is not waited for for ever.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	for name, end := range enders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				j := memory.New()
				var left persist.Journal
				w := &wire{replies: []reply{{err: errLost}}}
				w.before = func(int, *http.Request) { left = survivors(t, j) }
				c, _ := newClient(t, w, on(j, oneAttempt))
				_, _ = c.DoKey(post(t, "{}"), "k") // killed within
				next, _ := newClient(t, w, on(left, oneAttempt))
				sends := w.count()
				_, err := next.DoKey(post(t, "{}"), "k")
				for _, err := range []error{err, end(t.Context(), next, "k")} {
					if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrInFlight) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.count() != sends {
						t.Errorf("under a lease: %v", err)
					}
				}
				time.Sleep(6 * time.Minute)
				if err := end(t.Context(), next, "k"); err != nil {
					t.Errorf("after the lease: %v", err)
				}
			})
		})
	}
}

// TestLeaseOutlastsTheCall: no other process takes an operation whose lookups are under
// way, however long they take.
func TestLeaseOutlastsTheCall(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := memory.New()
		const slow = 9 * time.Minute
		w := &wire{replies: []reply{{status: 409, body: alreadyDone, delay: slow}, {status: 503, delay: slow}, {status: 200, delay: slow}}}
		change := func(cfg *oncehttp.Config) {
			cfg.Profile = profile.GoCardless()
			cfg.Retry = oncehttp.Policy{MaxElapsed: time.Minute, AttemptTimeout: 10 * time.Minute, AnswerTimeout: 12 * time.Minute}
		}
		c, _ := newClient(t, w, on(j, change))
		other, _ := newClient(t, w, on(newLeasing(j), change))
		done := make(chan error)
		go func() { _, err := c.DoKey(post(t, "{}"), "k"); done <- err }()
		for range 26 {
			time.Sleep(time.Minute)
			for _, err := range other.Resume(t.Context()) {
				t.Errorf("another process took it: %v", err)
			}
		}
		if err := <-done; err != nil || w.count() != 3 {
			t.Errorf("%v after %d sends, want 3", err, w.count())
		}
	})
}

// elsewhere is a journal as another process sees it that has no leases.
type elsewhere struct {
	persist.Journal
	own persist.Attachment
}

func (e *elsewhere) Attach(create func() any) any { return e.own.Attach(create) }

// TestAdoptIsSeen: whoever began an operation does not forget it as never sent once
// another process goes on with it, also where the journal has no leases.
func TestAdoptIsSeen(t *testing.T) {
	t.Parallel()
	for _, reply := range []reply{{refused: true, delay: time.Second}, {status: 403, delay: time.Second}} {
		bubble(t, func(t *testing.T) {
			j := memory.New()
			first, _ := newClient(t, &wire{replies: replies(reply)}, on(&elsewhere{Journal: j}, oneAttempt))
			w := &wire{replies: replies(accepted(10 * time.Second))}
			second, _ := newClient(t, w, on(&elsewhere{Journal: j}, oneAttempt))
			done := make(chan error)
			go func() { _, err := first.DoKey(post(t, "{}"), "k"); done <- err }()
			time.Sleep(time.Second / 2)
			go func() { _, err := second.DoKey(post(t, "{}"), "k"); done <- err }()
			if err := <-done; !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("who began it: %v, want ErrOutcomeUnknown", err)
			}
			if err := <-done; err != nil || w.count() != 1 {
				t.Errorf("who went on: %v", err)
			}
			if rec := lookup(t, second, "k"); rec.State != persist.StateConfirmed {
				t.Errorf("it is %v", rec.State)
			}
		})
	}
}

func replies(r reply) []reply { return []reply{r} }

func accepted(delay time.Duration) reply { return reply{status: 201, delay: delay} }
