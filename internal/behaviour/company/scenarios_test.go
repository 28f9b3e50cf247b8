package company_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// scenario is what has become of the first client's operations when the second one acts.
type scenario struct {
	name    string
	begin   func(*cell)
	told    bool // their caller was told how they ended
	expired bool // they may be held, since their time is over
	flying  bool // they are under way
}

// enqueuedOps is how many operations are enqueued at once.
const enqueuedOps = 5

// scenarios are all of them.
func scenarios() []scenario {
	in := func(w weather) func(*cell) {
		return func(c *cell) {
			c.server.set(w)
			_ = c.call(0, c.op()) // checked
			c.server.set(fair)
		}
	}
	return []scenario{
		{name: "plain sale", begin: in(fair), told: true},
		{name: "lost answer", begin: in(lost)},
		{name: "crash in between", begin: crashed},
		{name: "crash, still on its way", begin: crashedOnItsWay, flying: true},
		{name: "402 not stored", begin: in(declines), told: true},
		{name: "long 402 not stored", begin: in(declinesL), told: true},
		{name: "409 then 201", begin: in(conflict)},
		{name: "no connections", begin: in(down)},
		{name: "enqueued", begin: enqueued},
		{name: "expired window", begin: expired, expired: true},
		{name: "under way", begin: underWay, flying: true},
	}
}

// op makes the op of the cell.
func (c *cell) op() *op {
	o := &op{order: "o1", key: "k1", tenant: "t1", query: "1"}
	if c.act.keyless {
		o.key = ""
	}
	c.ops = append(c.ops, o)
	return o
}

// crashed: the effect takes place, and the process dies before it has the answer.
func crashed(c *cell) {
	o := c.op()
	c.server.set(slow)
	var call sync.WaitGroup
	do := c.prepared(0, o)
	call.Go(func() { _, _ = do() }) // nobody is told
	time.Sleep(time.Second)
	c.crash()
	call.Wait()
	c.server.set(fair)
	time.Sleep(c.server.takes + 10*time.Second) // it is at the server
}

// crashedOnItsWay: the process dies while the request is at the server, which may take longer than a lease.
func crashedOnItsWay(c *cell) {
	o := c.op()
	c.server.set(slow)
	do := c.prepared(0, o)
	go func() { _, _ = do() }() // nobody is told
	time.Sleep(time.Second)
	c.crash()
	time.Sleep(time.Minute)
	c.server.set(fair)
}

// enqueued: a few are enqueued at once.
func enqueued(c *cell) {
	for n := range enqueuedOps {
		o := &op{order: "o" + strconv.Itoa(n), key: oncehttp.Key("k" + strconv.Itoa(n)), tenant: "t1", query: "1"}
		c.ops = append(c.ops, o)
		o.begins(0)
		err := c.clients[0].Enqueue(c.request(o), o.key)
		if o.queued = err == nil; err != nil {
			c.told(o, err, 0)
		}
	}
}

// expired: an answer is lost, and the window is over.
func expired(c *cell) {
	c.server.set(lost)
	_ = c.call(0, c.op()) // checked
	c.server.set(fair)
	time.Sleep(window + time.Hour)
}

// underWay: the request is at the server, which takes its time. The call ends beside the act.
func underWay(c *cell) {
	o := c.op()
	c.server.set(slow)
	do := c.prepared(0, o)
	go func() {
		resp, err := do()
		if err == nil {
			resp.Body.Close()
		} else if !errors.As(err, new(*oncehttp.Error)) {
			c.Errorf("the call beside: %v", err)
		}
	}()
	time.Sleep(5 * time.Second)
}

// act is what the second client does then.
type act struct {
	name    string
	do      func(*cell)
	keyless bool // the callers name no key
	untold  bool // only where nobody was told how it ended
}

