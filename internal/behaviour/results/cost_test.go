package results_test

import (
	"context"
	"slices"
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

// counting counts the changes of a journal.
type counting struct {
	*memory.Journal
	mu     sync.Mutex
	writes []string
}

func (c *counting) note(write string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, write)
}

func (c *counting) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	c.note("begin")
	return c.Journal.Begin(ctx, rec)
}

func (c *counting) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	c.note("update")
	return c.Journal.Update(ctx, rec)
}

func (c *counting) Finish(ctx context.Context, rec persist.Record) error {
	c.note("finish")
	return c.Journal.Finish(ctx, rec)
}

func (c *counting) Postpone(ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
	c.note("postpone")
	return c.Journal.Postpone(ctx, id, revision, from)
}

func (c *counting) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	c.note("mark")
	return c.Journal.MarkDelivered(ctx, id, revision)
}

// costs plays on a journal, and returns its writes.
func costs(t *testing.T, b *business, reply wiretest.Reply, play func(c *oncehttp.Client)) []string {
	j := &counting{Journal: memory.New()}
	play(client(t, j, b, reply))
	return j.writes
}

// TestOnResultCostsOneWrite: a delivery costs one write more, of a Do and of a Run, and of an end and of a hold alike.
func TestOnResultCostsOneWrite(t *testing.T) {
	t.Parallel()
	plays := map[string]func(t *testing.T) func(c *oncehttp.Client){
		"Do": func(t *testing.T) func(c *oncehttp.Client) {
			return func(c *oncehttp.Client) { _, _ = c.DoKey(clienttest.Post(t, "{}"), "k") }
		},
		"Run": func(t *testing.T) func(c *oncehttp.Client) {
			return func(c *oncehttp.Client) {
				clienttest.Must(t, c.Enqueue(clienttest.Post(t, "{}"), "k"))
				pass(t, c, time.Minute)
			}
		},
	}
	for name, play := range plays {
		for status, reply := range map[string]wiretest.Reply{"paid": {Status: 201, Body: "{}"}, "declined": {Status: 402, Body: "{}"}, "held": {Status: 302}} {
			t.Run(name+"/"+status, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var b business
					unset, set := costs(t, nil, reply, play(t)), costs(t, &b, reply, play(t))
					if want := append(slices.Clone(unset), "mark"); !slices.Equal(set, want) {
						t.Errorf("writes %q; want %q", set, want)
					}
					if name == "Run" && len(b.got) != 1 {
						t.Errorf("OnResult got %q", b.got)
					}
				})
			})
		}
	}
}

// TestOwnResultOfALostProcess: what a process has ended and not delivered, since it died, another delivers when the time of the first is over.
func TestOwnResultOfALostProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		over := make(chan struct{})
		never := &business{once: func() { <-over }} // it is as good as dead
		first := client(t, j, never, wiretest.Reply{Status: 402, Body: "{}"})
		clienttest.Must(t, first.Enqueue(clienttest.Post(t, "{}"), "k"))
		stop := clienttest.Start(t, first)
		time.Sleep(time.Second)
		var b business
		other := client(t, &journaltest.OwnProcess{Journal: j}, &b, wiretest.Reply{Status: 402, Body: "{}"})
		rec := clienttest.Lookup(t, other, "k")
		wait := time.Until(rec.OwedFrom)
		pass(t, other, wait-time.Second)
		b.want(t, "while the first has it")
		pass(t, other, 3*time.Second)
		b.want(t, "after that", "k confirmed 402")
		close(over)
		clienttest.Must(t, stop())
	})
}

