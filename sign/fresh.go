package sign

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/eventsign"
)

// The errors of a verifier; errors.Is finds one of them. Their texts contain no signature, secret or body.
var (
	// ErrSignature is the error of a signature that is missing, malformed, by another key, or for another request; also of one
	// that could not be checked, since HMACFunc gave no secret.
	ErrSignature = eventsign.ErrSignature
	// ErrTime is the error of a signature that is too old, too far in the future, or expired.
	ErrTime = eventsign.ErrTime
	// ErrReplayed is the error of a nonce that was accepted before, in a replayed request; also of a new nonce beyond
	// Freshness.MaxNonces, since it could not be recognised later.
	ErrReplayed = errors.New("sign: the signature was used before")
)

// Verify checks the signature of an incoming request; body is its whole body, already read. nil: it is good, and its nonce is
// used up, so that the same request is refused the next time. It is safe for concurrent use. Its errors match
// [ErrSignature], [ErrTime] or [ErrReplayed]; answer each with 401.
type Verify = func(req *http.Request, body []byte) error

// Freshness bounds the age of signatures. The zero value is five minutes, as at most APIs.
type Freshness struct {
	_ struct{}
	// MaxAge is the greatest difference between a signature's timestamp and the verifier's clock, in either direction. A
	// nonce is remembered at least while its signature would be accepted. Zero: 5 min; negative: an error.
	MaxAge time.Duration
	// MaxNonces bounds the number of nonces remembered at once; while there are so many, every signature is refused.
	// Zero: 1,000,000; negative: an error.
	MaxNonces int
}

const (
	defaultMaxAge    = 5 * time.Minute
	defaultMaxNonces = 1_000_000
	nonceBytesMax    = 256
)

// nonces keeps the accepted nonces in two generations. Each lasts twice MaxAge, the longest time for which a signature can
// be accepted (from MaxAge ahead of the clock to MaxAge behind it). So the older one can be dropped as a whole. It is safe
// for concurrent use.
type nonces struct {
	maxAge time.Duration
	max    int

	mu           sync.Mutex
	began        time.Time // of the younger generation; zero: there is none yet
	young, older map[string]struct{}
}

// newNonces returns an empty store of used nonces, by which a request that is played again is recognised. Zero fields of f get the defaults. Negative values are
// errors. The store drops a nonce only when its request is too old anyway.
func newNonces(f Freshness) (*nonces, error) {
	if f.MaxAge < 0 || f.MaxNonces < 0 {
		return nil, fmt.Errorf("sign: a MaxAge of %v or a MaxNonces of %d is negative", f.MaxAge, f.MaxNonces)
	}
	n := &nonces{maxAge: f.MaxAge, max: f.MaxNonces, young: map[string]struct{}{}}
	if n.maxAge == 0 {
		n.maxAge = defaultMaxAge
	}
	if n.max == 0 {
		n.max = defaultMaxNonces
	}
	return n, nil
}

// accept checks a timestamp by the clock (ErrTime), and uses up a nonce of 1 to nonceBytesMax bytes; ErrReplayed means that it was used before, or that no more can
// be remembered. Call it after all other checks: a refused request must not use up its nonce. One lock covers both steps, so that no nonce is forgotten between
// them.
func (n *nonces) accept(nonce string, at time.Time) error {
	if nonce == "" || len(nonce) > nonceBytesMax {
		return fmt.Errorf("%w: its nonce is empty or longer than %d bytes", ErrSignature, nonceBytesMax)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.age()
	_, young := n.young[nonce]
	_, older := n.older[nonce]
	switch age := time.Since(at); {
	case age > n.maxAge:
		return fmt.Errorf("%w: it is older than %v", ErrTime, n.maxAge)
	case age < -n.maxAge:
		return fmt.Errorf("%w: it is more than %v ahead of this clock", ErrTime, n.maxAge)
	case young || older:
		return fmt.Errorf("%w: its nonce was there before", ErrReplayed)
	case len(n.young)+len(n.older) >= n.max:
		return fmt.Errorf("%w: %d nonces are remembered, and no more can be", ErrReplayed, n.max)
	}
	n.young[nonce] = struct{}{}
	return nil
}

// age drops nonces of signatures that are too old to be accepted again. They are kept in two generations, and the older one goes as a whole. A generation
// lasts 2*maxAge, since a timestamp may be ahead by maxAge and behind by as much. At first began is zero, and both are emptied. The caller holds the lock.
func (n *nonces) age() {
	lifetime := 2 * n.maxAge
	switch passed := time.Since(n.began); {
	case passed <= lifetime:
	case passed <= 2*lifetime:
		n.began, n.older, n.young = time.Now(), n.young, map[string]struct{}{}
	default:
		n.began, n.older, n.young = time.Now(), nil, map[string]struct{}{}
	}
}