// acts are all of them.
func acts() []act {
	return []act{
		{name: "begins another", do: beside},
		{name: "repeats", do: func(c *cell) { c.repeat(1) }},
		{name: "repeats without a key", do: func(c *cell) { c.repeat(1) }, keyless: true, untold: true},
		{name: "another request under the key", do: another},
		{name: "runs", do: func(c *cell) { c.runs(time.Minute, 1) }},
		{name: "runs in vain", do: runsInVain},
		{name: "sweeps", do: sweeps},
		{name: "settles as seen", do: settles},
		{name: "rekeys as seen", do: rekeys},
	}
}

// beside lets the second client begin another operation.
func beside(c *cell) {
	_ = c.call(1, &op{order: "beside", key: "beside", tenant: "t1", query: "1"}) // checked
}

// repeat lets a client send the ops again.
func (c *cell) repeat(n int) {
	for _, o := range c.ops {
		if o.key != "" || !o.known { // else it would be another order
			_ = c.call(n, o) // checked
		}
	}
}

// another lets the second client send what differs in what one of them may not compare.
func another(c *cell) {
	for _, o := range c.ops {
		others := []*op{{order: o.order, key: o.key, tenant: "t2", query: "1"}, {order: o.order, key: o.key, tenant: "t1", query: "2"}}
		if c.headers[noteHeader] != "" {
			others = append(others, &op{order: o.order, key: o.key, tenant: "t1", query: "1", note: "another"})
		}
		for _, other := range others {
			_ = c.call(1, other) // checked
		}
	}
}

// runs lets clients run for a while.
func (c *cell) runs(d time.Duration, which ...int) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var all sync.WaitGroup
	for _, n := range which {
		all.Go(func() {
			if err := c.clients[n].Run(ctx); err != nil && ctx.Err() == nil {
				c.Errorf("Run of client %d: %v", n, err)
			}
		})
	}
	all.Wait()
}

// runsInVain lets the second client run while the server is busy.
func runsInVain(c *cell) {
	c.server.set(conflict)
	c.runs(2*time.Minute, 1)
	c.server.set(fair)
}

// sweeps lets the second client sweep at once and later, of what has ended past the window, too.
func sweeps(c *cell) {
	ages := []time.Duration{0, window / 2}
	if c.scenario.told {
		ages = append(ages, window)
	}
	for _, d := range ages {
		time.Sleep(d)
		if _, err := c.clients[1].Sweep(context.Background()); err != nil {
			c.Errorf("%v", err)
		}
	}
}

// settles lets a person settle through the second client what it shows unfinished, as found at the API now.
func settles(c *cell) {
	c.person(func(rec persist.Record, effect persist.Effect) error {
		return c.clients[1].Settle(context.Background(), oncehttp.Key(rec.Key), oncehttp.Resolution{Effect: effect}, oncehttp.AsSeen(rec))
	})
}

// rekeys lets a person begin what had no effect so far once more.
func rekeys(c *cell) {
	c.person(func(rec persist.Record, effect persist.Effect) error {
		if effect != persist.EffectAbsent {
			return nil
		}
		key := oncehttp.Key(rec.Key)
		return c.clients[1].Rekey(context.Background(), key, key.Generation(2), "nothing was found", oncehttp.AsSeen(rec))
	})
}

// person lets a person act on each unfinished op, after a look at the journal and one at the API. What is under way is no
// reason to wait: an act on it has to change nothing.
func (c *cell) person(act func(persist.Record, persist.Effect) error) {
	for _, o := range c.ops {
		if o.key == "" {
			continue
		}
		rec, err := c.clients[1].Lookup(context.Background(), o.key)
		if err != nil || rec.State.Final() {
			continue
		}
		effect := persist.EffectHappened
		if c.server.happened(c.intent(o)) == 0 {
			effect = persist.EffectAbsent
		}
		switch err := act(rec, effect); {
		case err == nil:
			o.settled = true
		case errors.As(err, new(*oncehttp.Error)):
			c.told(o, err, 0)
		}
	}
}
