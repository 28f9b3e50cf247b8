package close_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
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

// eachCrash runs f for each way in which user code ends, in each place, on each journal. A bubble ends only once no goroutine is
// left, so that nothing leaks and nothing hangs.
func eachCrash(t *testing.T, places []string, f func(t *testing.T, j persist.Journal, place string, do func())) {
	for _, place := range places {
		for how, do := range crashes {
			t.Run(place+" "+how, func(t *testing.T) {
				t.Parallel()
				journaltest.Each(t, func(t *testing.T, j persist.Journal) { f(t, j, place, do) })
			})
		}
	}
}

// crashesOf are all places but these.
func crashesOf(but ...string) []string {
	all := slices.Concat(slices.Sorted(maps.Keys(crashPlaces)), crashPlacesOfJournal)
	return slices.DeleteFunc(all, func(place string) bool { return slices.Contains(but, place) })
}

// howEnded is the end of a function in a goroutine of its own.
type howEnded struct {
	panicked any
	returned bool
}

// endOf calls f in a goroutine of its own.
func endOf(f func()) (e howEnded) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { e.panicked = recover() }()
		f()
		e.returned = true
	})
	wg.Wait()
	return e
}

// TestCrashInDo: a panic of user code goes on in the caller that began the call; a Goexit ends its goroutine, or is an error. Who
// joined gets an error, no key stays in flight, and the next call goes on with the operation.
func TestCrashInDo(t *testing.T) {
	t.Parallel()
	places := crashesOf("ProfileOf", "Answer.Close", "Journal.Get", "Journal.Secret", "Journal.Forget", "Journal.List", "Journal.Flush", "Journal.Sweep", "Journal.Update")
	eachCrash(t, places, func(t *testing.T, j persist.Journal, place string, do func()) {
		for _, leaves := range []bool{false, true} {
			ctx, key := context.Background(), oncehttp.Key(fmt.Sprint("k", leaves))
			if leaves {
				ctx = t.Context()
			}
			crashInDo(t, ctx, j, place, key, do)
		}
	})
}

func crashInDo(t *testing.T, ctx context.Context, j persist.Journal, place string, key oncehttp.Key, do func()) {
	c, crash, server, _ := crashClient(t, j, place, func() { time.Sleep(time.Second / 2); do() })
	defer c.Close()
	call := func(ctx context.Context) (err error) {
		if place == "NewKey" {
			_, err = c.Do(crashRequest(t, ctx, crash))
			return err
		}
		req := crashRequest(t, ctx, crash)
		req.Header.Set("X-Api-Key", "abc") // of which KeepHeader is asked
		_, err = c.DoKey(req, key)
		return err
	}
	var joined sync.WaitGroup
	if place != "NewKey" { // which is no join: the second caller has not made its key yet
		joined.Go(func() {
			time.Sleep(time.Second / 4)
			if err := call(ctx); err != nil {
				clienttest.ExactlyOne(t, err)
			}
		})
	}
	var err error
	end := endOf(func() { err = call(ctx) })
	joined.Wait()
	if !crash.hasFired() {
		t.Fatalf("%s was not reached", place)
	}
	if end.returned && err != nil {
		if clienttest.ExactlyOne(t, err); strings.Contains(err.Error(), clienttest.Canary) {
			t.Errorf("the error holds what it panicked with: %v", err)
		}
	}
	if err := call(ctx); err != nil {
		t.Errorf("the same key again: %v", err)
	}
	if n := server.sends(key); place != "NewKey" && (n < 1 || n > 2) {
		t.Errorf("%d sends", n)
	}
}

// TestPanicReachesItsCaller, with its value.
func TestPanicReachesItsCaller(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"Authorize", "Observe begun", "Observe finished", "Transport", "Limiter.Wait", "Answer.Read", "Body.Read", "Journal.Begin", "Journal.Finish"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				c, crash, _, _ := crashClient(t, j, place, crashes["panic"])
				end := endOf(func() { _, _ = c.DoKey(crashRequest(t, t.Context(), crash), "k") })
				if end.panicked != crashText || end.returned {
					t.Errorf("%+v", end)
				}
			})
		})
	}
}

// crashesOfPasses are the places that a pass reaches.
func crashesOfPasses() []string {
	return crashesOf("Observe begun", "NewKey", "Body.Read", "Body.Close", "GetBody", "ProfileOf", "KeepHeader", "Answer.Close",
		"Journal.Begin", "Journal.Forget", "Journal.Flush", "Journal.Sweep", "Journal.Secret")
}

