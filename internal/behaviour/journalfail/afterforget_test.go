package journalfail_test

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
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
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
		if err := c.Enqueue(clienttest.Post(t, body), "k"); err != nil {
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
			clienttest.Pass(t, w.there)
		}, oncehttp.ErrOutcomeUnknown},
		"another process that sends what this one has enqueued": {func(t *testing.T, w world) {
			enqueue(t, w.here, "{}")
			clienttest.Pass(t, w.there)
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
			if err := w.here.Enqueue(clienttest.Post(t, "{}"), "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("Enqueue: %v", err)
			}
		}, oncehttp.ErrOutcomeUnknown},
		"an Enqueue that failed": {func(t *testing.T, w world) {
			w.j.begin = func() error { w.j.begin = nil; return journaltest.ErrDisk }
			_ = w.here.Enqueue(clienttest.Post(t, "{}"), "k")
		}, oncehttp.ErrNoEffect},
		"a journal that does not answer": {func(t *testing.T, w world) { w.j.get = journaltest.Fails(journaltest.ErrDisk) }, oncehttp.ErrOutcomeUnknown},
		"another key":                    {func(t *testing.T, w world) { _ = w.here.Enqueue(clienttest.Post(t, "{}"), "other") }, oncehttp.ErrNoEffect},
	} {
		for n := range 4 {
			plain, answer := n%2 == 1, wiretest.Reply{Status: 429}
			if n > 1 {
				answer = wiretest.Reply{Refused: true}
			}
			t.Run(fmt.Sprint(name, " plain ", plain, " refused ", answer.Refused), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					shared := memory.New()
					var all sync.WaitGroup
					there, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(journaltest.NewLeasing(shared)))
					j := &forgetting{Journal: journaltest.NewLeasing(shared), Claimer: shared}
					here, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{answer}}, clienttest.On(j, clienttest.OneAttempt))
					j.forgot = func() { r.meanwhile(t, world{j, here, there, &all}) }
					req := clienttest.Post(t, "{}")
					req.Header.Set("Idempotency-Key", "k")
					do := here.Do
					if plain {
						do = here.Transport().RoundTrip
					}
					resp, err := do(req)
					all.Wait()
					if shown := plain && r.want == oncehttp.ErrNoEffect && answer.Status != 0; shown {
						if err != nil || resp.StatusCode != http.StatusTooManyRequests {
							t.Errorf("%v, want the 429", err)
						}
						return
					}
					if clienttest.ExactlyOne(t, err); !errors.Is(err, r.want) {
						t.Errorf("%v, want %v", err, r.want)
					}
					if sent := answer.Status != 0 || strings.Contains(name, "sends"); sent && errors.Is(err, oncehttp.ErrNotSent) {
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
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Faulty{Journal: memory.New()}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 429}}}, clienttest.On(j, clienttest.OneAttempt))
		j.OnGet = journaltest.Fails(journaltest.ErrDisk)
		if _, err := c.Do(clienttest.Post(t, "{}")); !errors.Is(err, oncehttp.ErrNoEffect) {
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
				journaltest.Each(t, func(t *testing.T, j persist.Journal) {
					var c *oncehttp.Client
					ended := false
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 403}, {Status: 201}}}
					c, _ = clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt, func(cfg *oncehttp.Config) {
						cfg.Observe = func(_ context.Context, e oncehttp.Event) {
							if e.Kind != oncehttp.EventFinished || ended {
								return
							}
							if ended = true; enqueued {
								if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
									t.Error(err)
								}
							}
							time.Sleep(time.Minute)
						}
					}))
					err := call(c, clienttest.Post(t, "{}"))
					switch {
					case !enqueued && door == "DoKey" && !errors.Is(err, oncehttp.ErrNoEffect), !enqueued && door == "Transport" && err != nil:
						t.Errorf("%v, want the refusal", err)
					case enqueued && !errors.Is(err, oncehttp.ErrOutcomeUnknown):
						t.Errorf("%v, want ErrOutcomeUnknown: it is enqueued", err)
					}
					if clienttest.Resume(t, c); enqueued != (w.Count() == 2) {
						t.Errorf("%d sends", w.Count())
					}
				})
			})
		}
	}
}
