// Package pages_test holds that a page of something in front of the API is no answer of the API.
package pages_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestAPageIsNoSuccess: an HTML document that the request did not ask for is no answer of the API. Where a named profile says
// that the key protects, it is asked for again, and held when it comes a second time; else it is held at once.
func TestAPageIsNoSuccess(t *testing.T) {
	t.Parallel()
	page, other := wiretest.Reply{Status: 200, Body: wiretest.Maintenance}, wiretest.Reply{Status: 200, Body: wiretest.Maintenance + "<!-- ray 2 -->"}
	ok, lost := wiretest.Reply{Status: 201, Body: `{"id":"p1"}`}, wiretest.Reply{Err: wiretest.ErrLost}
	for name, r := range map[string]struct {
		profile func(*oncehttp.Config)
		replies []wiretest.Reply
		sends   int
		held    bool // as unclear; else it is confirmed with the 201
	}{
		"default":                           {nil, []wiretest.Reply{page, ok}, 1, true},
		"default, after a lost send":        {nil, []wiretest.Reply{lost, page, ok}, 2, true},
		"default, 202":                      {nil, []wiretest.Reply{{Status: 202, Body: wiretest.Maintenance}, ok}, 1, true},
		"default, said to be JSON":          {nil, []wiretest.Reply{{Status: 200, Body: wiretest.Maintenance, Header: "Content-Type: application/json"}, ok}, 1, true},
		"default, said to be replayed":      {nil, []wiretest.Reply{{Status: 200, Body: wiretest.Maintenance, Header: "Idempotent-Replayed: true"}, ok}, 1, true},
		"no key":                            {clienttest.TakesNoKey, []wiretest.Reply{page, ok}, 1, true},
		"named":                             {clienttest.Protected, []wiretest.Reply{page, ok}, 2, false},
		"named, twice":                      {clienttest.Protected, []wiretest.Reply{page, page, ok}, 2, true},
		"named, two that differ":            {clienttest.Protected, []wiretest.Reply{page, other, ok}, 3, false},
		"named, a lost one between":         {clienttest.Protected, []wiretest.Reply{page, lost, page, ok}, 3, true},
		"named, another status":             {clienttest.Protected, []wiretest.Reply{page, {Status: 202, Body: wiretest.Maintenance}, ok}, 3, false},
		"named, in doubt":                   {clienttest.Protected, []wiretest.Reply{lost, page, ok}, 3, false},
		"named, larger than what is kept":   {clienttest.Protected, []wiretest.Reply{{Status: 200, Body: wiretest.Maintenance + strings.Repeat(" ", 2000)}, ok}, 2, false},
		"default, larger than what is kept": {nil, []wiretest.Reply{{Status: 200, Body: wiretest.Maintenance + strings.Repeat(" ", 2000)}, ok}, 1, true},
	} {
		for _, door := range []string{"Do", "Transport", "Resume"} {
			t.Run(name+" by "+door, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: r.replies}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.MaxResponseBytes = 1000
						if r.profile != nil {
							r.profile(cfg)
						}
					})
					status, err := through(t, c, door)
					rec := clienttest.Lookup(t, c, "k")
					switch {
					case r.held && (!errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || rec.State != persist.StateHeld || rec.HoldReason != persist.HoldUnclear):
						t.Errorf("%d, %v, record %v (%s); want it held as unclear", status, err, rec.State, rec.HoldReason)
					case r.held && !strings.Contains(err.Error(), "HTML"):
						t.Errorf("%v does not say why", err)
					case !r.held && (err != nil || status != 201 || rec.State != persist.StateConfirmed):
						t.Errorf("%d, %v, record %v; want the 201", status, err, rec.State)
					}
					if w.Count() != r.sends {
						t.Errorf("%d sends, want %d", w.Count(), r.sends)
					}
				})
			})
		}
	}
}