// crashKeys are operations that are enqueued.
var crashKeys = []oncehttp.Key{"k1", "k2", "k3"}

// enqueueCrash enqueues operations for a client whose user code crashes later.
func enqueueCrash(t *testing.T, j persist.Journal, place string, do func()) (*oncehttp.Client, *crasher, *ledgerServer, *clienttest.Log) {
	armed := false
	c, crash, server, log := crashClient(t, j, place, func() {
		if armed {
			do()
		}
	})
	for _, key := range crashKeys {
		if err := c.Enqueue(clienttest.Post(t, `{"card":"`+clienttest.Canary+`"}`), key); err != nil {
			t.Fatal(err)
		}
	}
	armed = true
	crash.mu.Lock()
	crash.fired = false
	crash.mu.Unlock()
	return c, crash, server, log
}

// checkCrashLog checks that the log has the stack of a crash, and no secret.
func checkCrashLog(t *testing.T, log *clienttest.Log) {
	t.Helper()
	if !log.Has("stack=") || !log.Has("crasher_test.go") || log.Has(clienttest.Canary) {
		t.Errorf("the log has no stack, or a secret:\n%s", log)
	}
}

// TestCrashInResume: it is the operation's error, or the journal's; the pass goes on with the other operations; this process tries
// the operation again after Retry.MaxPause, and not before.
func TestCrashInResume(t *testing.T) {
	t.Parallel()
	eachCrash(t, crashesOfPasses(), func(t *testing.T, j persist.Journal, place string, do func()) {
		c, crash, server, log := enqueueCrash(t, j, place, do)
		began, failed := time.Now(), 0
		for key, got := range clienttest.Resume(t, c) {
			var e *oncehttp.Error
			if got.Err == nil {
				continue
			}
			if failed++; strings.Contains(got.Err.Error(), clienttest.Canary) {
				t.Errorf("the error holds what it panicked with: %v", got.Err)
			}
			if errors.As(got.Err, &e) {
				if clienttest.ExactlyOne(t, got.Err); !errors.Is(got.Err, oncehttp.ErrOutcomeUnknown) || e.Key != key || !e.NextAttempt.Equal(began.Add(10*time.Minute).Round(0)) {
					t.Errorf("%q: %v, next attempt %v", key, got.Err, e.NextAttempt)
				}
			} else if place != "Journal.List" {
				t.Errorf("%q: %v is no operation's", key, got.Err)
			}
		}
		if !crash.hasFired() || failed != 1 || time.Since(began) != 0 {
			t.Fatalf("fired %v, %d errors, after %v", crash.hasFired(), failed, time.Since(began))
		}
		checkCrashLog(t, log)
		if again := clienttest.Resume(t, c); place != "Journal.List" && len(again) != 0 {
			t.Errorf("tried again at once: %v", again)
		}
		time.Sleep(10 * time.Minute)
		clienttest.Resume(t, c)
		checkCrashOver(t, c, server)
	})
}

// checkCrashOver checks that each operation has ended, and was sent once, or twice where its first answer was not recorded.
func checkCrashOver(t *testing.T, c *oncehttp.Client, server *ledgerServer) {
	t.Helper()
	sends := 0
	for _, key := range crashKeys {
		if rec := clienttest.Lookup(t, c, key); rec.State != persist.StateConfirmed || server.sends(key) < 1 {
			t.Errorf("%q is %v, with %d sends", key, rec.State, server.sends(key))
		}
		sends += server.sends(key)
		clienttest.Free(t, c, key)
	}
	if sends > len(crashKeys)+1 {
		t.Errorf("%d sends of %d operations", sends, len(crashKeys))
	}
}

// TestCrashInRun: Run goes on, and with the operation, too, after Retry.MaxPause.
func TestCrashInRun(t *testing.T) {
	t.Parallel()
	eachCrash(t, append(crashesOfPasses(), "Journal.Sweep"), func(t *testing.T, j persist.Journal, place string, do func()) {
		c, crash, server, log := enqueueCrash(t, j, place, do)
		ctx, cancel := context.WithCancel(t.Context())
		var end howEnded
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { end = endOf(func() { err = c.Run(ctx) }) })
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		if !crash.hasFired() {
			t.Errorf("%s was not reached", place)
		}
		checkCrashOver(t, c, server)
		cancel()
		wg.Wait()
		if end.panicked != nil || !end.returned || err != nil {
			t.Errorf("%+v, %v", end, err)
		}
		checkCrashLog(t, log)
	})
}

