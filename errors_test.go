package oncehttp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
)

// TestErrorText: what an error says, to whoever reads it in a log.
func TestErrorText(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reply    wiretest.Reply
		attempts int
		closes   bool
		says     []string
	}{
		"one attempt":  {wiretest.Reply{Err: wiretest.ErrLost}, 1, false, []string{" after 1 attempt, not due before 2000-01-01T00:00:", "; last attempt: " + wiretest.ErrLost.Error()}},
		"two attempts": {wiretest.Reply{Err: wiretest.ErrLost}, 2, false, []string{" after 2 attempts, "}},
		"closed":       {wiretest.Reply{Status: 503, Header: "Retry-After: 9"}, 6, true, []string{"last answer 503", ": client is closed"}},
		"lost, closed": {wiretest.Reply{Err: wiretest.ErrLost}, 6, true, []string{": client is closed; last attempt: " + wiretest.ErrLost.Error()}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}, func(cfg *oncehttp.Config) {
					cfg.Retry.MaxAttempts = r.attempts
					if r.closes {
						cfg.Retry.MinDelay = time.Second
					}
				})
				if r.closes {
					go func() { time.Sleep(time.Nanosecond); c.Close() }()
				}
				_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				clienttest.ExactlyOne(t, err)
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
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.OneAttempt)
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		var e *oncehttp.Error
		if !errors.As(err, &e) || !e.NextAttempt.After(time.Now()) || !strings.Contains(err.Error(), "not due before") {
			t.Fatalf("%v, want it to say when it is due", err)
		}
		if got := clienttest.Resume(t, c); len(got) != 0 || w.Count() != 1 {
			t.Errorf("before it is due: %v", got)
		}
		time.Sleep(time.Until(e.NextAttempt))
		if got := clienttest.Resume(t, c)["k"]; got.Err != nil || w.Count() != 2 {
			t.Errorf("when it is due: %+v", got)
		}
	})
}

// TestCausesAreOthers: a context's cause that holds a verdict of this package says
// nothing of the operation that it ended.
func TestCausesAreOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Minute}}}, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel(errors.Join(oncehttp.ErrNotSent, oncehttp.ErrHeld))
		}()
		_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNotSent) || errors.Is(err, oncehttp.ErrHeld) {
			t.Errorf("%v matches what its cause says", err)
		}
	})
}

// TestNoRequest is an error, and no panic.
func TestNoRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.OneAttempt)
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		_, keyless := c.Do(nil)
		_, keyed := c.DoKey(nil, "k")
		for _, r := range []struct{ err, is error }{{keyless, oncehttp.ErrNoEffect}, {keyed, oncehttp.ErrOutcomeUnknown}, {c.Enqueue(nil, "k"), oncehttp.ErrOutcomeUnknown}} {
			if clienttest.ExactlyOne(t, r.err); !errors.Is(r.err, oncehttp.ErrConfig) || !errors.Is(r.err, r.is) {
				t.Errorf("%v, want ErrConfig and %v", r.err, r.is)
			}
		}
	})
}
