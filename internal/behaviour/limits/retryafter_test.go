package limits_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestRetryAfter: seconds and all three dates, on any answer that is asked again; what
// is past, malformed, negative or beyond all measure is no hint.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	date := func(layout string, in time.Duration) func(time.Time) string {
		return func(now time.Time) string { return now.Add(in).UTC().Format(layout) }
	}
	text := func(s string) func(time.Time) string { return func(time.Time) string { return s } }
	const asctime, rfc850 = time.ANSIC, "Monday, 02-Jan-06 15:04:05 GMT"
	rows := []struct {
		name  string
		value func(time.Time) string
		want  time.Duration
	}{
		{"seconds", text("90"), 90 * time.Second},
		{"seconds with blanks", text(" 5\t"), 5 * time.Second},
		{"leading zeros", text("007"), 7 * time.Second},
		{"IMF-fixdate", date(http.TimeFormat, 90*time.Second), 90 * time.Second},
		{"RFC 850 date", date(rfc850, 90*time.Second), 90 * time.Second},
		{"asctime date", date(asctime, 90*time.Second), 90 * time.Second},
		{"zero", text("0"), 0},
		{"past date", date(http.TimeFormat, -time.Hour), 0},
		{"now", date(http.TimeFormat, 0), 0},
		{"negative", text("-5"), 0},
		{"plus", text("+5"), 0},
		{"fraction", text("1.5"), 0},
		{"overflow of nanoseconds", text("9223372037"), 0},
		{"overflow of 64 bits", text("99999999999999999999999"), 0},
		{"garbage", text("soon"), 0},
		{"empty", text(""), 0},
		{"other digits", text("١٢"), 0},
		{"two values in one", text("3, 4"), 0},
		{"date without a zone", text("Sun, 06 Nov 2044 08:49:37"), 0},
	}
	for _, r := range rows {
		for _, status := range []int{408, 409, 421, 425, 429, 500, 503} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Header: "Retry-After:" + r.value(time.Now())}, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.Unhurried)
				if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Fatalf("%s on %d: %v", r.name, status, err)
				}
				if got := w.Sends[1].At.Sub(w.Sends[0].At); got < r.want || got > r.want+time.Millisecond {
					t.Errorf("%s on %d: waited %v, want %v", r.name, status, got, r.want)
				}
			})
		}
	}
}

// TestRetryAfterBound: a wait of MaxRetryAfter is waited; one second more stops
// the drive, is kept in the journal, said in the error, and obeyed by Resume.
func TestRetryAfterBound(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		name    string
		first   []wiretest.Reply
		value   string
		stops   bool
		pending bool // something is left to go on with
	}{
		{"at the bound", nil, "60", false, false},
		{"one past it", []wiretest.Reply{{Status: 503, Header: "Retry-After: 61"}}, "61", true, true},
		{"most of the window", []wiretest.Reply{{Status: 503, Header: "Retry-After: 72000"}}, "72000", true, true},
		{"a year, of which nothing is left", []wiretest.Reply{{Status: 429, Header: "Retry-After: 31536000"}}, "31536000", true, false},
		{"429, of which nothing is left", []wiretest.Reply{{Status: 429, Header: "Retry-After: 3600"}}, "3600", true, false},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				replies := r.first
				if replies == nil {
					replies = []wiretest.Reply{{Status: 503, Header: "Retry-After: " + r.value}}
				}
				w := &wiretest.Wire{Replies: append(replies, wiretest.Reply{Status: 201})}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Retry = oncehttp.Policy{MinDelay: 1, MaxDelay: 1, MaxRetryAfter: time.Minute}
				})
				_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if (err != nil) != r.stops {
					t.Fatalf("err = %v, want a stop: %v", err, r.stops)
				}
				if !r.stops {
					return
				}
				seconds, _ := strconv.Atoi(r.value)
				due := w.Sends[0].At.Add(time.Duration(seconds) * time.Second)
				var e *oncehttp.Error
				errors.As(err, &e)
				if !e.NextAttempt.Equal(due) || !strings.Contains(err.Error(), "MaxRetryAfter") || w.Count() != 1 {
					t.Errorf("%v; NextAttempt %v, want %v; %d sends, want 1", err, e.NextAttempt, due, w.Count())
				}
				if !r.pending {
					if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
						t.Errorf("Lookup: %v, want nothing left", err)
					}
					return
				}
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending || !rec.NextAttempt.Equal(due) {
					t.Errorf("record %v, next attempt %v; want pending until %v", rec.State, rec.NextAttempt, due)
				}
				for range c.Resume(t.Context()) {
					t.Error("Resume took it before its time")
				}
				if w.Count() != 1 {
					t.Errorf("%d sends before its time", w.Count())
				}
			})
		})
	}
}

