// Package erase_test holds invariant 57: what an Erase leaves, when it is refused, and what a call under an erased key is told.
package erase_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

const (
	card = `{"amount":1,"card":"canary"}`
	long = 400 * 24 * time.Hour // past every window
)

// canaries checks a record for parts of the request and of its results.
func canaries(t *testing.T, rec persist.Record) {
	t.Helper()
	if text := fmt.Sprintf("%+v %s %+v", rec, rec.Body, rec.Answer); strings.Contains(text, "canary") || !rec.Erased {
		t.Errorf("left: %s", text)
	}
}

// post is a request with canaries.
func post(t *testing.T, body string) *http.Request {
	t.Helper()
	req := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/canary?q=canary", body)
	req.Header.Set("X-Note", "canary")
	req.Header.Set("Authorization", "Bearer canary")
	return req
}

func keeping(cfg *oncehttp.Config) {
	cfg.KeepFields, cfg.Retry.MaxAttempts = []string{"/card"}, 1
	cfg.Authorize = func(*http.Request) error { return nil }
	cfg.Origins = clienttest.Origins()
}

// ends are the ends of operations, with the effect and whether it is known.
func ends() map[string]struct {
	reply wiretest.Reply
	end   func(t *testing.T, c *oncehttp.Client)
	want  persist.Effect
} {
	none := func(*testing.T, *oncehttp.Client) {}
	lost := wiretest.Reply{Err: wiretest.ErrLost}
	settle := func(effect persist.Effect) func(t *testing.T, c *oncehttp.Client) {
		return func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: effect, Note: "canary"}, oncehttp.AsSeen(clienttest.Lookup(t, c, "k"))))
		}
	}
	return map[string]struct {
		reply wiretest.Reply
		end   func(t *testing.T, c *oncehttp.Client)
		want  persist.Effect
	}{
		"success":   {wiretest.Reply{Status: 201, Header: "X-Of: canary", Body: `{"of":"canary"}`}, none, persist.EffectHappened},
		"accepted":  {wiretest.Reply{Status: 202, Body: `{"of":"canary"}`}, none, persist.EffectHappened},
		"refusal":   {wiretest.Reply{Status: 402, Body: `{"of":"canary"}`}, none, persist.EffectRefused},
		"happened":  {lost, settle(persist.EffectHappened), persist.EffectHappened},
		"absent":    {lost, settle(persist.EffectAbsent), persist.EffectAbsent},
		"abandoned": {lost, func(t *testing.T, c *oncehttp.Client) { clienttest.Must(t, c.Abandon(t.Context(), "k")) }, persist.EffectUnknown},
	}
}

// TestErase: once its times are over, an ended operation is erased, in every journal of a process, sealed or not. A call with its key, of the same request or another one, by a client
// of any Config, sends nothing and is told the effect. Erase again is nil, and nothing begins it once more.
func TestErase(t *testing.T) {
	t.Parallel()
	others := map[string]func(*oncehttp.Config){
		"the same":       func(*oncehttp.Config) {},
		"secret headers": func(cfg *oncehttp.Config) { cfg.SecretHeaders = []string{"X-Note"} },
		"a profile": func(cfg *oncehttp.Config) {
			cfg.Profile = clienttest.OwnProfile()
			cfg.Profile.Name = "another"
		},
		"a pin": func(cfg *oncehttp.Config) { cfg.Region = "eu" },
	}
	for name, r := range ends() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}
				c, _ := clienttest.New(t, w, clienttest.On(j, keeping))
				_, _ = c.DoKey(post(t, card), "k")
				r.end(t, c)
				if err := c.Erase(t.Context(), "k"); err == nil {
					t.Fatal("erased at once")
				}
				time.Sleep(long)
				was := clienttest.Lookup(t, c, "k")
				for range 2 {
					clienttest.Must(t, c.Erase(t.Context(), "k"))
				}
				rec := clienttest.Lookup(t, c, "k")
				canaries(t, rec)
				if rec.State != was.State || rec.FinalEffect() != was.FinalEffect() || rec.FinalEffect() != r.want || !rec.Finished.Equal(was.Finished) || rec.FinalStatus() != was.FinalStatus() {
					t.Errorf("%v %s, want %v %s", rec.State, rec.FinalEffect(), was.State, r.want)
				}
				for how, config := range others {
					other, _ := clienttest.New(t, w, clienttest.On(j, keeping, config))
					for body, call := range map[string]func() error{
						"the same": func() error { _, err := other.DoKey(post(t, card), "k"); return err },
						"another":  func() error { _, err := other.DoKey(post(t, `{}`), "k"); return err },
						"enqueued": func() error { return other.Enqueue(post(t, card), "k") },
					} {
						err := call()
						e := new(oncehttp.Error)
						clienttest.ExactlyOne(t, err)
						if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrFinal) || e.Effect() != r.want || !strings.Contains(err.Error(), "erased") {
							t.Errorf("%s, %s: %v, effect %q", how, body, err, e.Effect())
						}
					}
				}
				_, redriven := c.Redrive(t.Context(), "k")
				if redriven == nil || w.Count() != 1 {
					t.Errorf("Redrive: %v; %d sends", redriven, w.Count())
				}
				canaries(t, clienttest.Lookup(t, c, "k"))
			})
		})
	}
}

