package noeffect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// unfit are requests that no call can begin, each in one way.
var unfit = map[string]struct {
	change  func(req *http.Request) *http.Request
	is      error
	keyless bool // also where the request has no key
}{
	"body breaks off": {func(req *http.Request) *http.Request {
		req.Body = io.NopCloser(iotest.ErrReader(wiretest.ErrLost))
		return req
	}, wiretest.ErrLost, true},
	"body too large": {func(req *http.Request) *http.Request {
		req.ContentLength = 1 << 40
		return req
	}, oncehttp.ErrBodyTooLarge, true},
	"header name": {func(req *http.Request) *http.Request {
		req.Header["a b"] = []string{"c"}
		return req
	}, oncehttp.ErrConfig, true},
	"trailers": {func(req *http.Request) *http.Request {
		req.Trailer = http.Header{"X": nil}
		return req
	}, oncehttp.ErrConfig, true},
	"CONNECT": {func(req *http.Request) *http.Request {
		req.Method = http.MethodConnect
		return req
	}, oncehttp.ErrConfig, false},
	"scheme": {func(req *http.Request) *http.Request {
		req.URL.Scheme = "ftp"
		return req
	}, oncehttp.ErrConfig, false},
	"no URL": {func(req *http.Request) *http.Request {
		req.URL = nil
		return req
	}, oncehttp.ErrConfig, false},
	"strange key header": {func(req *http.Request) *http.Request {
		req.Header.Set("X-Idempotency-Key", "strange")
		return req
	}, oncehttp.ErrKeyInvalid, false},
	"context has ended": {func(req *http.Request) *http.Request {
		ctx, cancel := context.WithCancel(req.Context())
		cancel()
		return req.WithContext(ctx)
	}, context.Canceled, true},
}

// TestStartErrorsLookAtWhatStands: an error of a call that never began says "no
// effect" only where nothing stands under any key that the call named.
func TestStartErrorsLookAtWhatStands(t *testing.T) {
	t.Parallel()
	stands := map[string]func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire){
		"nothing": nil,
		"unresolved": func(t *testing.T, c *oncehttp.Client, _ *wiretest.Wire) {
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		},
		"enqueued": func(t *testing.T, c *oncehttp.Client, _ *wiretest.Wire) { _ = c.Enqueue(clienttest.Post(t, "{}"), "k") },
		"confirmed": func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire) {
			w.Replies = []wiretest.Reply{{Status: 201}}
			_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
		},
	}
	calls := map[string]func(c *oncehttp.Client, req *http.Request) error{
		"DoKey":   func(c *oncehttp.Client, req *http.Request) error { _, err := c.DoKey(req, "k"); return err },
		"Enqueue": func(c *oncehttp.Client, req *http.Request) error { return c.Enqueue(req, "k") },
		"Do with a header": func(c *oncehttp.Client, req *http.Request) error {
			req.Header.Set("Idempotency-Key", "k")
			_, err := c.Do(req)
			return err
		},
		"Do with a context": func(c *oncehttp.Client, req *http.Request) error {
			_, err := c.Do(req.WithContext(oncehttp.ContextWithKey(req.Context(), "k")))
			return err
		},
		"RoundTrip": func(c *oncehttp.Client, req *http.Request) error {
			req.Header.Set("Idempotency-Key", "k")
			_, err := c.Transport().RoundTrip(req)
			return err
		},
	}
	for what, stand := range stands {
		for how, b := range unfit {
			for name, f := range calls {
				t.Run(what+" "+how+" "+name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
						c, _ := clienttest.New(t, w, clienttest.OneAttempt)
						if stand != nil {
							stand(t, c, w)
						}
						sends := w.Count()
						err := f(c, b.change(clienttest.Post(t, "{}")))
						if err == nil && name == "Enqueue" && stand != nil && how == "context has ended" {
							return // the same again is nil
						}
						is := oncehttp.ErrOutcomeUnknown
						switch what {
						case "nothing":
							is = oncehttp.ErrNoEffect
						case "confirmed":
							is = oncehttp.ErrFinal
						}
						var e *oncehttp.Error
						if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, is) || !errors.Is(err, b.is) || e.Key != "k" || w.Count() != sends {
							t.Errorf("%v, want %v, %v and the key", err, is, b.is)
						}
					})
				})
			}
		}
	}
}