// TestCrashOfAWorker: as many crashes as there are workers end none of them.
func TestCrashOfAWorker(t *testing.T) {
	t.Parallel()
	for how, do := range crashes {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			journaltest.Each(t, func(t *testing.T, j persist.Journal) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				var mu sync.Mutex
				left := 20
				c, _ := clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.ResumeWorkers = 3
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						mu.Lock()
						left--
						crashes := left >= 0
						mu.Unlock()
						if crashes {
							do()
						}
					}
				}))
				for i := range 10 {
					if err := c.Enqueue(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint("k", i))); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = c.Run(ctx) })
				time.Sleep(2 * time.Hour)
				cancel()
				wg.Wait()
				if left > 0 || len(w.Keys()) != 10 {
					t.Errorf("%d crashes left, %d keys sent", left, len(w.Keys()))
				}
			})
		})
	}
}

// TestCrashBesideOthers: where the caller that began the call has left, a panic reaches nobody: it is logged, and who waits gets
// an error.
func TestCrashBesideOthers(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		c, _, _, log := crashClient(t, j, "Authorize", func() { time.Sleep(time.Second / 2); panic(crashText) })
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k"); !errors.Is(err, context.Canceled) {
				t.Errorf("who began: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(t.Context()), "k")
			if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("who joined: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		synctest.Wait() // the call's own goroutine writes the line once everybody has the result
		checkCrashLog(t, log)
	})
}

// TestCrashOfALeftBody: a body that crashes once its caller has left is logged, in Read, in Close and in GetBody.
func TestCrashOfALeftBody(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"Body.Read", "Body.Close", "GetBody"} {
		for name, end := range map[string]func(){"panic": func() { panic(clienttest.Canary) }, "Goexit": runtime.Goexit} {
			t.Run(place+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c, crash, server, log := crashClient(t, memory.New(), place, func() { time.Sleep(time.Minute); end() })
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, err := c.DoKey(crashRequest(t, ctx, crash), "left")
					if place != "Body.Close" { // a body that was read whole is sent
						clienttest.ExactlyOne(t, err)
					}
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					if checkCrashLog(t, log); !crash.hasFired() || server.sends("left") > 1 {
						t.Errorf("it has crashed: %t; %d sends", crash.hasFired(), server.sends("left"))
					}
				})
			})
		}
	}
}

// TestCrashWhileGivingBack: an operation that rests after a crash is given back by the next pass. A journal that crashes in that makes
// it the operation's error, in each way, and the pass goes on with the others.
func TestCrashWhileGivingBack(t *testing.T) {
	t.Parallel()
	for how, do := range crashes {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				crash, w := &crasher{place: "Journal.Update", do: do, fired: true}, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				first := true
				memory := memory.New()
				c, _ := clienttest.New(t, w, clienttest.On(sharedCrashJournal{crashJournal{memory, crash}, memory}, func(cfg *oncehttp.Config) {
					cfg.Retry.MaxPause, cfg.ResumeWorkers = 10*time.Minute, 1 // so that the change that crashes is that of the first
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						if e.Kind == oncehttp.EventAttempt && e.Key == "rests" && first {
							first = false
							panic(crashText)
						}
					}
				}))
				if err := c.Enqueue(clienttest.Post(t, "{}"), "rests"); err != nil {
					t.Fatal(err)
				}
				clienttest.Resume(t, c)
				for rec, err := range memory.List(t.Context(), persist.Query{}) { // due again, as another process may leave it
					rec.NextAttempt = time.Time{}
					if err == nil {
						_, err = memory.Update(t.Context(), rec)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if err := c.Enqueue(clienttest.Post(t, `{"other":1}`), "other"); err != nil {
					t.Fatal(err)
				}
				crash.mu.Lock()
				crash.fired = false
				crash.mu.Unlock()
				got := clienttest.Resume(t, c)
				if err := got["rests"].Err; !crash.hasFired() || err == nil || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("fired %t; %v", crash.hasFired(), got)
				}
				if got["other"].Err != nil || w.Keys()["other"] != 1 {
					t.Errorf("the other one: %v, sent %v", got["other"].Err, w.Keys())
				}
			})
		})
	}
}

// sharedCrashJournal is a crashJournal that several processes may share.
type sharedCrashJournal struct {
	crashJournal
	persist.Claimer
}