// TestEraseRefused: nothing is erased while the operation may still be sent, told or asked for, or while its key is known or its answer kept. The error
// has the verdict of the state, and the reason.
func TestEraseRefused(t *testing.T) {
	t.Parallel()
	const window = time.Hour
	brief := func(cfg *oncehttp.Config) { cfg.Profile = clienttest.OwnWindow(window) }
	for name, r := range map[string]struct {
		reply  wiretest.Reply
		config func(*oncehttp.Config)
		begin  func(t *testing.T, c *oncehttp.Client)
		is     error
		says   string
	}{
		"pending": {wiretest.Reply{Err: wiretest.ErrLost}, brief, func(t *testing.T, c *oncehttp.Client) { _, _ = c.DoKey(post(t, card), "k") }, oncehttp.ErrOutcomeUnknown, "pending"},
		"held": {wiretest.Reply{Err: wiretest.ErrLost}, brief, func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.DoKey(post(t, card), "k")
			time.Sleep(2 * window)
			clienttest.Resume(t, c)
		}, oncehttp.ErrHeld, "held"},
		"owed": {wiretest.Reply{Status: 201}, func(cfg *oncehttp.Config) {
			brief(cfg)
			cfg.OnResult = func(context.Context, persist.Record) error { return nil }
		}, func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Enqueue(post(t, card), "k"))
			clienttest.Resume(t, c)
			time.Sleep(2 * window)
		}, oncehttp.ErrFinal, "OnResult"},
		"in its window": {wiretest.Reply{Status: 201}, brief, func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.DoKey(post(t, card), "k")
			time.Sleep(window / 2)
		}, oncehttp.ErrFinal, "until"},
		"behind its window, while its send may be on its way": {wiretest.Reply{Status: 201}, func(cfg *oncehttp.Config) {
			cfg.Profile = clienttest.OwnWindow(time.Minute)
		}, func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.DoKey(post(t, card), "k")
			time.Sleep(time.Minute + time.Second)
		}, oncehttp.ErrInFlight, "may go on until"},
		"in its answer's time": {wiretest.Reply{Status: 201}, func(cfg *oncehttp.Config) {
			brief(cfg)
			cfg.KeepAnswer = 3 * window
		}, func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.DoKey(post(t, card), "k")
			time.Sleep(2 * window)
		}, oncehttp.ErrFinal, "until"},
		"with a successor that is pending": {wiretest.Reply{Status: 402}, brief, func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Enqueue(post(t, card), "k"))
			clienttest.Resume(t, c)
			_, err := c.Redrive(t.Context(), "k")
			clienttest.Must(t, err)
			time.Sleep(2 * window)
		}, oncehttp.ErrFinal, "k:gen=2"},
		"with a generation that is pending": {wiretest.Reply{Status: 402}, brief, func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.DoKey(post(t, card), "k")
			clienttest.Must(t, c.Enqueue(post(t, card), oncehttp.Key("k").Generation(3)))
			time.Sleep(2 * window)
		}, oncehttp.ErrFinal, "k:gen=3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}, clienttest.On(j, keeping, r.config))
				r.begin(t, c)
				before := clienttest.Lookup(t, c, "k")
				err := c.Erase(t.Context(), "k")
				if clienttest.ExactlyOne(t, err); !errors.Is(err, r.is) || !strings.Contains(err.Error(), r.says) {
					t.Errorf("%v, want %v that says %q", err, r.is, r.says)
				}
				if after := clienttest.Lookup(t, c, "k"); after.Revision != before.Revision || after.Erased {
					t.Error("a refused Erase has changed the record")
				}
			})
		})
	}
}

// TestEraseSaysWhen: a refused Erase says the latest of the times that keep the operation and those of its intent, so that after it nothing does.
func TestEraseSaysWhen(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		window, pause time.Duration // pause is the time between the first operation and its successor
	}{"the window": {window: 24 * time.Hour}, "a send that may go on": {window: 35 * time.Second}, "the successor's": {window: 24 * time.Hour, pause: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402}, {Status: 201}}}, clienttest.On(j, keeping, func(cfg *oncehttp.Config) {
					cfg.Profile, cfg.KeepAnswer = clienttest.OwnWindow(r.window), -1
				}))
				clienttest.Must(t, c.Enqueue(post(t, card), "k"))
				clienttest.Resume(t, c)
				if r.pause > 0 {
					time.Sleep(r.pause)
					_, err := c.Redrive(t.Context(), "k")
					clienttest.Must(t, err)
					clienttest.Resume(t, c)
				}
				said := regexp.MustCompile(`until (\S+Z)`).FindStringSubmatch(fmt.Sprint(c.Erase(t.Context(), "k")))
				if said == nil {
					t.Fatal("it says no time")
				}
				until, err := time.Parse(time.RFC3339, said[1])
				clienttest.Must(t, err)
				time.Sleep(time.Until(until) + 2*time.Second)
				clienttest.Must(t, c.Erase(t.Context(), "k"))
			})
		})
	}
}