// TestStartErrorsLookAtEveryKey: of two keys in one request the second may stand.
func TestStartErrorsLookAtEveryKey(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "stands")
		for _, given := range []oncehttp.Key{"stands", "other"} {
			for _, header := range []string{"stands", "other", "third"} {
				req := clienttest.Post(t, "{}")
				req.Header.Set("Idempotency-Key", header)
				if oncehttp.Key(header) == given {
					continue
				}
				_, err := c.DoKey(req, given)
				var e *oncehttp.Error
				is := oncehttp.ErrNoEffect
				if given == "stands" || header == "stands" {
					is = oncehttp.ErrOutcomeUnknown
				}
				if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, is) || !errors.Is(err, oncehttp.ErrKeyInvalid) || is == oncehttp.ErrOutcomeUnknown && e.Key != "stands" {
					t.Errorf("%s and %s: %v, want %v", given, header, err, is)
				}
			}
		}
		strange := clienttest.Post(t, "{}")
		strange.Header.Set("X-Idempotency-Key", "stands")
		if _, err := c.Do(strange); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrKeyInvalid) {
			t.Errorf("in a header that the profile does not use: %v", err)
		}
	})
}

// TestStartErrorsWithoutAKey: there the same account, origin, method and target
// decide, as the body is not known.
func TestStartErrorsWithoutAKey(t *testing.T) {
	t.Parallel()
	stands := map[string]func(t *testing.T, c *oncehttp.Client){
		"nothing": nil,
		"unresolved": func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.Do(clienttest.Post(t, "{}"))
		},
		"unreported": func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.Do(clienttest.Post(t, "{}"))
			time.Sleep(time.Minute)
			clienttest.Resume(t, c)
		},
		"of another target": func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.Do(clienttest.Request(t, "POST", "https://api.example.com/refunds", "{}"))
		},
		"of another origin": func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.Do(clienttest.Request(t, "POST", "https://api2.example.com/payments?via=test", "{}"))
		},
		"of another method": func(t *testing.T, c *oncehttp.Client) {
			_, _ = c.Do(clienttest.Request(t, "PATCH", "https://api.example.com/payments?via=test", "{}"))
		},
		"of another account": func(t *testing.T, c *oncehttp.Client) {
			req := clienttest.Post(t, "{}")
			req.Header.Set("Stripe-Account", "acct_1")
			_, _ = c.Do(req)
		},
		"under a chosen key": func(t *testing.T, c *oncehttp.Client) { _, _ = c.DoKey(clienttest.Post(t, "{}"), "k") },
	}
	for what, stand := range stands {
		for how, b := range unfit {
			if !b.keyless {
				continue
			}
			t.Run(what+" "+how, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
					c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }))
					if stand != nil {
						stand(t, c)
					}
					sends := w.Count()
					_, err := c.Do(b.change(clienttest.Post(t, "{}")))
					is := oncehttp.ErrNoEffect
					if strings.HasPrefix(what, "un") && what != "under a chosen key" {
						is = oncehttp.ErrOutcomeUnknown
					}
					var e *oncehttp.Error
					if clienttest.ExactlyOne(t, err); !errors.Is(err, is) || w.Count() != sends || is == oncehttp.ErrOutcomeUnknown && (!errors.As(err, &e) || e.Key == "") {
						t.Errorf("%v after %d sends, want %v", err, w.Count()-sends, is)
					}
					if is == oncehttp.ErrNoEffect && !errors.Is(err, b.is) {
						t.Errorf("%v, want %v", err, b.is)
					}
				})
			})
		}
	}
}

