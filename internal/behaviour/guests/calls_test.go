package guests_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// ask is one call that a function of the user makes, of the operation with this key where it is about one.
type ask struct {
	do func(c *cell, ctx context.Context, key oncehttp.Key) error
	// keyed: it is about one operation, and is asked of that which is under way and of another.
	keyed bool
	// sends: nil means that the operation has taken effect.
	sends bool
	// acts: it may end the operation, or begin it once more.
	acts bool
	// ends: it closes the client.
	ends bool
	// joins: it waits for the operation that is under way.
	joins bool
	// sent: it waits for what a Run sends beside, and succeeds.
	sent bool
	// fresh: it is an operation of its own, whose key is made. It takes effect, whatever key the caller's context names.
	fresh bool
	// slow: it may take more than an AttemptTimeout and an eighth.
	slow bool
}

// asks are the calls, by what they call: a method of Client, or a function of the package. After a space comes what tells them apart.
func asks() map[string]ask {
	all := map[string]ask{
		"Client.Flush": {joins: true, do: func(c *cell, ctx context.Context, _ oncehttp.Key) error { return c.client.Flush(ctx) }},
		"Client.Sweep": {do: func(c *cell, ctx context.Context, _ oncehttp.Key) error { _, err := c.client.Sweep(ctx); return err }},
		"Client.Prune": {do: func(c *cell, ctx context.Context, _ oncehttp.Key) error {
			_, err := c.client.Prune(ctx, oncehttp.Keeping{})
			return err
		}},
		"Client.Wake":  {do: func(c *cell, _ context.Context, _ oncehttp.Key) error { c.client.Wake(); return nil }},
		"Client.Close": {ends: true, slow: true, do: func(c *cell, _ context.Context, _ oncehttp.Key) error { return c.client.Close() }},
		"Client.Shutdown": {ends: true, slow: true, do: func(c *cell, ctx context.Context, _ oncehttp.Key) error {
			return c.client.Shutdown(ctx)
		}},
		"Client.Resume":                   {joins: true, slow: true, do: resume},
		"Client.Run":                      {joins: true, slow: true, do: runShortly},
		"Client.Unfinished":               {joins: true, do: unfinished},
		"Client.Enqueue and Run sends it": {sent: true, do: enqueueAndWait},
		"New":                             {keyed: true, sends: true, joins: true, do: byAnother},
		"Open":                            {do: open},
	}
	for name, do := range map[string]func(c *cell, req *http.Request, key oncehttp.Key) (*http.Response, error){
		"Client.DoKey": func(c *cell, req *http.Request, key oncehttp.Key) (*http.Response, error) {
			return c.client.DoKey(req, key)
		},
		"Client.Do": func(c *cell, req *http.Request, key oncehttp.Key) (*http.Response, error) {
			return c.client.Do(withKey(req, key))
		},
		"Client.StandardClient": func(c *cell, req *http.Request, key oncehttp.Key) (*http.Response, error) {
			return c.client.StandardClient().Do(withKey(req, key))
		},
		"Client.Transport": func(c *cell, req *http.Request, key oncehttp.Key) (*http.Response, error) {
			return c.client.Transport().RoundTrip(withKey(req, key))
		},
	} {
		all[name] = ask{keyed: true, sends: true, joins: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
			return answered(do(c, payment(ctx), key))
		}}
	}
	for name, do := range keylessAsks {
		all[name+" without a key"] = ask{fresh: true, do: do}
	}
	for name, do := range operatorsAsks {
		all[name] = do
	}
	return all
}

// keylessAsks send what a function wants for itself, such as a token.
var keylessAsks = map[string]func(c *cell, ctx context.Context, _ oncehttp.Key) error{
	"Client.Do": func(c *cell, ctx context.Context, _ oncehttp.Key) error { return answered(c.client.Do(grant(ctx))) },
	"Client.Transport": func(c *cell, ctx context.Context, _ oncehttp.Key) error {
		return answered(c.client.Transport().RoundTrip(grant(ctx)))
	},
	"Client.StandardClient": func(c *cell, ctx context.Context, _ oncehttp.Key) error {
		return answered(c.client.StandardClient().Do(grant(ctx)))
	},
}

// grant is a request for a token.
func grant(ctx context.Context) *http.Request {
	req, err := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/token", strings.NewReader("grant"))
	if err != nil {
		panic(err)
	}
	return req
}

