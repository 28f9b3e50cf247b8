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

// Config says how a server behaves. The zero value is a correct server of the
// Draft07 profile that breaks nothing. New copies it; do not change what its
// slices and maps hold afterwards.
type Config struct {
	// Profile is how the API spells idempotency. Nil: profile.Draft07(). One that
	// names a business reference (Duplicate and Reference) makes the package's own
	// service take each reference once and answer the lookup for it.
	Profile *profile.Profile
	// Handler supplies the effect. Nil: the service of the package comment. It
	// gets a request whose context does not end when the client leaves, only
	// when the server is closed. Each run that answers 2xx or 3xx counts as
	// one effect.
	Handler http.Handler

	// Script is the fault of each send, in the order of arrival, one entry
	// per send; None is a send that goes well. When it is used up, Mix draws.
	Script []Fault
	// ByKey is a script for single keys: the n-th send with that key meets the
	// n-th fault. It goes before all others.
	ByKey map[string][]Fault
	// Scenarios are scripts for operations, in the order in which operations
	// first appear, and from the start again when there are more of them. An
	// operation is what OperationPointer finds, else its key. They go before
	// Script and Mix. Empty: none.
	Scenarios [][]Fault
	// Mix is faults by probability. Zero: none.
	Mix Mix
	// Seed decides what Mix draws. Equal seeds give each send of each key the
	// same fault. Zero is a seed like any other.
	Seed uint64

	// Verify checks the signature of each request, whose body was read already; package sign makes such functions. An
	// error is answered 401 with its text, without an effect and without a claim on the key. It is asked when a request
	// is handled: not of one that a fault answers before that, and a second time of one that a fault delivers again. The
	// paths that begin with an underscore are not asked about. It must be safe for concurrent use, and its errors must
	// hold no secret. Nil: signatures are not looked at.
	Verify func(req *http.Request, body []byte) error
	// Caller names whose keys a request uses. Set it where a signature is in the Authorization header and so differs on
	// each attempt, as WeChat Pay's. It must be safe for concurrent use. Nil: the Authorization header as a whole.
	Caller func(req *http.Request) string

	// TokenLife is how long a token that was handed out may wait for its first use, where the profile has tokens (see
	// profile.Token). Zero: 5 min. The server binds a token to its caller, and to the path that the query parameter
	// purpose of the request for it names; it has one effect at most, also where the key is forgotten. Any other use is
	// answered 403.
	TokenLife time.Duration
	// TokenScript is the fault of each request for a token, in the order of arrival: none, drop-before, drop-after (the
	// token is handed out, and its answer lost) or answer. Requests for tokens are no sends, and meet no other fault.
	TokenScript []Fault
	// UndoScript is the fault of each request to undo by key, likewise, where the profile has a Cancel.
	UndoScript []Fault

	// Window is how long a key is known after its first request. Zero: the
	// profile's floor.
	Window time.Duration
	// RequireKey answers 400 to a request without a key, where the profile's
	// methods need one. Otherwise such a request is executed, and two of them
	// are two operations.
	RequireKey bool
	// RetryAfter is what the "in progress" answer tells the client to wait, in
	// whole seconds, rounded up. Zero: 1 s. Negative: the header is left out.
	RetryAfter time.Duration
	// MaxRequestBytes bounds the request bodies; a longer one is answered 413
	// and has no effect. Zero: 16 MiB.
	MaxRequestBytes int64

	// Webhooks sends events about effects, as the API does. Nil: none are sent.
	Webhooks *Webhooks

	// OperationPointer is a JSON pointer (RFC 6901) to what identifies an
	// operation in a request body, so that a client that changes its key is
	// caught. Empty: a key is taken for the operation. The count of
	// GET /_effects goes by it too (empty: /reference).
	OperationPointer string
	// Referee plays a hard server to the client and is told what the client
	// does: see package referee. Its scenarios take the place of Scenarios.
	// Nil: no referee.
	Referee Referee
	// Access is told of each request once the server is done with it, those to the
	// control paths such as /_ledger included; what a fault delivers a second time
	// or late is told once. It may be called by several requests at a time, and
	// must not call the server back. Nil: nobody is told.
	Access func(Access)
	// Bug names an entry of the catalogue in package bugs, which the server
	// then has. Empty: none.
	Bug string
}

// The defaults of Config's zero values.
const (
	requestBytesMax = 16 << 20
	retryAfterDelay = time.Second
	tokenLife       = 5 * time.Minute
)

// Validate says what is wrong with the configuration, in one line, or nil.
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

func (c Config) scripts() [][]Fault {
	all := append([][]Fault{c.Script}, c.Scenarios...)
	for _, script := range c.ByKey {
		all = append(all, script)
	}
	return all
}

// withDefaults is the configuration with its zero values filled in.
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
