package enqueue_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// This file tests that nothing is sent for the first time past SendBefore, whatever claims, waits and crashes come in between.

// claimedBefore is how long before SendBefore a process claims an operation that it never sends, and what becomes of that.
type claimedBefore struct {
	before time.Duration
	sends  int
}

// TestClaimedPastSendBefore: a claim at SendBefore or past it marks nothing, so that a crash between the claim and the send makes
// no first send out of what may not be sent any more. What was marked in time may have been sent, and is asked for again.
func TestClaimedPastSendBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]claimedBefore{
		"in time": {time.Nanosecond, 1},
		"at it":   {0, 0},
		"past it": {-time.Nanosecond, 0},
		"a day":   {-24 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				client, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.EnqueueMaxAge = time.Hour }))
				clienttest.Enqueue(t, client, 1)
				time.Sleep(time.Hour - c.before)
				claimed, _, err := j.ClaimToSend(t.Context(), persist.Query{}, "a process that dies", time.Minute, time.Hour, 10)
				if err != nil || len(claimed) != 1 {
					t.Fatalf("claimed %d, %v", len(claimed), err)
				}
				time.Sleep(2 * time.Hour)
				stop := clienttest.Run(t, client)
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				endedAs(t, client, w.Count(), c.sends, c.sends == 0)
			})
		})
	}
}

// endedAs checks how often the operation k0 was handed to the transport, and that its record ends as held and never sent, or as confirmed.
func endedAs(t *testing.T, c *oncehttp.Client, sends, want int, neverSent bool) {
	t.Helper()
	if sends != want {
		t.Errorf("%d sends, want %d", sends, want)
	}
	rec := clienttest.Lookup(t, c, "k0")
	switch {
	case !neverSent && rec.State != persist.StateConfirmed:
		t.Errorf("it is %v, want it confirmed", rec.State)
	case neverSent && (rec.State != persist.StateHeld || rec.HoldReason != persist.HoldExpired || rec.MaybeSent || rec.Sends != 0 || !rec.FirstSent.IsZero()):
		t.Errorf("it is %v for %q, maybe sent %t, %d sends; want it held as never sent", rec.State, rec.HoldReason, rec.MaybeSent, rec.Sends)
	}
}

// slowLimiter lets each send wait.
type slowLimiter time.Duration

// Wait waits.
func (s slowLimiter) Wait(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(s)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestFirstSendWaitsPastSendBefore: a first send that its limiter, or Authorize, delays past SendBefore is not made, by whatever
// call; one that they let go in time is, and so is every later send of an operation that may have been sent.
func TestFirstSendWaitsPastSendBefore(t *testing.T) {
	t.Parallel()
	const age = time.Hour
	limited := func(wait time.Duration) func(*oncehttp.Config) {
		return func(cfg *oncehttp.Config) {
			cfg.EnqueueMaxAge, cfg.Lease = age, time.Hour // the operation is given back after a third of it: not at the moment in question
			cfg.Limiter = func(string) oncehttp.Limiter { return slowLimiter(wait) }
		}
	}
	authorized := func(wait time.Duration) func(*oncehttp.Config) {
		return func(cfg *oncehttp.Config) {
			cfg.EnqueueMaxAge = age
			cfg.Authorize = func(req *http.Request) error { return slowLimiter(wait).Wait(req.Context()) }
		}
	}
	lost, redirect, refused := wiretest.Reply{Err: errors.New("reset")}, wiretest.Reply{Status: 307, Header: "Location: /other"}, wiretest.Reply{Refused: true}
	done := wiretest.Reply{Status: 201}
	for name, c := range map[string]struct {
		change    func(*oncehttp.Config)
		replies   []wiretest.Reply
		sends     int
		neverSent bool
	}{
		"limited until SendBefore":          {limited(10 * time.Second), []wiretest.Reply{done}, 1, false},
		"limited past SendBefore":           {limited(10*time.Second + 1), []wiretest.Reply{done}, 0, true},
		"authorized until SendBefore":       {authorized(10 * time.Second), []wiretest.Reply{done}, 1, false},
		"authorized past SendBefore":        {authorized(10*time.Second + 1), []wiretest.Reply{done}, 0, true},
		"in doubt, limited past it":         {limited(8 * time.Second), []wiretest.Reply{lost, done}, 2, false},
		"in doubt, authorized past it":      {authorized(8 * time.Second), []wiretest.Reply{lost, done}, 2, false},
		"redirected, limited past it":       {limited(8 * time.Second), []wiretest.Reply{redirect, done}, 2, false},
		"redirected, authorized past it":    {authorized(8 * time.Second), []wiretest.Reply{redirect, done}, 2, false},
		"not connected, limited past it":    {limited(8 * time.Second), []wiretest.Reply{refused, done}, 1, true},
		"not connected, authorized past it": {authorized(8 * time.Second), []wiretest.Reply{refused, done}, 1, true},
	} {
		for call, run := range map[string]func(*testing.T, *oncehttp.Client){
			"Run": func(t *testing.T, client *oncehttp.Client) {
				stop := clienttest.Run(t, client)
				time.Sleep(time.Hour)
				if err := stop(); err != nil {
					t.Error(err)
				}
			},
			"Resume": func(t *testing.T, client *oncehttp.Client) { resumeAll(t, client) },
			"Do": func(t *testing.T, client *oncehttp.Client) {
				if resp, err := client.DoKey(clienttest.Post(t, `{"n":0}`), "k0"); err == nil {
					clienttest.Read(t, resp)
				} else if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrKeyExpired) || !errors.Is(err, oncehttp.ErrHeld) {
					t.Errorf("Do: %v", err)
				}
			},
		} {
			t.Run(name+"/"+call, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					w := &wiretest.Wire{Replies: c.replies}
					client, _ := clienttest.New(t, w, clienttest.On(j, c.change))
					clienttest.Enqueue(t, client, 1)
					time.Sleep(age - 10*time.Second)
					run(t, client)
					synctest.Wait()
					endedAs(t, client, w.Count(), c.sends, c.neverSent)
				})
			})
		}
	}
}

// resumeAll runs passes over the journal for an hour.
func resumeAll(t *testing.T, client *oncehttp.Client) {
	t.Helper()
	for range 6 {
		for _, err := range client.Resume(t.Context()) {
			if err != nil {
				clienttest.ExactlyOne(t, err)
			}
		}
		time.Sleep(10 * time.Minute)
	}
}