// through sends a POST under the key k by one of the client's doors, and returns the status of its answer.
func through(t *testing.T, c *oncehttp.Client, door string) (int, error) {
	t.Helper()
	req := clienttest.Post(t, `{"amount":1}`)
	switch door {
	case "Resume":
		if err := c.Enqueue(req, "k"); err != nil {
			t.Fatal(err)
		}
		got := clienttest.Resume(t, c)["k"]
		if got.Err != nil || got.Result.Answer == nil {
			return 0, got.Err
		}
		return got.Result.Answer.Status, nil
	case "Transport":
		req = req.WithContext(oncehttp.ContextWithKey(t.Context(), "k"))
		resp, err := c.Transport().RoundTrip(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, nil
	}
	resp, err := c.DoKey(req, "k")
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, nil
}

// TestAPageInTwoRuns: what was seen in an earlier run, or by an earlier process, counts: the second equal page holds it.
func TestAPageInTwoRuns(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: wiretest.Maintenance}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.Protected, clienttest.OneAttempt))
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || clienttest.Lookup(t, c, "k").State != persist.StatePending {
			t.Fatalf("after the first: %v", err)
		}
		again, _ := clienttest.New(t, w, clienttest.On(j, clienttest.Protected, clienttest.OneAttempt))
		time.Sleep(time.Hour)
		if got := clienttest.Resume(t, again); !errors.Is(got["k"].Err, oncehttp.ErrHeld) || w.Count() != 2 {
			t.Errorf("after the second: %v, %d sends", got["k"].Err, w.Count())
		}
		if rec := clienttest.Lookup(t, c, "k"); rec.HoldReason != persist.HoldUnclear {
			t.Errorf("held as %q", rec.HoldReason)
		}
	})
}

// TestWhoAskedForAPageGetsIt: Accept, or the profile, says that the API answers with HTML.
func TestWhoAskedForAPageGetsIt(t *testing.T) {
	t.Parallel()
	for accept, gets := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "application/*": false, "text/html": true, "TEXT/HTML; charset=utf-8": true, "text/*": true,
		"application/xhtml+xml": true, "application/json, text/html;q=0.1": true, "text/html;q=0, */*": false, "text/html;q=0.000": false, "text/plain": false,
		"text/html;level=1;q=0.5": true, "application/json;profile=text/html": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: wiretest.Maintenance}}}
			c, _ := clienttest.New(t, w, nil)
			req := clienttest.Post(t, "{}")
			if accept != "" {
				req.Header.Set("Accept", accept)
			}
			resp, err := c.DoKey(req, "k")
			if gets && (err != nil || clienttest.Read(t, resp) != wiretest.Maintenance) || !gets && !errors.Is(err, oncehttp.ErrHeld) {
				t.Errorf("Accept %q: %v", accept, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: wiretest.Maintenance}}}, func(cfg *oncehttp.Config) {
			cfg.Profile = profile.Draft07()
			cfg.Profile.Name, cfg.Profile.Own.HTML = "ours", profile.Yes
		})
		if resp, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || clienttest.Read(t, resp) != wiretest.Maintenance {
			t.Errorf("a profile whose answers are HTML: %v", err)
		}
	})
}

// TestJSONThatEndsEarlyIsNoSuccess, also where its length says that it is whole. Any other JSON counts, and so does what
// begins an answer that is too large to keep.
func TestJSONThatEndsEarlyIsNoSuccess(t *testing.T) {
	t.Parallel()
	long := `{"id":"` + strings.Repeat("x", 2000) + `"}`
	for body, whole := range map[string]bool{
		`{"id":`: false, ` [1,2`: false, `{"id":"p1"`: false, `{"id":}`: true, `{"id":"p1"} and more`: true, `[NaN]`: true, "{}\n{": true, `"x`: true, "": true,
		"[info] done": true, "{ok": true, long: true, long[:1500]: true,
	} {
		for name, named := range map[string]func(*oncehttp.Config){"default": nil, "named": clienttest.Protected} {
			synctest.Test(t, func(t *testing.T) {
				sends := 0
				c, _ := clienttest.New(t, answering(&sends, 201, body), func(cfg *oncehttp.Config) {
					cfg.MaxResponseBytes = 1000
					if named != nil {
						named(cfg)
					}
				})
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				want := 1
				if !whole && named != nil {
					want = 2
				}
				if whole && (err != nil || clienttest.Read(t, resp) != body) || !whole && !errors.Is(err, oncehttp.ErrHeld) || sends != want {
					t.Errorf("%s, %.20q: %v after %d sends, want %d", name, body, err, sends, want)
				}
			})
		}
	}
}

// answering is an API that gives one answer, whose length is said, and counts the sends.
func answering(sends *int, status int, body string) http.RoundTripper {
	return wiretest.Func(func(req *http.Request) (*http.Response, error) {
		*sends++
		wiretest.HandedOver(req)
		return &http.Response{StatusCode: status, Header: http.Header{}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}, nil
	})
}
