package oncehttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// maintenance is what something in front of an API answers while the API is away.
const maintenance = "<!DOCTYPE html>\n<html><head><title>Scheduled maintenance</title></head><body>Back soon.</body></html>"

// protected is the configuration for an API whose profile the user named, and which honours keys on POST.
func protected(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }

// TestAPageIsNoSuccess: an HTML document that the request did not ask for is no answer of the API. Where a named profile says
// that the key protects, it is asked for again, and held when it comes a second time; else it is held at once.
func TestAPageIsNoSuccess(t *testing.T) {
	t.Parallel()
	page, other := reply{status: 200, body: maintenance}, reply{status: 200, body: maintenance + "<!-- ray 2 -->"}
	ok, lost := reply{status: 201, body: `{"id":"p1"}`}, reply{err: errLost}
	for name, r := range map[string]struct {
		profile func(*oncehttp.Config)
		replies []reply
		sends   int
		held    bool // as unclear; else it is confirmed with the 201
	}{
		"default":                           {nil, []reply{page, ok}, 1, true},
		"default, after a lost send":        {nil, []reply{lost, page, ok}, 2, true},
		"default, 202":                      {nil, []reply{{status: 202, body: maintenance}, ok}, 1, true},
		"default, said to be JSON":          {nil, []reply{{status: 200, body: maintenance, header: "Content-Type: application/json"}, ok}, 1, true},
		"default, said to be replayed":      {nil, []reply{{status: 200, body: maintenance, header: "Idempotent-Replayed: true"}, ok}, 1, true},
		"no key":                            {keyless, []reply{page, ok}, 1, true},
		"named":                             {protected, []reply{page, ok}, 2, false},
		"named, twice":                      {protected, []reply{page, page, ok}, 2, true},
		"named, two that differ":            {protected, []reply{page, other, ok}, 3, false},
		"named, a lost one between":         {protected, []reply{page, lost, page, ok}, 3, true},
		"named, another status":             {protected, []reply{page, {status: 202, body: maintenance}, ok}, 3, false},
		"named, in doubt":                   {protected, []reply{lost, page, ok}, 3, false},
		"named, larger than what is kept":   {protected, []reply{{status: 200, body: maintenance + strings.Repeat(" ", 2000)}, ok}, 2, false},
		"default, larger than what is kept": {nil, []reply{{status: 200, body: maintenance + strings.Repeat(" ", 2000)}, ok}, 1, true},
	} {
		for _, door := range []string{"Do", "Transport", "Resume"} {
			t.Run(name+" by "+door, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					w := &wire{replies: r.replies}
					c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
						cfg.MaxResponseBytes = 1000
						if r.profile != nil {
							r.profile(cfg)
						}
					})
					status, err := through(t, c, door)
					rec := lookup(t, c, "k")
					switch {
					case r.held && (!errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || rec.State != persist.StateHeld || rec.HoldReason != persist.HoldUnclear):
						t.Errorf("%d, %v, record %v (%s); want it held as unclear", status, err, rec.State, rec.HoldReason)
					case r.held && !strings.Contains(err.Error(), "HTML"):
						t.Errorf("%v does not say why", err)
					case !r.held && (err != nil || status != 201 || rec.State != persist.StateConfirmed):
						t.Errorf("%d, %v, record %v; want the 201", status, err, rec.State)
					}
					if w.count() != r.sends {
						t.Errorf("%d sends, want %d", w.count(), r.sends)
					}
				})
			})
		}
	}
}

// through sends a POST under the key k by one of the client's doors, and returns the status of its answer.
func through(t *testing.T, c *oncehttp.Client, door string) (int, error) {
	t.Helper()
	req := post(t, `{"amount":1}`)
	switch door {
	case "Resume":
		if err := c.Enqueue(req, "k"); err != nil {
			t.Fatal(err)
		}
		got := resume(t, c)["k"]
		if got.err != nil || got.result.Answer == nil {
			return 0, got.err
		}
		return got.result.Answer.Status, nil
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
	eachJournal(t, func(t *testing.T, j persist.Journal) {
		w := &wire{replies: []reply{{status: 200, body: maintenance}}}
		c, _ := newClient(t, w, on(j, protected, oneAttempt))
		_, err := c.DoKey(post(t, "{}"), "k")
		if errors.Is(err, oncehttp.ErrHeld) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || lookup(t, c, "k").State != persist.StatePending {
			t.Fatalf("after the first: %v", err)
		}
		again, _ := newClient(t, w, on(j, protected, oneAttempt))
		time.Sleep(time.Hour)
		if got := resume(t, again); !errors.Is(got["k"].err, oncehttp.ErrHeld) || w.count() != 2 {
			t.Errorf("after the second: %v, %d sends", got["k"].err, w.count())
		}
		if rec := lookup(t, c, "k"); rec.HoldReason != persist.HoldUnclear {
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
		bubble(t, func(t *testing.T) {
			w := &wire{replies: []reply{{status: 200, body: maintenance}}}
			c, _ := newClient(t, w, nil)
			req := post(t, "{}")
			if accept != "" {
				req.Header.Set("Accept", accept)
			}
			resp, err := c.DoKey(req, "k")
			if gets && (err != nil || read(t, resp) != maintenance) || !gets && !errors.Is(err, oncehttp.ErrHeld) {
				t.Errorf("Accept %q: %v", accept, err)
			}
		})
	}
	bubble(t, func(t *testing.T) {
		c, _ := newClient(t, &wire{replies: []reply{{status: 200, body: maintenance}}}, func(cfg *oncehttp.Config) {
			cfg.Profile = profile.Draft07()
			cfg.Profile.Name, cfg.Profile.Own.HTML = "ours", profile.Yes
		})
		if resp, err := c.DoKey(post(t, "{}"), "k"); err != nil || read(t, resp) != maintenance {
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
		for name, named := range map[string]func(*oncehttp.Config){"default": nil, "named": protected} {
			bubble(t, func(t *testing.T) {
				sends := 0
				c, _ := newClient(t, answering(&sends, 201, body), func(cfg *oncehttp.Config) {
					cfg.MaxResponseBytes = 1000
					if named != nil {
						named(cfg)
					}
				})
				resp, err := c.DoKey(post(t, "{}"), "k")
				want := 1
				if !whole && named != nil {
					want = 2
				}
				if whole && (err != nil || read(t, resp) != body) || !whole && !errors.Is(err, oncehttp.ErrHeld) || sends != want {
					t.Errorf("%s, %.20q: %v after %d sends, want %d", name, body, err, sends, want)
				}
			})
		}
	}
}

// answering is an API that gives one answer, whose length is said, and counts the sends.
func answering(sends *int, status int, body string) http.RoundTripper {
	return roundTripFunc(func(req *http.Request) (*http.Response, error) {
		*sends++
		handedOver(req)
		return &http.Response{StatusCode: status, Header: http.Header{}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}, nil
	})
}