// TestNewKeyFailsOverWhatStands: a key that could not be made names nothing, and a key
// that it makes of the request is looked up like any other.
func TestNewKeyFailsOverWhatStands(t *testing.T) {
	t.Parallel()
	for _, stands := range []bool{false, true} {
		t.Run(fmt.Sprint(stands), func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				key, fails := oncehttp.Key("made"), error(nil)
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
					cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return key, fails }
				}))
				is := oncehttp.ErrNoEffect
				if stands {
					_, _ = c.Do(clienttest.Post(t, "{}"))
					is = oncehttp.ErrOutcomeUnknown
				}
				large := clienttest.Post(t, "{}")
				large.ContentLength = 1 << 40
				if _, err := c.Do(large); !errors.Is(err, is) || !errors.Is(err, oncehttp.ErrBodyTooLarge) {
					t.Errorf("NewKey gives the key again: %v, want %v", err, is)
				}
				fails = wiretest.ErrLost
				_, err := c.Do(clienttest.Post(t, `{"other":1}`))
				if clienttest.ExactlyOne(t, err); !errors.Is(err, is) || !errors.Is(err, wiretest.ErrLost) {
					t.Errorf("NewKey fails: %v, want %v", err, is)
				}
			})
		})
	}
}

// TestStartErrorsWithoutALook: where the journal cannot be asked, nothing is said.
func TestStartErrorsWithoutALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Faulty{Journal: memory.New(), OnGet: journaltest.Fails(journaltest.ErrDisk), OnList: journaltest.Fails(journaltest.ErrDisk)}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j, clienttest.OneAttempt))
		large := func() *http.Request {
			req := clienttest.Post(t, "{}")
			req.ContentLength = 1 << 40
			return req
		}
		_, keyless := c.Do(large())
		_, keyed := c.DoKey(large(), "k")
		_, clean := c.Do(clienttest.Post(t, "{}"))
		for name, err := range map[string]error{"keyless": keyless, "keyed": keyed, "a request without fault": clean, "Enqueue": c.Enqueue(large(), "k")} {
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("%s: %v, want ErrOutcomeUnknown", name, err)
			}
		}
	})
}

// TestStartErrorsBesideOtherCalls: calls without keys that are under way, and were
// never in doubt, say nothing of another.
func TestStartErrorsBesideOtherCalls(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j))
		done := make(chan error)
		go func() { _, err := c.Do(clienttest.Post(t, "{}")); done <- err }()
		time.Sleep(time.Millisecond)
		large := clienttest.Post(t, "{}")
		large.ContentLength = 1 << 40
		if _, err := c.Do(large); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("%v, want ErrNoEffect", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestNoLookNamesNoFreshKey: an error names no key that was made for this very call
// where the journal could not be asked: whoever goes on with it would begin a second
// operation beside the one that may exist.
func TestNoLookNamesNoFreshKey(t *testing.T) {
	t.Parallel()
	made := 0
	for keys, newKey := range map[string]func(*http.Request) (oncehttp.Key, error){
		"random": nil,
		"counted": func(*http.Request) (oncehttp.Key, error) {
			made++
			return oncehttp.Key(fmt.Sprint("made-", made)), nil
		},
	} {
		t.Run(keys, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journaltest.Faulty{Journal: memory.New()}
				withKeys := func(cfg *oncehttp.Config) { cfg.NewKey = newKey }
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt, withKeys))
				_, _ = c.Do(clienttest.Post(t, "{}"))
				j.OnList = journaltest.Fails(journaltest.ErrDisk)
				large := clienttest.Post(t, "{}")
				large.ContentLength = 1 << 40
				for name, req := range map[string]*http.Request{"the same": clienttest.Post(t, "{}"), "one that cannot be read": large} {
					_, err := c.Do(req)
					var e *oncehttp.Error
					if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key != "" {
						t.Errorf("%s: %v, want no key", name, err)
					}
				}
			})
		})
	}
}

