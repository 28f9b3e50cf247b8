package sign

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/eventsign"
)

// What a verifier refuses; its errors match one of these. Their texts name what is wrong, and hold no signature, secret
// or body.
var (
	// ErrSignature is a signature that is missing, malformed, made by another key, or made over another request; also one that
	// could not be checked, since the secret of HMACFunc could not be had.
	ErrSignature = eventsign.ErrSignature
	// ErrTime is a signature that is too old, too far in the future, or past its own end.
	ErrTime = eventsign.ErrTime
	// ErrReplayed is a nonce that was accepted before: a request that is played again; also a new nonce for which there is no
	// room, so that it could not be recognised later.
	ErrReplayed = errors.New("sign: the signature was used before")
)

// Verify checks the signature of a request that has arrived, whose body was read already: nil if it is good. It is safe
// for concurrent use, and refuses a nonce that it has accepted before, so that a good request is good once. Its errors
// match [ErrSignature], [ErrTime] or [ErrReplayed]; answer each with 401.
type Verify = func(req *http.Request, body []byte) error

// Freshness is how long a signature may be used. The zero value is five minutes, as most APIs have it.
type Freshness struct {
	_ struct{}
	// MaxAge is how far a signature's timestamp may lie behind the verifier's clock, and ahead of it. A nonce is
	// remembered for as long as its signature is accepted, at least. Zero: 5 min.
	MaxAge time.Duration
	// MaxNonces bounds how many nonces are remembered at once; while there are so many, every signature is refused.
	// Zero: 1,000,000.
	MaxNonces int
}

const (
	defaultMaxAge    = 5 * time.Minute
	defaultMaxNonces = 1_000_000
	nonceBytesMax    = 256
)

// nonces remembers what was accepted, in two generations. Each lasts as long as a signature can be accepted at most:
// twice MaxAge, for one whose time is MaxAge ahead. So the older one can be dropped as a whole.
type nonces struct {
	maxAge time.Duration
	max    int

	mu           sync.Mutex
	began        time.Time // the younger generation
	young, older map[string]struct{}
}

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

// accept holds a timestamp to the clock, and accepts a nonce once. Call it last: a nonce of a request that is refused must
// not be used up. Both are done under one lock, so that no nonce is forgotten between them.
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

// age drops what no accepted signature can have any more. The lock is held.
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
