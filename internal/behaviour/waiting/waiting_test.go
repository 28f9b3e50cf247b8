package waiting_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist"
)

// policies are those of the page, as it spells them.
func policies() map[string]oncehttp.Policy {
	return map[string]oncehttp.Policy{
		"`{}`":                             {},
		"`{MaxAttempts: 1}`":               {MaxAttempts: 1},
		"`{MaxElapsed: 20 * time.Second}`": {MaxElapsed: 20 * time.Second},
		"`{AttemptTimeout: 3 * time.Second, AnswerTimeout: 5 * time.Second, MaxElapsed: 5 * time.Second}`": handler(),
	}
}

// handler is the policy that the page advises.
func handler() oncehttp.Policy {
	return oncehttp.Policy{AttemptTimeout: 3 * time.Second, AnswerTimeout: 5 * time.Second, MaxElapsed: 5 * time.Second}
}

// call makes one call in virtual time, and returns its duration. check sees what came of it.
func call(t *testing.T, s *server, change func(*oncehttp.Config), deadline time.Duration, check func(*testing.T, *oncehttp.Client, error)) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, s, func(cfg *oncehttp.Config) {
			clienttest.Protected(cfg)
			change(cfg)
		})
		ctx := t.Context()
		if deadline >= 0 {
			within, stop := context.WithTimeout(ctx, deadline)
			defer stop()
			ctx = within
		}
		start := time.Now()
		_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
		took = time.Since(start)
		clienttest.ExactlyOne(t, err)
		check(t, c, err)
	})
	return took
}

func with(p oncehttp.Policy) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Retry = p }
}

func unknown(t *testing.T, _ *oncehttp.Client, err error) {
	if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Errorf("%v; want an unknown outcome", err)
	}
}

// latest returns a server whose last reply is met by an attempt at the end of MaxElapsed: before, it asks for the pauses that lead there.
func latest(p oncehttp.Policy, last reply) *server {
	elapsed, most := p.MaxElapsed, time.Minute // MaxRetryAfter
	if elapsed == 0 {
		elapsed = 2 * time.Minute
	}
	s := &server{}
	for ; elapsed > 0 && p.MaxAttempts != 1; elapsed -= min(elapsed, most) {
		s.replies = append(s.replies, says(http.StatusServiceUnavailable, strconv.Itoa(int(min(elapsed, most).Seconds()))))
	}
	s.replies = append(s.replies, last)
	return s
}

// TestLongest: the table of the longest calls. The first two figures are reached to the nanosecond; the third is the bound of random pauses.
func TestLongest(t *testing.T) {
	t.Parallel()
	listed := policies()
	for _, row := range rows(t, "The longest call without a deadline") {
		p, known := listed[row[0]]
		if !known || len(row) != 4 {
			t.Errorf("the test does not know the row %q", row)
			continue
		}
		delete(listed, row[0])
		for i, last := range []reply{silent, endless} {
			if took := call(t, latest(p, last), with(p), -1, unknown); took != duration(t, row[i+1]) {
				t.Errorf("%s: %q of the page, %v", row[0], row[i+1], took)
			}
		}
		var most, sum time.Duration
		const calls = 100
		for range calls {
			took := call(t, &server{replies: []reply{says(http.StatusServiceUnavailable, "")}}, with(p), -1, unknown)
			most, sum = max(most, took), sum+took
		}
		bound := duration(t, row[3])
		if most > bound || most < bound/2 || p.MaxElapsed != handler().MaxElapsed && (sum < calls*bound*4/10 || sum > calls*bound*6/10) {
			t.Errorf("%s: with 503 %q of the page, at most %v, %v on average", row[0], row[3], most, sum/calls)
		}
	}
	for left := range listed {
		t.Errorf("the page has no row %s", left)
	}
}