// TestRetryAfterBeyondTheWindow: a server that asks for a longer wait than it keeps the key is asked once more while
// it still knows the key, and not again.
func TestRetryAfterBeyondTheWindow(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			later := wiretest.Reply{Status: 503, Header: "Retry-After: 172800"}
			w := &wiretest.Wire{Replies: []wiretest.Reply{later, {Status: 201, Body: "paid"}}}
			if !answers {
				w.Replies = []wiretest.Reply{later}
			}
			c, _ := clienttest.New(t, w, nil)
			start := time.Now()
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			var e *oncehttp.Error
			if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatalf("%v, want an unknown outcome", err)
			}
			if in := e.NextAttempt.Sub(start); in < 12*time.Hour || in >= 24*time.Hour-90*time.Second {
				t.Fatalf("the next attempt is due in %v, want late in the window of 24h", in)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 72*time.Hour)
			defer cancel()
			_ = c.Run(ctx)
			rec := clienttest.Lookup(t, c, "k")
			switch {
			case w.Count() != 2:
				t.Errorf("%d sends in three days, want one more in the window", w.Count())
			case answers && rec.State != persist.StateConfirmed:
				t.Errorf("record %v, want confirmed", rec.State)
			case !answers && (rec.State != persist.StateHeld || rec.HoldReason != persist.HoldExpired):
				t.Errorf("record %v %q, want held as expired", rec.State, rec.HoldReason)
			}
		})
	}
}

// TestRetryAfterBeyondTheTimeForSends: an operation whose server asks for a longer wait than it may be sent is held as expired
// once that time is over, and whoever observes is told. It does not stand as pending until the wait is over.
func TestRetryAfterBeyondTheTimeForSends(t *testing.T) {
	t.Parallel()
	month := wiretest.Reply{Status: 429, Header: "Retry-After: 2592000"}
	doubt := wiretest.Reply{Status: 503, Header: "Retry-After: 2592000"}
	for name, r := range map[string]struct {
		replies []wiretest.Reply
		begin   func(t *testing.T, c *oncehttp.Client)
		over    time.Duration // from then on it is held
		sends   int           // zero: any number
	}{
		"enqueued": {[]wiretest.Reply{month}, func(*testing.T, *oncehttp.Client) {}, 24 * time.Hour, 1},
		"enqueued, sent by Do": {[]wiretest.Reply{month}, func(t *testing.T, c *oncehttp.Client) {
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			var e *oncehttp.Error
			if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || time.Until(e.NextAttempt).Round(time.Second) != 24*time.Hour {
				t.Errorf("%v, want that it is held in a day", err)
			}
		}, 24 * time.Hour, 1},
		"in doubt":             {[]wiretest.Reply{doubt}, func(*testing.T, *oncehttp.Client) {}, 24*time.Hour - 90*time.Second, 2},
		"refused all the time": {[]wiretest.Reply{{Status: 429}}, func(*testing.T, *oncehttp.Client) {}, 24 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: r.replies}
				var blocked []error
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						if e.Kind == oncehttp.EventBlocked || e.Kind == oncehttp.EventFinished {
							blocked = append(blocked, e.Err)
						}
					}
				})
				if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
					t.Fatal(err)
				}
				r.begin(t, c)
				stop := clienttest.Run(t, c)
				time.Sleep(r.over - time.Minute)
				if rec := clienttest.Lookup(t, c, "k"); rec.State != persist.StatePending {
					t.Errorf("%v for %q before its time was over", rec.State, rec.HoldReason)
				}
				time.Sleep(2 * time.Minute)
				_ = stop()
				rec := clienttest.Lookup(t, c, "k")
				if rec.State != persist.StateHeld || rec.HoldReason != persist.HoldExpired || r.sends != 0 && w.Count() != r.sends {
					t.Errorf("%v for %q, due at %v; %d sends, want it held after %d", rec.State, rec.HoldReason, rec.NextAttempt, w.Count(), r.sends)
				}
				if n := len(blocked); n == 0 || !errors.Is(blocked[n-1], oncehttp.ErrHeld) {
					t.Errorf("told: %v", blocked)
				}
			})
		})
	}
}

// TestRetryAfterTwice: of two lines, and of a line and a date, the longer wait counts.
func TestRetryAfterTwice(t *testing.T) {
	t.Parallel()
	for _, lines := range []string{"Retry-After: 5\nRetry-After: 50", "Retry-After: 50\nRetry-After: 5"} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: lines}, {Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.Unhurried)
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
				t.Fatal(err)
			}
			if got := w.Sends[1].At.Sub(w.Sends[0].At); got < 50*time.Second || got > 51*time.Second {
				t.Errorf("%q: waited %v, want 50s", lines, got)
			}
		})
	}
}