// TestOwnResultTakenByAnother: an own result that has waited until another process took it is that process's.
func TestOwnResultTakenByAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		until := func(d time.Duration) { time.Sleep(time.Until(began.Add(d))) }
		var mu sync.Mutex
		var fifth []string
		// deliver returns an OnResult that is busy with other results until others, and with the fifth until last.
		deliver := func(who string, others, last time.Duration) func(*oncehttp.Config) {
			return func(cfg *oncehttp.Config) {
				cfg.OnResult = func(_ context.Context, rec persist.Record) error {
					if rec.Key != "k4" {
						until(others)
						return nil
					}
					mu.Lock()
					fifth = append(fifth, who)
					mu.Unlock()
					until(last)
					return nil
				}
			}
		}
		j, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		first, _ := clienttest.New(t, w, clienttest.On(j, clienttest.Protected, deliver("first", 2*time.Minute+47*time.Second, 0)))
		other, _ := clienttest.New(t, w, clienttest.On(&journaltest.OwnProcess{Journal: j}, clienttest.Protected, deliver("other", 0, 4*time.Minute)))
		stopFirst := clienttest.Start(t, first)
		for _, key := range []oncehttp.Key{"k0", "k1", "k2", "k3"} { // they have its four places
			clienttest.Must(t, first.Enqueue(clienttest.Post(t, "{}"), key))
		}
		until(10 * time.Second)
		clienttest.Must(t, first.Enqueue(clienttest.Post(t, "{}"), "k4"))
		until(20 * time.Second)
		stopOther := clienttest.Start(t, other)
		until(5 * time.Minute)
		clienttest.Must(t, stopFirst())
		clienttest.Must(t, stopOther())
		if !slices.Equal(fifth, []string{"other"}) || w.Count() != 5 {
			t.Errorf("the fifth was given to %q, of %d sends; want the other one alone", fifth, w.Count())
		}
	})
}

// TestOwnResultAfterTheOthersHold: while another process hands over an earlier hold, this one does not hand over its end.
func TestOwnResultAfterTheOthersHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		note := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, text)
		}
		deliver := func(who string, takes time.Duration) func(*oncehttp.Config) {
			return func(cfg *oncehttp.Config) {
				cfg.EnqueueMaxAge = time.Hour
				cfg.OnResult = func(_ context.Context, rec persist.Record) error {
					note(who + " gets " + rec.State.String())
					time.Sleep(takes)
					note(who + " has it")
					return nil
				}
			}
		}
		j, w := memory.New(), &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		first, _ := clienttest.New(t, w, clienttest.On(j, clienttest.Protected, deliver("first", 0)))
		other, _ := clienttest.New(t, w, clienttest.On(&journaltest.OwnProcess{Journal: j}, clienttest.Protected, deliver("other", time.Minute)))
		clienttest.Must(t, first.Enqueue(clienttest.Post(t, "{}"), "k"))
		time.Sleep(2 * time.Hour) // it is too old for its first send
		stopOther := clienttest.Start(t, other)
		time.Sleep(10 * time.Second)
		stopFirst := clienttest.Start(t, first)
		time.Sleep(time.Second)
		clienttest.Must(t, first.Enqueue(clienttest.Post(t, "{}"), "k")) // it hears of it at once, and sends
		time.Sleep(10 * time.Minute)
		clienttest.Must(t, stopFirst())
		clienttest.Must(t, stopOther())
		if len(got) != 4 || !slices.Equal(got[:2], []string{"other gets held", "other has it"}) || w.Count() != 1 {
			t.Errorf("%q, %d sends; want the hold to be handed over whole before the end", got, w.Count())
		}
	})
}

// TestResultOfAResumeIsForAnyRun: a client without a Run keeps its results for nobody: another process delivers them at once.
func TestResultOfAResumeIsForAnyRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mine, b business
		j := memory.New()
		first := client(t, j, &mine, wiretest.Reply{Status: 402, Body: "{}"})
		clienttest.Must(t, first.Enqueue(clienttest.Post(t, "{}"), "k"))
		clienttest.Pass(t, first)
		other := client(t, &journaltest.OwnProcess{Journal: j}, &b, wiretest.Reply{Status: 402, Body: "{}"})
		pass(t, other, time.Second)
		b.want(t, "after a second", "k confirmed 402")
		mine.want(t, "in the process of the Resume")
	})
}