// TestBounds: the defaults of the first table, each by a call that it ends.
func TestBounds(t *testing.T) {
	t.Parallel()
	long := 300 * 24 * time.Hour
	wide := oncehttp.Policy{MaxElapsed: long, MaxRetryAfter: long}
	served := &server{replies: []reply{says(http.StatusServiceUnavailable, "")}}
	call(t, served, with(oncehttp.Policy{}), -1, unknown)
	got := map[string]string{
		"`Retry.MaxElapsed`":     call(t, latest(oncehttp.Policy{MaxElapsed: 2 * time.Minute}, says(http.StatusServiceUnavailable, "1")), with(oncehttp.Policy{}), -1, unknown).String(),
		"`Retry.AttemptTimeout`": call(t, &server{replies: []reply{silent}}, with(oncehttp.Policy{MaxAttempts: 1}), -1, unknown).String(),
		"`Retry.AnswerTimeout`":  call(t, &server{replies: []reply{endless}}, with(oncehttp.Policy{MaxAttempts: 1}), -1, unknown).String(),
		"`Retry.MaxAttempts`":    strconv.Itoa(len(served.sends())),
		"`Retry.MaxRetryAfter`":  "",
		"`Retry.MaxDelay`":       "",
	}
	for _, asked := range []time.Duration{time.Minute, time.Minute + time.Second} {
		s := &server{replies: []reply{says(http.StatusServiceUnavailable, strconv.Itoa(int(asked.Seconds())))}}
		call(t, s, with(oncehttp.Policy{MaxElapsed: long}), -1, unknown)
		if len(s.sends()) > 1 {
			got["`Retry.MaxRetryAfter`"] = asked.String()
		}
	}
	wide.MaxAttempts = 400
	s := &server{replies: []reply{says(http.StatusServiceUnavailable, "")}}
	call(t, s, with(wide), -1, unknown)
	var longest time.Duration
	for i, at := range s.sends()[1:] {
		longest = max(longest, at.Sub(s.sends()[i]))
	}
	got["`Retry.MaxDelay`"] = longest.Round(2 * time.Second).String() // of some 400 pauses
	for _, row := range rows(t, "What bounds a call") {
		if got[row[0]] != row[1] && row[0] != "the context of the request" {
			t.Errorf("%s: %q of the page, %q", row[0], row[1], got[row[0]])
		}
		delete(got, row[0])
	}
	if len(got) > 0 {
		t.Errorf("the page lacks %v", got)
	}
}

// TestUnbounded: a call without a deadline waits for its Limiter for hours.
func TestUnbounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		wait := clienttest.LimiterFunc(func(ctx context.Context) error {
			select {
			case <-open:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		c, _ := clienttest.New(t, &server{replies: []reply{says(http.StatusCreated, "")}}, func(cfg *oncehttp.Config) {
			clienttest.Protected(cfg)
			clienttest.LimitedBy(wait)(cfg)
		})
		time.AfterFunc(20*time.Hour, func() { close(open) })
		start := time.Now()
		resp := clienttest.Do(t, c, clienttest.Post(t, "{}"), "k")
		clienttest.Read(t, resp)
		if took := time.Since(start); took != 20*time.Hour {
			t.Errorf("it took %v", took)
		}
	})
}

// TestHandler: the sends that a silent server leaves room for within the customer's 10 seconds.
func TestHandler(t *testing.T) {
	t.Parallel()
	for want, p := range map[int]oncehttp.Policy{1: {}, 2: handler()} {
		s := &server{replies: []reply{silent}}
		if took := call(t, s, with(p), 10*time.Second, unknown); len(s.sends()) != want || took > 10*time.Second {
			t.Errorf("sends at %v in %v; want %d", s.sends(), took, want)
		}
	}
}