// TestRetryAfterMilliseconds: a profile may name other headers; the longest counts.
func TestRetryAfterMilliseconds(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"Retry-After-Ms: 1500":                   1500 * time.Millisecond,
		"Retry-After-Ms: 1500\nRetry-After: 1":   1500 * time.Millisecond,
		"Retry-After-Ms: 1500\nRetry-After: 2":   2 * time.Second,
		"Retry-After-Ms: -1\nRetry-After: 2":     2 * time.Second,
		"Retry-After-Ms: 9223372036855\nA: b":    0,
		"Retry-After-Ms: Sun, 06 Nov 2044\nA: b": 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := profile.Draft07()
			p.Name = "ms"
			p.RetryAfter = append(p.RetryAfter, profile.Hint{Header: "Retry-After-Ms", Unit: profile.Milliseconds})
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: header}, {Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { clienttest.Unhurried(cfg); cfg.Profile = p })
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			if w.Count() == 1 {
				if want != 0 || err == nil {
					t.Errorf("%q: %v", header, err)
				}
				return
			}
			if got := w.Sends[1].At.Sub(w.Sends[0].At); got < want || got > want+time.Millisecond {
				t.Errorf("%q: waited %v, want %v", header, got, want)
			}
		})
	}
}

// TestRetryAfterInTheBody: where the profile says so, a wait in the answer's JSON is obeyed like the header: waited
// for up to MaxRetryAfter; one second more stops the call and is kept in the journal.
func TestRetryAfterInTheBody(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Name = "waits-in-json"
	p.RetryAfter = append(p.RetryAfter, profile.Hint{Pointer: "/retry_after", Unit: profile.HTTPDelay})
	for seconds, waits := range map[int]bool{5: true, 7200: true, 7201: false} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Body: `{"retry_after": ` + strconv.Itoa(seconds) + `}`}, {Status: 201}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { clienttest.Unhurried(cfg); cfg.Profile = p })
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			want := time.Duration(seconds) * time.Second
			if !waits {
				rec := clienttest.Lookup(t, c, "k")
				if got := rec.NextAttempt.Sub(w.Sends[0].At); err == nil || w.Count() != 1 || got != want {
					t.Errorf("%d s: %v, %d sends, next attempt after %v", seconds, err, w.Count(), got)
				}
				return
			}
			if err != nil || w.Count() != 2 {
				t.Fatalf("%d s: %v, %d sends", seconds, err, w.Count())
			}
			if got := w.Sends[1].At.Sub(w.Sends[0].At); got < want || got > want+time.Millisecond {
				t.Errorf("%d s: waited %v", seconds, got)
			}
		})
	}
}

// TestRetryAfterOnStreams: a GET obeys it too, within the same bound.
func TestRetryAfterOnStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 7"}, {Status: 429, Header: "Retry-After: 7201", Body: "full"}}}
		c, _ := clienttest.New(t, w, clienttest.Unhurried)
		resp, err := c.Do(clienttest.Request(t, "GET", "https://api.example.com/", ""))
		if err != nil || resp.StatusCode != 429 || clienttest.Read(t, resp) != "full" || w.Count() != 2 {
			t.Fatalf("%v after %d sends, want the 429 itself after 2", err, w.Count())
		}
		if got := w.Sends[1].At.Sub(w.Sends[0].At); got < 7*time.Second || got > 7*time.Second+time.Millisecond {
			t.Errorf("waited %v, want 7s", got)
		}
	})
}

// FuzzRetryAfter: whatever the header says, the next attempt is neither in the
// past nor out of the calendar.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"5", "-1", "99999999999999999999", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "1.5", " 7 "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		rt := wiretest.Func(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {value}}, Body: http.NoBody}, nil
		})
		c, _ := clienttest.New(t, rt, func(cfg *oncehttp.Config) {
			cfg.Retry = oncehttp.Policy{MaxAttempts: 1, MinDelay: 1, MaxDelay: 1}
		})
		before := time.Now().Round(0)
		_, err := c.DoKey(clienttest.Request(t, "POST", "https://h/", ""), "k")
		var e *oncehttp.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		wait := e.NextAttempt.Sub(before)
		if wait < 0 || wait > 367*24*time.Hour {
			t.Errorf("%q: next attempt in %v", value, wait)
		}
		if n, err := strconv.Atoi(value); err == nil && n > 0 && n < 1e6 && value[0] != '+' {
			if want := time.Duration(n) * time.Second; wait < want || wait > want+time.Minute {
				t.Errorf("%q: next attempt in %v", value, wait)
			}
		}
	})
}
