package guests_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// journalPlaces are the methods of a user's own journal, and how each is reached.
func journalPlaces() map[string]place {
	all := map[string]place{}
	for method, start := range map[string]func(*cell) error{
		"Journal.Begin": send, "Journal.Update": workRefused, "Journal.Finish": send, "Journal.Secret": send, "Journal.Fact": send, "Journal.MarkReported": reported,
		"Journal.Get": look, "Journal.List": list, "Journal.Flush": flush, "Journal.Sweep": sweep, "Journal.Assign": assign, "Journal.Forget": withdraw,
		"Claimer.Now": send, "Claimer.Claim": work, "Claimer.Renew": send, "DueTimes.DueTimes": work,
		"Journal.Finish by Settle": settle, "Journal.Flush by Settle": settle, "Journal.Get by Settle": settle, "Journal.Finish by Abandon": abandon,
		"Journal.Begin by Rekey": rekey, "Journal.Amend by Rekey": rekey, "Journal.Begin by Enqueue": list,
		"SendClaimer.ClaimToSend": work, "LateFinisher.FinishLate": send, "Notifier.Notify": work, "Notifier.Listen": work, "Prober.Probe": rejected,
	} {
		p := place{start: start, journal: true}
		if method == "Journal.Secret" {
			p.body = withCredential
		}
		if method == "Journal.Forget" {
			p.set = func(c *cell, cfg *oncehttp.Config) {
				cfg.Origins = []string{"https://api.example.com"}
				cfg.Authorize = func(*http.Request) error {
					if c.refusals.Add(1) == 1 {
						return errors.New("no credentials yet")
					}
					return nil
				}
			}
		}
		if method == "Claimer.Renew" {
			p.set = func(c *cell, cfg *oncehttp.Config) {
				cfg.Lease = time.Second
				c.server.delay = 700 * time.Millisecond
			}
		}
		all["persist."+method] = p
	}
	return all
}

// noPlaces are the functions of a user without a row, and why.
var noPlaces = map[string]string{
	"Config.Operation":                  "it is asked before there is an operation, and must not call the client: TestOperationThatAsksItself of the root",
	"Config.Logger":                     "its handler must not call the client: see its documentation",
	"Config.Journal":                    "its methods have rows",
	"Config.Instrument":                 "its methods have rows",
	"Config.OnResult":                   "called by Run for what has ended and has no call any more: results/results_test.go calls the client in it",
	"persist.Eraser.Erase":              "called for what has ended and has no call any more, as Journal.MarkReported",
	"persist.Results.MarkDelivered":     "called for what has ended and has no call any more, as Journal.MarkReported",
	"persist.SharedResults.Postpone":    "likewise",
	"persist.Counter.Count":             "no client calls it: metrics and the command do",
	"Client.Capture.call":               "called before there is an operation, on the caller's goroutine, without a lock: capture_test.go calls the client in it",
	"Error.":                            "given by the client",
	"Event.":                            "given by the client",
	"InheritKey.principal":              "called by a handler that is no call of a client",
	"InheritKeyBy.principal":            "called by a handler that is no call of a client",
	"persist.As.j":                      "a journal, whose methods have rows",
	"persist.TxBeginner.BeginTx":        "no client calls it: the caller does, in a transaction of its own and on its goroutine",
	"persist.TxBeginner.BeginIn":        "likewise",
	"persist.BeginTx.j":                 "likewise",
	"persist.BeginTx.tx":                "likewise",
	"persist.BeginIn.j":                 "likewise",
	"persist.BeginIn.tx":                "likewise",
	"persist.Attachment.Attach.create":  "given by New and Open",
	"persist.OfOneRecord.err":           "an error, which is read",
	"persist.UnreadError.Err":           "an error, which is read",
	"persist.Journal.Attach":            "called by New and Open alone, before there is a client to call",
	"persist.Journal.Close":             "called by Close of a client of Open alone, whose journal is this package's own",
	"persist.LateFinisher.FinishesLate": "called by New and Open alone, before there is a client to call",
	"persist.InProcess.InProcess":       "likewise",
}

// look sends, and settles what has ended.
func look(c *cell) error {
	err := send(c)
	_ = c.client.Settle(c.ctx, "payment", oncehttp.Resolution{Effect: oncehttp.EffectHappened})
	return err
}