// TestDeadline: the table of deadlines, each with its duration, its errors and the state of the operation.
func TestDeadline(t *testing.T) {
	t.Parallel()
	never := clienttest.LimitedBy(clienttest.LimiterFunc(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}))
	cases := map[string]struct {
		deadline time.Duration
		replies  []reply
		change   func(*oncehttp.Config)
	}{
		"before the call":                          {0, []reply{silent}, with(oncehttp.Policy{})},
		"while `Limiter` waits for the first send": {10 * time.Second, []reply{silent}, never},
		"while an attempt is on the wire":          {10 * time.Second, []reply{silent}, with(oncehttp.Policy{})},
		"in a pause that would end after it":       {10 * time.Second, []reply{says(http.StatusServiceUnavailable, "30")}, with(oncehttp.Policy{})},
		"in a pause, after a 429":                  {10 * time.Second, []reply{says(http.StatusTooManyRequests, "30")}, with(oncehttp.Policy{})},
	}
	matches := map[string]error{"`ErrNoEffect`": oncehttp.ErrNoEffect, "`ErrOutcomeUnknown`": oncehttp.ErrOutcomeUnknown, "`ErrRefused`": oncehttp.ErrRefused, "`context.DeadlineExceeded`": context.DeadlineExceeded}
	for _, row := range rows(t, "When the deadline ends first") {
		c, known := cases[row[0]]
		if !known || len(row) != 4 {
			t.Errorf("the test does not know the row %q", row)
			continue
		}
		delete(cases, row[0])
		named := strings.Split(row[2], ", ")
		took := call(t, &server{replies: c.replies}, c.change, c.deadline, func(t *testing.T, client *oncehttp.Client, err error) {
			for text, of := range matches {
				if errors.Is(err, of) != slices.Contains(named, text) {
					t.Errorf("%s: the page has %s, the error is %v", row[0], row[2], err)
				}
			}
			rec, missing := client.Lookup(context.WithoutCancel(t.Context()), "k")
			pending := missing == nil && rec.State == persist.StatePending
			if pending != (row[3] == "is pending") || !pending && !errors.Is(missing, persist.ErrNotFound) {
				t.Errorf("%s: the page has %q, the record is %v, %v", row[0], row[3], rec.State, missing)
			}
		})
		if took != duration(t, row[1]) {
			t.Errorf("%s: %s of the page, %v", row[0], row[1], took)
		}
	}
	if len(cases) > 0 {
		t.Errorf("the page lacks %v", cases)
	}
}

// TestGoesOn: an operation whose attempt was cut by the deadline is due within a second. Run ends it by a second send, under the same key.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{replies: []reply{silent, says(http.StatusCreated, "")}}
		c, _ := clienttest.New(t, s, func(cfg *oncehttp.Config) { clienttest.Protected(cfg) })
		stop := clienttest.Start(t, c)
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Error(err)
		}
		time.Sleep(2 * time.Second)
		if at := s.sends(); len(at) != 2 || at[1].Sub(at[0]) > 11*time.Second {
			t.Errorf("sends at %v; want a second one within a second of the deadline", at)
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StateConfirmed {
			t.Errorf("it is %v", rec.State)
		}
	})
}

// TestCutAlone: the attempt on the wire goes on after the deadline of one caller while another one waits for it.
func TestCutAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(req *http.Request) (*http.Response, error) {
			select {
			case <-time.After(20 * time.Second):
				return says(http.StatusCreated, "")(req)
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
		s := &server{replies: []reply{slow}}
		c, _ := clienttest.New(t, s, func(cfg *oncehttp.Config) { clienttest.Protected(cfg) })
		start := time.Now()
		ended := map[time.Duration]chan error{10 * time.Second: make(chan error, 1), time.Minute: make(chan error, 1)}
		for deadline, end := range ended {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				resp, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
				if err == nil {
					clienttest.Read(t, resp)
				}
				end <- err
			}()
		}
		if err := <-ended[10*time.Second]; !errors.Is(err, oncehttp.ErrOutcomeUnknown) || time.Since(start) != 10*time.Second {
			t.Errorf("the first caller has %v after %v", err, time.Since(start))
		}
		if err := <-ended[time.Minute]; err != nil || len(s.sends()) != 1 || time.Since(start) != 20*time.Second {
			t.Errorf("the second caller has %v after %v and sends at %v", err, time.Since(start), s.sends())
		}
	})
}
