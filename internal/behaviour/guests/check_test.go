package guests_test

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp"
)

// check checks what was told, and what was sent.
func (c *cell) check(e ending) {
	c.checkTold()
	ledger := c.server.ledger()
	quiet := c.end == "returns" && !c.ask.ends && !c.ask.acts &&
		!(c.personActs() && errors.Is(e.err, oncehttp.ErrStale) && (c.call == "Client.Resume" || c.call == "Client.Run")) // which claims it
	switch {
	case quiet && (!e.returned || e.err != nil):
		c.Errorf("the operation: %+v: %v", e, e.err)
	case errors.As(e.err, new(*oncehttp.Error)): // else it is that of Run, Flush or Sweep
		c.checkVerdict("the operation", e.err)
	}
	beside := c.ask.sends && c.key == "payment" && c.way.goroutine && !c.way.waits // it may have begun it since
	if errors.Is(e.err, oncehttp.ErrNoEffect) && ledger["payment"] > 0 && !beside {
		c.Errorf("the operation has no effect: %v; sent: %v", e.err, ledger)
	}
	if c.name != "persist.Journal.Assign" && c.call != "Client.Assign" { // then it may be of another account
		c.recover()
	}
	ledger = c.server.ledger()
	most := 1
	if c.end != "returns" || c.ask.ends || c.ask.slow { // the answer may be lost by that: the same key is asked again
		most = 2
	}
	made := 0
	for key, n := range ledger {
		if n > most {
			c.Errorf("%s was sent %d times", key, n)
		}
		if !slices.Contains([]string{"payment", "other", "elsewhere", "payment-again", "other-again"}, key) {
			made++
		}
	}
	if c.ask.fresh != (made == 1) || made > 1 {
		c.Errorf("%d keys were made: %v", made, ledger)
	}
	if ledger["payment-again"] > 0 && ledger["payment"] > 0 {
		c.Errorf("paid twice: %v", ledger)
	}
}

// checkTold checks what the call was told.
func (c *cell) checkTold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, ledger := c.told, c.server.ledger()
	if !c.over {
		c.Error("the call has not ended")
		return
	}
	bound := 1125 * time.Millisecond
	switch {
	case c.ask.slow || c.ask.ends:
		bound = 4 * time.Second
	case !c.way.background && (!c.way.goroutine || c.way.waits) && c.call != "Open":
		bound = time.Second / 2
	}
	if c.took > bound && c.name != "persist.Claimer.Renew" {
		c.Errorf("the call was told %v after %v", err, c.took)
	}
	if (c.ask.sent || c.ask.fresh) && err != nil {
		c.Errorf("the call was told: %v", err)
	}
	if !c.ask.keyed {
		return
	}
	if err != nil {
		c.checkVerdict("the call", err)
		if errors.Is(err, oncehttp.ErrNoEffect) && ledger[string(c.key)] > 0 && c.name != "persist.Journal.Forget" { // which sends once more
			c.Errorf("the call has no effect: %v; sent: %v", err, ledger)
		}
		return
	}
	if c.ask.sends && ledger[string(c.key)] == 0 {
		c.Errorf("the call succeeded; sent: %v", ledger)
	}
}

// checkVerdict checks that the error has exactly one verdict.
func (c *cell) checkVerdict(what string, err error) {
	verdicts := 0
	for _, verdict := range []error{oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown} {
		if errors.Is(err, verdict) {
			verdicts++
		}
	}
	if verdicts != 1 {
		c.Errorf("%s: %v matches %d verdicts", what, err, verdicts)
	}
}

// recover sends the payment again: nothing is left in flight. It does by the same client, if that is open, or by another one, which
// waits for the lease that a panic may have left.
func (c *cell) recover() {
	after := c.client
	if c.ask.ends || c.key == "other" {
		another, err := oncehttp.New(oncehttp.Config{
			Journal: c.inner, Transport: c.server, Retry: policy(), Profile: c.profile(), Token: c.token(),
			Authorize: func(*http.Request) error { return nil }, OriginAllowed: func(string) bool { return true }, // the cell's client may have them
		})
		if err != nil {
			c.Fatal(err)
		}
		defer another.Close()
		if after = another; c.end != "returns" || c.ask.ends {
			time.Sleep(31 * time.Second)
		}
	}
	began := time.Now()
	err := answered(after.DoKey(payment(c.ctx), "payment"))
	switch {
	case c.name == "Config.Reconcile" || c.ask.acts || c.personActs(): // it may have ended, or be held
		if err != nil {
			c.checkVerdict("the same key again", err)
		}
	case err != nil:
		c.Errorf("the same key again: %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		c.Errorf("the same key again took %v", took)
	}
}
