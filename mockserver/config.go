package mockserver

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/bugs"
	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
	"github.com/oncehttp/oncehttp/profile"
)

// Config configures a server. The zero value is a correct server of the Draft07
// profile without faults. New copies the struct and shares its slices and maps:
// do not change their elements afterwards.
type Config struct {
	// Profile describes the API's idempotency. Nil: profile.Draft07(). If it names
	// a business reference (Duplicate and Reference), the package's own service
	// takes each reference once and answers lookups for it.
	Profile *profile.Profile
	// Handler executes requests. Nil: the service of the package comment. The
	// context of its request does not end when the client leaves; it ends with
	// Server.Close and Server.Restart. Each run that answers 2xx or 3xx, and does
	// not refuse in its body (see profile.Profile.Verdicts), counts as one effect.
	Handler http.Handler

	// Script is the fault of each send, in the order of arrival, one entry
	// per send; None is a send that goes well. When it is used up, Mix draws.
	Script []Fault
	// ByKey holds a script for each key: the n-th send with that key meets the
	// n-th fault. It goes before all others.
	ByKey map[string][]Fault
	// Scenarios are scripts for operations, in the order in which operations
	// first appear, and from the start again when there are more of them. An
	// operation is identified by OperationPointer, else by its key. They go
	// before Script and Mix. Empty: none.
	Scenarios [][]Fault
	// Mix draws faults by probability. Zero: none.
	Mix Mix
	// Seed is the seed of Mix: equal seeds give each send of each key the same
	// fault. Zero is a valid seed.
	Seed uint64

	// Verify checks the signature of each request, with the body that was read; package sign makes such functions. An
	// error is answered 401 with its text, without an effect and without a claim on the key. It is called when a request
	// is handled: not for a request that a fault answers before that, and twice for a request that a fault delivers
	// twice. It is not called for the control paths. It must be safe for concurrent use, and its errors must hold no
	// secret. Nil: signatures are not checked.
	Verify func(req *http.Request, body []byte) error
	// Caller returns the caller of a request: each caller has keys of its own. Set it for APIs with a signature in the
	// Authorization header, which differs on each attempt, as WeChat Pay's. It must be safe for concurrent use. Nil: the
	// whole Authorization header.
	Caller func(req *http.Request) string

	// TokenLife is the time from handing out a token to its first use at the latest, if the profile has tokens (see
	// profile.Token). Zero: 5 min. The server binds a token to its caller, and to the path in the query parameter
	// purpose of the request for it. A token has one effect at most, even after its key is forgotten. Any other use is
	// answered 403.
	TokenLife time.Duration
	// TokenScript is the fault of each request for a token, in the order of arrival: none, drop-before, drop-after (the
	// token is handed out, and the answer lost) or answer. Requests for tokens are no sends, and meet no other fault.
	TokenScript []Fault
	// UndoScript is the fault of each request to undo by key, with the kinds of TokenScript, if the profile has a Cancel.
	UndoScript []Fault

	// Window is the time for which a key is known after its first request. Zero:
	// the profile's floor, or 24 h without one.
	Window time.Duration
	// RequireKey answers 400 to a request without a key, if the profile honours
	// keys on it. Otherwise such a request is executed, and two of them are two
	// operations.
	RequireKey bool
	// RetryAfter is the wait in the "in progress" answer, rounded up to whole
	// seconds. Zero: 1 s. Negative: the header is left out.
	RetryAfter time.Duration
	// MaxRequestBytes bounds the request bodies; a longer one is answered 413
	// and has no effect. Zero: 16 MiB.
	MaxRequestBytes int64

	// Webhooks sends events about effects, as the API does. Nil: no events.
	Webhooks *Webhooks

	// OperationPointer is a JSON pointer (RFC 6901) to the identifier of the
	// operation in a request body. With it a change of keys within an operation
	// is noticed. Empty: the key identifies the operation. GET /_effects counts
	// by it, too (empty: /reference).
	OperationPointer string
	// Referee supplies the scenarios, in place of Scenarios, and is told of each
	// send and its end: see package referee. Nil: no referee.
	Referee Referee
	// Access is called once for each request, when the server is done with it,
	// also for the control paths such as /_ledger. A second or late delivery by a
	// fault adds no call. It must be safe for concurrent use, and must not call
	// the server. Nil: no log.
	Access func(Access)
	// Bug names the server's bug, an entry of the catalogue in package bugs.
	// Empty: none.
	Bug string
}

// The defaults of Config's zero values.
const (
	requestBytesMax = 16 << 20
	retryAfterDelay = time.Second
	tokenLife       = 5 * time.Minute
)

// Validate returns the first mistake of the configuration as one line, or nil: New accepts it then.
func (c Config) Validate() error {
	if err := validateScripts(c.scripts()); err != nil {
		return err
	}
	if err := c.Mix.Validate(); err != nil {
		return err
	}
	if err := c.validateTokens(); err != nil {
		return err
	}
	switch {
	case c.Window < 0:
		return fmt.Errorf("mockserver: negative window %v", c.Window)
	case c.MaxRequestBytes < 0:
		return fmt.Errorf("mockserver: negative MaxRequestBytes %d", c.MaxRequestBytes)
	case c.OperationPointer != "" && !strings.HasPrefix(c.OperationPointer, "/"):
		return fmt.Errorf("mockserver: %q is not a JSON pointer, which starts with a slash", c.OperationPointer)
	}
	if p := c.Profile; p != nil && p.Carrier.Name == "" && keylayer.NewReferences(p) == nil {
		return fmt.Errorf("mockserver: profile %q names no carrier, and no reference that is taken once", p.Name)
	}
	if c.Webhooks != nil {
		if err := c.Webhooks.validate(c.Profile); err != nil {
			return err
		}
	}
	if c.Referee != nil {
		scenarios, _, err := c.Referee.Scenarios()
		if err == nil {
			err = validateScripts(scenarios)
		}
		if err != nil {
			return err
		}
	}
	if c.Bug == "" {
		return nil
	}
	_, err := bugs.Find(c.Bug)
	return err
}

// validateScripts returns the error of the first fault that is not valid; nil if
// all are.
func validateScripts(scripts [][]Fault) error {
	for _, script := range scripts {
		for i, fault := range script {
			if err := fault.Validate(); err != nil {
				return fmt.Errorf("%w (entry %d of its script)", err, i+1)
			}
		}
	}
	return nil
}

// scripts returns all scripts of faults for requests, to be checked. Those of a Referee are not among them; they are checked apart.
func (c Config) scripts() [][]Fault {
	all := append([][]Fault{c.Script}, c.Scenarios...)
	for _, script := range c.ByKey {
		all = append(all, script)
	}
	return all
}

// withDefaults returns the configuration with its zero values filled in, a profile of its own, and the scenarios of its Referee. The window is the
// least that the API promises (Floor), or a day. It must be valid (Validate).
func (c Config) withDefaults() Config {
	if c.Profile == nil {
		c.Profile = profile.Draft07()
	}
	c.Profile = c.Profile.Clone()
	if c.Window == 0 {
		c.Window = c.Profile.Window.Floor
	}
	if c.Window == 0 {
		c.Window = 24 * time.Hour
	}
	if c.TokenLife == 0 {
		c.TokenLife = tokenLife
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = retryAfterDelay
	}
	if c.MaxRequestBytes == 0 {
		c.MaxRequestBytes = requestBytesMax
	}
	if c.Referee != nil {
		scenarios, pointer, _ := c.Referee.Scenarios() // Validate has asked for its error
		c.Scenarios = scenarios
		if pointer != "" {
			c.OperationPointer = pointer
		}
	}
	return c
}
