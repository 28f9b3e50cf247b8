package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// forgetting is a journal that takes a while for a Begin once something was forgotten, and calls forgot then.
type forgetting struct {
	persist.Journal
	persist.Claimer
	forgot func()
	begin  func() error // before each Begin after that
	get    func() error
	over   bool
}

func (j *forgetting) Forget(ctx context.Context, rec persist.Record) error {
	err := j.Journal.Forget(ctx, rec)
	if err == nil && !j.over {
		j.over = true
		j.forgot()
	}
	return err
}

func (j *forgetting) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if j.over && j.begin != nil {
		if err := j.begin(); err != nil {
			return persist.Record{}, false, err
		}
	}
	return j.Journal.Begin(ctx, rec)
}

func (j *forgetting) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if j.over && j.get != nil {
		if err := j.get(); err != nil {
			return persist.Record{}, err
		}
	}
	return j.Journal.Get(ctx, id)
}

// TestTheKeyAfterAForget: a Do that has forgotten its record says "no effect" only if the key is free then: others may have begun
// it anew.
func TestTheKeyAfterAForget(t *testing.T) {
	t.Parallel()
	type world struct {
		j           *forgetting
		here, there *oncehttp.Client // of this process, and of another
		all         *sync.WaitGroup
	}
	enqueue := func(t *testing.T, c *oncehttp.Client, body string) {
		if err := c.Enqueue(post(t, body), "k"); err != nil {
			t.Errorf("Enqueue: %v", err)
		}
	}
	for name, r := range map[string]struct {
		meanwhile func(*testing.T, world)
		want      error
	}{
		"nobody":              {func(*testing.T, world) {}, oncehttp.ErrNoEffect},
		"an Enqueue":          {func(t *testing.T, w world) { enqueue(t, w.here, "{}") }, oncehttp.ErrOutcomeUnknown},
		"an Enqueue of other": {func(t *testing.T, w world) { enqueue(t, w.here, `{"n":1}`) }, oncehttp.ErrOutcomeUnknown},
		"another process":     {func(t *testing.T, w world) { enqueue(t, w.there, "{}") }, oncehttp.ErrOutcomeUnknown},
		"another process that sends it": {func(t *testing.T, w world) {
			enqueue(t, w.there, "{}")
			pass(t, w.there)
		}, oncehttp.ErrOutcomeUnknown},
		"another process that sends what this one has enqueued": {func(t *testing.T, w world) {
			enqueue(t, w.here, "{}")
			pass(t, w.there)
		}, oncehttp.ErrOutcomeUnknown},
		"an Enqueue under way": {func(t *testing.T, w world) {
			w.j.begin = func() error { time.Sleep(time.Second); return nil }
			w.all.Go(func() { enqueue(t, w.here, "{}") })
			synctest.Wait()
		}, oncehttp.ErrOutcomeUnknown},
		"an Enqueue during the look": {func(t *testing.T, w world) {
			w.j.begin = func() error { time.Sleep(time.Second); return nil }
			w.j.get = func() error {
				w.j.get = nil
				w.all.Go(func() { enqueue(t, w.here, "{}") })
				synctest.Wait()
				return persist.ErrNotFound // the server has looked before
			}
		}, oncehttp.ErrOutcomeUnknown},
		"an Enqueue without an answer": {func(t *testing.T, w world) {
			w.j.begin = func() error { w.j.begin = nil; return persist.ErrUncertain }
			if err := w.here.Enqueue(post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("Enqueue: %v", err)
			}
		}, oncehttp.ErrOutcomeUnknown},
		"an Enqueue that failed": {func(t *testing.T, w world) {
			w.j.begin = func() error { w.j.begin = nil; return errDisk }
			_ = w.here.Enqueue(post(t, "{}"), "k")
		}, oncehttp.ErrNoEffect},
		"a journal that does not answer": {func(t *testing.T, w world) { w.j.get = fails(errDisk) }, oncehttp.ErrOutcomeUnknown},
		"another key":                    {func(t *testing.T, w world) { _ = w.here.Enqueue(post(t, "{}"), "other") }, oncehttp.ErrNoEffect},
	} {
		for n := range 4 {
			plain, answer := n%2 == 1, reply{status: 429}
			if n > 1 {
				answer = reply{refused: true}
			}
			t.Run(fmt.Sprint(name, " plain ", plain, " refused ", answer.refused), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					shared := memory.New()
					var all sync.WaitGroup
					there, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, on(newLeasing(shared)))
					j := &forgetting{Journal: newLeasing(shared), Claimer: shared}
					here, _ := newClient(t, &wire{replies: []reply{answer}}, on(j, oneAttempt))
					j.forgot = func() { r.meanwhile(t, world{j, here, there, &all}) }
					req := post(t, "{}")
					req.Header.Set("Idempotency-Key", "k")
					do := here.Do
					if plain {
						do = here.Transport().RoundTrip
					}
					resp, err := do(req)
					all.Wait()
					if shown := plain && r.want == oncehttp.ErrNoEffect && answer.status != 0; shown {
						if err != nil || resp.StatusCode != http.StatusTooManyRequests {
							t.Errorf("%v, want the 429", err)
						}
						return
					}
					if exactlyOne(t, err); !errors.Is(err, r.want) {
						t.Errorf("%v, want %v", err, r.want)
					}
					if sent := answer.status != 0 || strings.Contains(name, "sends"); sent && errors.Is(err, oncehttp.ErrNotSent) {
						t.Errorf("%v, although it was sent", err)
					}
				})
			})
		}
	}
}