// TestNoKeyBeforeTheLook: the same, whichever call of the journal fails, with an account, too: what stands under none is looked for before
// what is unresolved. Whoever goes on as the error says makes one effect.
func TestNoKeyBeforeTheLook(t *testing.T) {
	t.Parallel()
	uncertain := fmt.Errorf("%w: no answer", persist.ErrUncertain)
	for account, within := range map[string]func(*oncehttp.Config){"no account": func(*oncehttp.Config) {}, "an account": func(cfg *oncehttp.Config) { cfg.Account = "shop" }} {
		for inside := range 2 {
			for keys, withKeys := range map[string]func(*oncehttp.Config){"random": func(*oncehttp.Config) {}, "counted": nil, "of the business": clienttest.FromOrder} {
				for calls, failing := range map[string]func(j *journaltest.Faulty, err error){
					"get":  func(j *journaltest.Faulty, err error) { j.OnGet = journaltest.Fails(err) },
					"list": func(j *journaltest.Faulty, err error) { j.OnList = journaltest.Fails(err) },
					"all of them": func(j *journaltest.Faulty, err error) {
						j.OnGet, j.OnList, j.OnBegin = journaltest.Fails(err), journaltest.Fails(err), journaltest.Fails(err)
					},
					"all but list": func(j *journaltest.Faulty, err error) {
						j.OnGet, j.OnBegin = journaltest.Fails(err), journaltest.Fails(err)
					},
				} {
					for _, err := range []error{journaltest.ErrDisk, uncertain} {
						for _, ended := range []bool{false, true} {
							t.Run(fmt.Sprint(account, inside, keys, calls, err, ended), func(t *testing.T) {
								t.Parallel()
								synctest.Test(t, func(t *testing.T) {
									j := &journaltest.Faulty{Journal: memory.New()}
									w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
									request := func() *http.Request {
										req := clienttest.Post(t, clienttest.OrderSeven)
										if inside == 1 {
											req = req.WithContext(oncehttp.ContextWithAccount(req.Context(), "customer"))
										}
										return req
									}
									made := countedKeys()
									withKeys := withKeys
									if withKeys == nil {
										withKeys = made
									}
									first, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, within, made))
									_, _ = first.Do(request())
									failing(j, err)
									c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, within, withKeys))
									req, stop := context.WithCancel(request().Context())
									if ended {
										stop()
									}
									defer stop()
									_, failed := c.Do(request().WithContext(req))
									var e *oncehttp.Error
									if !errors.As(failed, &e) || !errors.Is(failed, oncehttp.ErrOutcomeUnknown) {
										t.Fatalf("%v, want ErrOutcomeUnknown", failed)
									}
									j.OnGet, j.OnList, j.OnBegin = nil, nil, nil
									if e.Key != "" {
										_, _ = c.DoKey(request(), e.Key)
									} else {
										_, _ = c.Do(request())
									}
									clienttest.Resume(t, c)
									if len(w.Keys()) != 1 {
										t.Errorf("after %v: sent under %v", failed, w.Keys())
									}
								})
							})
						}
					}
				}
			}
		}
	}
}

// countedKeys lets NewKey make a key of its own for each call.
func countedKeys() func(*oncehttp.Config) {
	var made atomic.Int64
	return func(cfg *oncehttp.Config) {
		cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return oncehttp.Key(fmt.Sprint("made-", made.Add(1))), nil }
	}
}

// TestNotSentIsTrue: "not sent" is not said of an operation that was sent before.
func TestNotSentIsTrue(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
		_, _ = c.DoKey(clienttest.Post(t, "{}"), "sent")
		if err := c.Enqueue(clienttest.Post(t, "{}"), "waiting"); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for key, notSent := range map[oncehttp.Key]bool{"sent": false, "waiting": true, "new": true} {
			_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ended), key)
			if clienttest.ExactlyOne(t, err); errors.Is(err, oncehttp.ErrNotSent) != notSent || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, ErrNotSent: want %v", key, err, notSent)
			}
		}
	})
}