// reported sends without a key what a pass sends to its end: who asks for it again is the first to learn of it.
func reported(c *cell) error {
	rec, err := c.client.Prepare(payment(c.ctx), "payment")
	if err != nil {
		return err
	}
	rec.Generated, rec.Enqueued = true, true
	if _, _, err := c.inner.Begin(c.ctx, rec); err != nil {
		return err
	}
	return errors.Join(resume(c, c.ctx, ""), send(c))
}

// workRefused works over a network that refuses the first connection, and sends then.
func workRefused(c *cell) error {
	c.server.refuses.Store(true)
	if err := c.client.Enqueue(payment(c.ctx), "payment"); err != nil {
		return err
	}
	_ = resume(c, c.ctx, "")
	return send(c)
}

// list lists what is unfinished, and sends.
func list(c *cell) error {
	return errors.Join(c.client.Enqueue(payment(c.ctx), "payment"), unfinished(c, c.ctx, ""), send(c))
}

// settle enqueues, and settles.
func settle(c *cell) error {
	return c.act(func(persist.Record) error {
		return c.client.Settle(c.ctx, "payment", oncehttp.Resolution{Effect: oncehttp.EffectHappened})
	})
}

// abandon enqueues, and abandons.
func abandon(c *cell) error {
	return c.act(func(persist.Record) error { return c.client.Abandon(c.ctx, "payment") })
}

// rekey enqueues, settles as absent, and begins once more under another key.
func rekey(c *cell) error {
	return c.act(func(rec persist.Record) error {
		c.armed.Store(false)
		err := c.client.Settle(c.ctx, "payment", oncehttp.Resolution{Effect: oncehttp.EffectAbsent}, oncehttp.AsSeen(rec))
		c.armed.Store(true)
		return errors.Join(err, c.client.Rekey(c.ctx, "payment", "payment-again", "a test", oncehttp.AsSeen(rec)))
	})
}

// act enqueues, and calls do, which is a person's act, with the record. The journal visits in that alone.
func (c *cell) act(do func(persist.Record) error) error {
	c.armed.Store(false)
	err := c.client.Enqueue(payment(c.ctx), "payment")
	rec, failed := c.inner.Get(c.ctx, persist.ID{Key: "payment"})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	c.armed.Store(true)
	return do(rec)
}

// flush sends, and flushes.
func flush(c *cell) error { return errors.Join(send(c), c.client.Flush(c.ctx)) }

// sweep sends, and sweeps.
func sweep(c *cell) error {
	_, err := c.client.Sweep(c.ctx)
	return errors.Join(send(c), err)
}

// assign sends, and assigns.
func assign(c *cell) error {
	return errors.Join(send(c), c.client.Assign(oncehttp.ContextWithAccount(c.ctx, "bob"), "payment"))
}

// withdraw sends what is refused before it is sent, and sends again.
func withdraw(c *cell) error {
	_ = send(c)
	return send(c)
}

// rejected asks for what cannot be read first.
func rejected(c *cell) error {
	req := payment(c.ctx)
	req.Body = &visitingBody{ReadCloser: req.Body, read: func() { panic("unreachable") }}
	req.ContentLength = 1 << 40
	_, _ = c.client.DoKey(req, "payment")
	return send(c)
}

// journalOf returns a journal of a user's own around that of the cell; nil where that has not what the place is about.
func journalOf(c *cell) persist.Journal {
	g := &guest{Journal: c.inner, c: c}
	shared, shares := c.inner.(full)
	sends, claims := c.inner.(persist.SendClaimer)
	method := strings.TrimPrefix(c.name, "persist.")
	switch {
	case method == "SendClaimer.ClaimToSend" && !claims, strings.HasPrefix(method, "Claimer.") && !shares:
		return nil
	case method == "SendClaimer.ClaimToSend":
		g.self = &claiming{sharing{g, shared}, sends}
	case shares:
		g.self = &sharing{g, shared}
	default:
		g.self = &local{g, c.inner.(persist.DueTimes)}
	}
	return g.self
}

// guest is a journal of a user's own, with what any may be able to do.
type guest struct {
	persist.Journal
	c    *cell
	self persist.Journal
}