// operatorsAsks are the calls of those that send nothing.
var operatorsAsks = map[string]ask{
	"Client.Enqueue": {keyed: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		return c.client.Enqueue(payment(ctx), key)
	}},
	"Client.Prepare": {keyed: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		_, err := c.client.Prepare(payment(ctx), key)
		return err
	}},
	"Client.Capture": {keyed: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		_, err := c.client.Capture(ctx, key, func(hc *http.Client) error {
			resp, err := hc.Do(payment(ctx))
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		})
		return err
	}},
	"Client.Lookup": {keyed: true, joins: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		_, err := c.client.Lookup(ctx, key)
		return err
	}},
	"Client.Settle": {keyed: true, acts: true, joins: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		return c.client.Settle(ctx, key, oncehttp.Resolution{Effect: oncehttp.EffectHappened})
	}},
	"Client.Abandon": {keyed: true, acts: true, joins: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		return c.client.Abandon(ctx, key)
	}},
	"Client.Rekey": {keyed: true, acts: true, joins: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		rec, _ := c.client.Lookup(ctx, key)
		return c.client.Rekey(ctx, key, key+"-again", "a test", oncehttp.AsSeen(rec))
	}},
	"Client.Redrive": {keyed: true, acts: true, joins: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		_, err := c.client.Redrive(ctx, key)
		return err
	}},
	"Client.Unsettle": {keyed: true, acts: true, joins: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		_, err := c.client.Unsettle(ctx, key, "a test")
		return err
	}},
	"Client.Erase": {keyed: true, acts: true, joins: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		return c.client.Erase(ctx, key)
	}},
	"Client.Assign": {keyed: true, acts: true, joins: true, do: func(c *cell, ctx context.Context, key oncehttp.Key) error {
		return c.client.Assign(oncehttp.ContextWithAccount(ctx, "alice"), key)
	}},
}

// noAsks are the functions of the package without a row, and why.
var noAsks = map[string]string{
	"AccountFromContext": "reads a context",
	"AsSeen":             "an option; Rekey has it",
	"AttemptFromContext": "reads a context",
	"ContextWithAccount": "makes a context; Assign has it",
	"ContextWithKey":     "makes a context; Do has it",
	"CredentialHash":     "a hash",
	"InRun":              "an option of Redrive",
	"InheritKey":         "wraps a handler; no client in it",
	"InheritKeyBy":       "wraps a handler; no client in it",
	"InheritedKey":       "reads a context",
	"KeyFromJSON":        "reads a request",
	"NewScope":           "makes a value",
	"OfAccount":          "an option of Lookup and of the acts",
	"OutcomeOf":          "reads a record",
	"RandomKey":          "makes a value",
	"Untold":             "an option of Redrive",
	"Writes":             "reads a request",
	"ResultOf":           "reads an answer",
	"TimeBucket":         "makes a text",
	"Webhook":            "makes a handler; internal/behaviour/webhook has what it does in a call",
	"Undo":               "an option of Abandon, for profiles that can; TestGuestsCallTheClient of the root has it as a place",
	"WithNote":           "an option of Settle and Abandon",
	"Error.":             "reads a value",
	"Key.":               "makes a value",
	"Outcome.":           "makes a text",
	"RequestKeeping.":    "makes a text",
	"Scope.":             "makes a value",
	"Source.":            "makes a text",
}

// payment is a request for a payment.
func payment(ctx context.Context) *http.Request {
	req, err := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/payments", strings.NewReader(`{"amount":100}`))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// withKey gives the request a key by its context.
func withKey(req *http.Request, key oncehttp.Key) *http.Request {
	return req.WithContext(oncehttp.ContextWithKey(req.Context(), key))
}

// answered reads the answer to its end.
func answered(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// resume is a pass.
func resume(c *cell, ctx context.Context, _ oncehttp.Key) (err error) {
	for _, failed := range c.client.Resume(ctx) {
		err = errors.Join(err, failed)
	}
	return err
}

// runShortly is a Run of half a second.
func runShortly(c *cell, ctx context.Context, _ oncehttp.Key) error {
	short, cancel := context.WithTimeout(ctx, time.Second/2)
	defer cancel()
	return c.client.Run(short)
}

// unfinished lists all.
func unfinished(c *cell, ctx context.Context, _ oncehttp.Key) (err error) {
	for _, failed := range c.client.Unfinished(ctx) {
		err = errors.Join(err, failed)
	}
	return err
}

// enqueueAndWait enqueues another payment, and waits until the Run that is under way has sent it.
func enqueueAndWait(c *cell, ctx context.Context, _ oncehttp.Key) error {
	if err := c.client.Enqueue(payment(ctx), "other"); err != nil {
		return err
	}
	for range 20 {
		if rec, err := c.inner.Get(c.ctx, persist.ID{Key: "other"}); err != nil || rec.State.Final() {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("it was not sent")
}

// byAnother sends by another client on the same journal.
func byAnother(c *cell, ctx context.Context, key oncehttp.Key) error {
	another, err := oncehttp.New(oncehttp.Config{Journal: c.inner, Transport: c.server, Retry: policy()})
	if err != nil {
		return err
	}
	err = answered(another.DoKey(payment(ctx), key))
	return errors.Join(err, another.Close())
}

// open opens a client on a journal of its own, and sends by it.
func open(c *cell, ctx context.Context, _ oncehttp.Key) error {
	another, err := oncehttp.Open(filepath.Join(c.dir, "another.db"), oncehttp.Config{Transport: c.server, Retry: policy()})
	if err != nil {
		return err
	}
	err = answered(another.DoKey(payment(ctx), "elsewhere"))
	return errors.Join(err, another.Close())
}

// policy has an AttemptTimeout of a second.
func policy() oncehttp.Policy {
	return oncehttp.Policy{AttemptTimeout: time.Second, MinDelay: time.Millisecond, MaxDelay: time.Millisecond, MaxAttempts: 3}
}