// TestNotSentOfARefusedOperation: "not sent" is not said of an operation that the server refused in an earlier run, in whatever
// way this one ends.
func TestNotSentOfARefusedOperation(t *testing.T) {
	t.Parallel()
	refusals := map[string]wiretest.Reply{"401": {Status: 401}, "403": {Status: 403}, "429": {Status: 429}, "421": {Status: 421}}
	ends := map[string]func(t *testing.T, c *oncehttp.Client) error{
		"Do": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
			return err
		},
		"Do with an ended context": func(t *testing.T, c *oncehttp.Client) error {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ended), "k")
			return err
		},
		"Transport": func(t *testing.T, c *oncehttp.Client) error {
			req := clienttest.Post(t, "{}")
			req.Header.Set("Idempotency-Key", "k")
			_, err := c.Transport().RoundTrip(req)
			return err
		},
		"Resume": func(t *testing.T, c *oncehttp.Client) error {
			time.Sleep(2 * time.Hour)
			return clienttest.Resume(t, c)["k"].Err
		},
	}
	for refusal, first := range refusals {
		for how, end := range ends {
			t.Run(refusal+" "+how, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					var heard clienttest.Events
					c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{first, {Refused: true}}}, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) { cfg.Observe = heard.Observe }))
					clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
					if err := clienttest.Resume(t, c)["k"].Err; !errors.Is(err, oncehttp.ErrRefused) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Fatalf("the first run: %v", err)
					}
					err := end(t, c)
					var e *oncehttp.Error
					if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || errors.Is(err, oncehttp.ErrNotSent) || e.Outcome == oncehttp.OutcomeNotSent || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("%v (%v) is said to be not sent", err, e.Outcome)
					}
					if how != "Do with an ended context" && !errors.Is(err, oncehttp.ErrRefused) {
						t.Errorf("%v, want ErrRefused", err)
					}
					for _, event := range heard.Of(oncehttp.EventFinished) {
						if event.Outcome == oncehttp.OutcomeNotSent {
							t.Errorf("%+v", event)
						}
					}
				})
			})
		}
	}
}

// TestNotSentOfASafeRequest: "not sent" is said of a GET only if no attempt of it left.
func TestNotSentOfASafeRequest(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		replies []wiretest.Reply
		notSent bool
	}{
		"never":                {[]wiretest.Reply{{Refused: true}}, true},
		"lost, then never":     {[]wiretest.Reply{{Err: wiretest.ErrLost}, {Refused: true}}, false},
		"never, then lost":     {[]wiretest.Reply{{Refused: true}, {Err: wiretest.ErrLost}}, false},
		"503, then never":      {[]wiretest.Reply{{Status: 503}, {Refused: true}}, false},
		"lost between two":     {[]wiretest.Reply{{Refused: true}, {Err: wiretest.ErrLost}, {Refused: true}}, false},
		"without a word of it": {[]wiretest.Reply{{Err: wiretest.ErrLost, Silent: true}, {Refused: true}}, false},
	}
	for name, r := range rows {
		for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c, _ := clienttest.New(t, &wiretest.Wire{Replies: r.replies}, nil)
					req := clienttest.Request(t, method, "https://api.example.com/payments", "")
					req.Body = nil
					_, err := c.Do(req)
					var e *oncehttp.Error
					if clienttest.ExactlyOne(t, err); !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrNoEffect) {
						t.Fatalf("%v, want ErrNoEffect", err)
					}
					if errors.Is(err, oncehttp.ErrNotSent) != r.notSent || (e.Outcome == oncehttp.OutcomeNotSent) != r.notSent {
						t.Errorf("%v (%v), ErrNotSent: want %v", err, e.Outcome, r.notSent)
					}
				})
			})
		}
	}
}

// TestNoEffectOfSeveralKeys: a call that names several keys says "no effect" only if none of them was begun while it looked at the
// others.
func TestNoEffectOfSeveralKeys(t *testing.T) {
	t.Parallel()
	for begun, want := range map[oncehttp.Key]error{"first": oncehttp.ErrOutcomeUnknown, "second": oncehttp.ErrOutcomeUnknown, "third": oncehttp.ErrNoEffect} {
		t.Run(string(begun), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j, looks := &journaltest.Faulty{Journal: memory.New()}, 0
				c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(j, clienttest.OneAttempt))
				j.OnGet = func() error {
					if looks++; looks == 2 { // at the second key
						if err := c.Enqueue(clienttest.Post(t, "{}"), begun); err != nil {
							t.Error(err)
						}
					}
					return nil
				}
				req := clienttest.Post(t, "{}")
				req.Header["Idempotency-Key"] = []string{"first", "second"}
				if _, err := c.Do(req); !errors.Is(err, want) || !errors.Is(err, oncehttp.ErrKeyInvalid) {
					t.Errorf("%v, want %v", err, want)
				}
			})
		})
	}
}