// TestAKeyOfItsOwnAfterAForget: nobody else can have begun a key that was made at random for the call.
func TestAKeyOfItsOwnAfterAForget(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := &faulty{Journal: memory.New()}
		c, _ := newClient(t, &wire{replies: []reply{{status: 429}}}, on(j, oneAttempt))
		j.get = fails(errDisk)
		if _, err := c.Do(post(t, "{}")); !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Errorf("%v, want no effect", err)
		}
	})
}

// TestTheKeyWhileItsEndIsTold: the same holds for what begins the operation anew while Config.Observe is told of the end, maybe for long.
func TestTheKeyWhileItsEndIsTold(t *testing.T) {
	t.Parallel()
	for door, call := range map[string]func(c *oncehttp.Client, req *http.Request) error{
		"DoKey": func(c *oncehttp.Client, req *http.Request) error { _, err := c.DoKey(req, "k"); return err },
		"Transport": func(c *oncehttp.Client, req *http.Request) error {
			req.Header.Set("Idempotency-Key", "k")
			_, err := c.Transport().RoundTrip(req)
			return err
		},
	} {
		for _, enqueued := range []bool{true, false} {
			t.Run(fmt.Sprint(door, enqueued), func(t *testing.T) {
				t.Parallel()
				eachJournal(t, func(t *testing.T, j persist.Journal) {
					var c *oncehttp.Client
					ended := false
					w := &wire{replies: []reply{{status: 403}, {status: 201}}}
					c, _ = newClient(t, w, on(j, oneAttempt, func(cfg *oncehttp.Config) {
						cfg.Observe = func(_ context.Context, e oncehttp.Event) {
							if e.Kind != oncehttp.EventFinished || ended {
								return
							}
							if ended = true; enqueued {
								if err := c.Enqueue(post(t, "{}"), "k"); err != nil {
									t.Error(err)
								}
							}
							time.Sleep(time.Minute)
						}
					}))
					err := call(c, post(t, "{}"))
					switch {
					case !enqueued && door == "DoKey" && !errors.Is(err, oncehttp.ErrNoEffect), !enqueued && door == "Transport" && err != nil:
						t.Errorf("%v, want the refusal", err)
					case enqueued && !errors.Is(err, oncehttp.ErrOutcomeUnknown):
						t.Errorf("%v, want ErrOutcomeUnknown: it is enqueued", err)
					}
					if resume(t, c); enqueued != (w.count() == 2) {
						t.Errorf("%d sends", w.count())
					}
				})
			})
		}
	}
}