// TestEraseUnreported: the end of an operation under a generated key stays until a caller was told.
func TestEraseUnreported(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, keeping))
		_, err := c.Do(post(t, card))
		e := new(oncehttp.Error)
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		clienttest.Resume(t, c)
		time.Sleep(long)
		if err := c.Erase(t.Context(), e.Key); err == nil || !strings.Contains(err.Error(), "told of its end") {
			t.Errorf("%v", err)
		}
	})
}

// TestEraseFamily: an operation is erased with those that were begun in its place, or in whose place it was begun, and with its generations; others stay.
func TestEraseFamily(t *testing.T) {
	t.Parallel()
	for _, named := range []oncehttp.Key{"k", "k:gen=2", "k:gen=3", "other"} {
		t.Run(string(named), func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402}, {Status: 402}, {Err: wiretest.ErrLost}, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j, keeping))
				clienttest.Must(t, c.Enqueue(post(t, card), "k"))
				clienttest.Resume(t, c)
				_, err := c.Redrive(t.Context(), "k")
				clienttest.Must(t, err)
				clienttest.Resume(t, c)
				_, _ = c.DoKey(post(t, card), oncehttp.Key("k").Generation(3))
				clienttest.Absent(t, c, "k:gen=3")
				clienttest.Must(t, clienttest.RekeyAsSeen(c, t.Context(), "k:gen=3", "other", "canary"))
				clienttest.Resume(t, c)
				_, _ = c.DoKey(post(t, card), "stranger")
				time.Sleep(long)
				clienttest.Must(t, c.Erase(t.Context(), named))
				for _, key := range []oncehttp.Key{"k", "k:gen=2", "k:gen=3", "other"} {
					canaries(t, clienttest.Lookup(t, c, key))
				}
				if clienttest.Lookup(t, c, "stranger").Erased {
					t.Error("an operation of another intent was erased")
				}
				sends := w.Count()
				if _, err := c.DoKey(post(t, card), "k:gen=4"); !errors.Is(err, oncehttp.ErrKeyReused) || w.Count() != sends { // the one in its place is known
					t.Errorf("the next generation: %v, %d more sends", err, w.Count()-sends)
				}
			})
		})
	}
}

// TestEraseBeside: beside any other act on the operation an Erase leaves it erased, or as it was; never half of either, and nothing is sent twice.
func TestEraseBeside(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(ctx context.Context, c *oncehttp.Client, rec persist.Record, req *http.Request) error{
		"Do": func(_ context.Context, c *oncehttp.Client, _ persist.Record, req *http.Request) error {
			_, err := c.DoKey(req, "k")
			return err
		},
		"Settle": func(ctx context.Context, c *oncehttp.Client, _ persist.Record, _ *http.Request) error {
			return c.Settle(ctx, "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened})
		},
		"Unsettle": func(ctx context.Context, c *oncehttp.Client, _ persist.Record, _ *http.Request) error {
			_, err := c.Unsettle(ctx, "k", "a mistake")
			return err
		},
		"Redrive": func(ctx context.Context, c *oncehttp.Client, _ persist.Record, _ *http.Request) error {
			_, err := c.Redrive(ctx, "k")
			return err
		},
		"Sweep": func(ctx context.Context, c *oncehttp.Client, _ persist.Record, _ *http.Request) error {
			_, err := c.Sweep(ctx)
			return err
		},
		"Erase": func(ctx context.Context, c *oncehttp.Client, _ persist.Record, _ *http.Request) error {
			return c.Erase(ctx, "k")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journaltest.Two(t, func(t *testing.T, one, two persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
				c, _ := clienttest.New(t, w, clienttest.On(one, keeping, clienttest.WithProfile("x", func(*profile.Profile) {})))
				d, _ := clienttest.New(t, w, clienttest.On(two, keeping, clienttest.WithProfile("x", func(*profile.Profile) {})))
				_, _ = c.DoKey(post(t, card), "k")
				time.Sleep(time.Hour)
				clienttest.Absent(t, c, "k")
				time.Sleep(long)
				rec, req, ctx := clienttest.Lookup(t, c, "k"), post(t, card), t.Context()
				var both sync.WaitGroup
				var erased, acted error
				both.Go(func() { erased = c.Erase(ctx, "k") })
				both.Go(func() { acted = act(ctx, d, rec, req) })
				both.Wait()
				now := clienttest.Lookup(t, c, "k")
				switch {
				case erased == nil && (name == "Redrive" || name == "Unsettle") && acted == nil:
					t.Errorf("both succeeded: %v, erased %t", now.State, now.Erased)
				case erased == nil:
					canaries(t, now)
				case now.Erased && name != "Erase":
					t.Errorf("erased, and the error is %v", erased)
				}
				if w.Count() != 1 {
					t.Errorf("%d sends", w.Count())
				}
			})
		})
	}
}
