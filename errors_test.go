package oncehttp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
)

// TestErrorText: what an error says, to whoever reads it in a log.
func TestErrorText(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reply    reply
		attempts int
		closes   bool
		says     []string
	}{
		"one attempt":  {reply{err: errLost}, 1, false, []string{" after 1 attempt, not due before 2000-01-01T00:00:", "; last attempt: " + errLost.Error()}},
		"two attempts": {reply{err: errLost}, 2, false, []string{" after 2 attempts, "}},
		"closed":       {reply{status: 503, header: "Retry-After: 9"}, 6, true, []string{"last answer 503", ": client is closed"}},
		"lost, closed": {reply{err: errLost}, 6, true, []string{": client is closed; last attempt: " + errLost.Error()}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				c, _ := newClient(t, &wire{replies: []reply{r.reply}}, func(cfg *oncehttp.Config) {
					cfg.Retry.MaxAttempts = r.attempts
					if r.closes {
						cfg.Retry.MinDelay = time.Second
					}
				})
				if r.closes {
					go func() { time.Sleep(time.Nanosecond); c.Close() }()
				}
				_, err := c.DoKey(post(t, "{}"), "k")
				exactlyOne(t, err)
				for _, says := range r.says {
					if !strings.Contains(err.Error(), says) {
						t.Errorf("%q does not say %q", err, says)
					}
				}
			})
		})
	}
}

// TestResumeBeforeItIsDue: a Resume right after a failed Do does nothing, and the
// error has said until when.
func TestResumeBeforeItIsDue(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
		c, _ := newClient(t, w, oneAttempt)
		_, err := c.DoKey(post(t, "{}"), "k")
		var e *oncehttp.Error
		if !errors.As(err, &e) || !e.NextAttempt.After(time.Now()) || !strings.Contains(err.Error(), "not due before") {
			t.Fatalf("%v, want it to say when it is due", err)
		}
		if got := resume(t, c); len(got) != 0 || w.count() != 1 {
			t.Errorf("before it is due: %v", got)
		}
		time.Sleep(time.Until(e.NextAttempt))
		if got := resume(t, c)["k"]; got.err != nil || w.count() != 2 {
			t.Errorf("when it is due: %+v", got)
		}
	})
}

// TestCausesAreOthers: a context's cause that holds a verdict of this package says
// nothing of the operation that it ended.
func TestCausesAreOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _ := newClient(t, &wire{replies: []reply{{status: 201, delay: time.Minute}}}, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel(errors.Join(oncehttp.ErrNotSent, oncehttp.ErrHeld))
		}()
		_, err := c.DoKey(post(t, "{}").WithContext(ctx), "k")
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNotSent) || errors.Is(err, oncehttp.ErrHeld) {
			t.Errorf("%v matches what its cause says", err)
		}
	})
}

// TestNoRequest is an error, and no panic.
func TestNoRequest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, oneAttempt)
		_, _ = c.DoKey(post(t, "{}"), "k")
		_, keyless := c.Do(nil)
		_, keyed := c.DoKey(nil, "k")
		for _, r := range []struct{ err, is error }{{keyless, oncehttp.ErrNoEffect}, {keyed, oncehttp.ErrOutcomeUnknown}, {c.Enqueue(nil, "k"), oncehttp.ErrOutcomeUnknown}} {
			if exactlyOne(t, r.err); !errors.Is(r.err, oncehttp.ErrConfig) || !errors.Is(r.err, r.is) {
				t.Errorf("%v, want ErrConfig and %v", r.err, r.is)
			}
		}
	})
}