// sharing is a guest that several processes may share.
type sharing struct {
	*guest
	full
}

// claiming is one that claims and marks in one step.
type claiming struct {
	sharing
	sends persist.SendClaimer
}

// local is a guest of one process.
type local struct {
	*guest
	due persist.DueTimes
}

// full is what a journal may be able to do.
type full interface {
	persist.Claimer
	persist.DueTimes
}

// at visits if the cell is about this method.
func (g *guest) at(ctx context.Context, method string) {
	if on, _, _ := strings.Cut(strings.TrimPrefix(g.c.name, "persist."), " "); on == method {
		g.c.visit(ctx)
	}
}

func (g *guest) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	g.at(ctx, "Journal.Begin")
	return g.Journal.Begin(ctx, rec)
}

func (g *guest) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	g.at(ctx, "Journal.Update")
	return g.Journal.Update(ctx, rec)
}

func (g *guest) Finish(ctx context.Context, rec persist.Record) error {
	g.at(ctx, "Journal.Finish")
	return g.Journal.Finish(ctx, rec)
}

func (g *guest) MarkReported(ctx context.Context, id persist.ID) error {
	g.at(ctx, "Journal.MarkReported")
	return g.Journal.MarkReported(ctx, id)
}

func (g *guest) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	g.at(ctx, "Journal.Assign")
	return g.Journal.Assign(ctx, rec, account)
}

func (g *guest) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	g.at(ctx, "Journal.Amend")
	return g.Journal.Amend(ctx, rec)
}

func (g *guest) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	g.at(ctx, "Journal.Fact")
	return g.Journal.Fact(ctx, name, old, value)
}

func (g *guest) Secret(ctx context.Context) ([]byte, error) {
	g.at(ctx, "Journal.Secret")
	return g.Journal.Secret(ctx)
}

func (g *guest) Forget(ctx context.Context, rec persist.Record) error {
	g.at(ctx, "Journal.Forget")
	return g.Journal.Forget(ctx, rec)
}

func (g *guest) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	g.at(ctx, "Journal.Get")
	return g.Journal.Get(ctx, id)
}

func (g *guest) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		g.at(ctx, "Journal.List")
		g.Journal.List(ctx, q)(yield)
	}
}

func (g *guest) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	g.at(ctx, "Journal.Sweep")
	return g.Journal.Sweep(ctx, l)
}

func (g *guest) Flush(ctx context.Context) error {
	g.at(ctx, "Journal.Flush")
	return g.Journal.Flush(ctx)
}

func (g *sharing) Now(ctx context.Context) (time.Time, error) {
	g.at(ctx, "Claimer.Now")
	return g.full.Now(ctx)
}

func (g *sharing) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	g.at(ctx, "Claimer.Claim")
	return g.full.Claim(ctx, q, owner, lease, n)
}

func (g *sharing) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	g.at(ctx, "Claimer.Renew")
	return g.full.Renew(ctx, owner, lease, ids)
}

func (g *sharing) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	g.at(ctx, "DueTimes.DueTimes")
	return g.full.DueTimes(ctx, q)
}

func (g *guest) FinishLate(ctx context.Context, rec persist.Record) error {
	g.at(ctx, "LateFinisher.FinishLate")
	return g.Journal.Finish(ctx, rec)
}

func (g *guest) FinishesLate() persist.Journal {
	if strings.HasPrefix(g.c.name, "persist.LateFinisher.") {
		return g.self
	}
	return nil // no LateFinisher, so that Finish is called
}

func (g *guest) Notify() { g.at(noContext, "Notifier.Notify") }

func (g *guest) Listen(ctx context.Context, heard func(error)) error {
	g.at(ctx, "Notifier.Listen")
	heard(nil)
	<-ctx.Done()
	return context.Cause(ctx)
}

func (g *guest) Probe(ctx context.Context, id persist.ID) (persist.Record, error) {
	g.at(ctx, "Prober.Probe")
	return g.Journal.Get(ctx, id)
}

func (g *claiming) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	g.at(ctx, "SendClaimer.ClaimToSend")
	return g.sends.ClaimToSend(ctx, q, owner, lease, sending, n)
}

func (g *local) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	g.at(ctx, "DueTimes.DueTimes")
	return g.due.DueTimes(ctx, q)
}
