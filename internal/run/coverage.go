package run

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file holds the choice of operations among the requests, and of the endpoints honouring keys: Config.Methods,
// Config.KeyHonoured and Config.BasePath. It also holds the warnings about operations not known to be at such an endpoint.

// fillMethods checks Methods, and sets their default, POST and PATCH. A safe or misspelled method is an error. It also notes whether each request with one of the
// methods is an operation through Transport, too (methodsHold): Methods was set, or RequireKey without Operation.
func fillMethods(c *Config) error {
	c.methodsSet = c.Methods != nil
	c.methodsHold = c.methodsSet || c.RequireKey && c.Operation == nil
	if c.Methods == nil {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	c.Methods = slices.Clone(c.Methods)
	for _, m := range c.Methods {
		if err := request.CheckMethod(m); err != nil {
			return fmt.Errorf("in Methods: %w", err)
		}
		if request.Safe(m) {
			return fmt.Errorf("a method in Methods, %s, is never journaled", m)
		}
		if meant := request.Misspelled(m); meant != "" {
			return fmt.Errorf("in Methods: %q is no method; want %s", m, meant)
		}
	}
	return nil
}

// fillHonoured checks KeyHonoured, the endpoints at which the API's keys count, and BasePath. It keeps KeyHonoured in c in the form for comparisons.
func fillHonoured(c *Config) error {
	if b := c.BasePath; b != "" && (b[0] != '/' || strings.HasSuffix(b, "/") || strings.ContainsAny(b, "?#{} ")) {
		return fmt.Errorf("the BasePath %q: want a path that begins with a slash and does not end with one, such as /gateway", b)
	}
	honoured, err := honouredAt(c)
	c.honoured, c.KeyHonoured = honoured, slices.Clone(c.KeyHonoured)
	return err
}

// honouredAt returns the endpoints spelled by KeyHonoured.
func honouredAt(c *Config) ([]profile.Endpoint, error) {
	list := make([]profile.Endpoint, len(c.KeyHonoured))
	for i, text := range c.KeyHonoured {
		e, err := profile.ParseEndpoint(text)
		meant := request.Misspelled(e.Method)
		switch {
		case err != nil:
			return nil, fmt.Errorf("in KeyHonoured: %w", err)
		case e.Keyless:
			return nil, fmt.Errorf("in KeyHonoured: %q: want an operation at which keys count", text)
		case meant != "":
			return nil, fmt.Errorf("in KeyHonoured: %q: no method; want %s", text, meant)
		}
		list[i] = e
	}
	return list, nil
}

// toldCoverage remembers the operations reported to the logger as not protected by a key.
type toldCoverage struct {
	unheard sync.Once // of the one warning about requests of which nobody says that keys count
	key     sync.Once // of the one warning about an unusual key
	mu      sync.Mutex
	at      map[string]bool // methods and normal paths
}

// toldMax bounds the operations reported to the logger.
const toldMax = 100

// isNew reports whether the logger has not heard of this operation (a method and an endpoint) yet. last is true if it hears of no further one, so
// that the log stays bounded.
func (t *toldCoverage) isNew(operation string) (isNew, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at[operation] || len(t.at) >= toldMax {
		return false, false
	}
	if t.at == nil {
		t.at = map[string]bool{}
	}
	t.at[operation] = true
	return true, len(t.at) == toldMax
}

// tellCoverage warns of a key that may not protect the request in s: its API may not take such a key, nobody says that keys count on its method, or the profile
// lists only other endpoints. The first two are told once for a client, the last once for each endpoint; the last not where the API has no keys at all.
func (n *notices) tellCoverage(ctx context.Context, s *request.Snapshot) {
	rec := &s.Record
	if !rec.Generated && s.Profile.Named() && profile.UnusualKey(s.Profile, rec.Key) {
		n.told.key.Do(func() { n.tellKey(ctx, rec) })
	}
	switch {
	case s.Coverage == request.Unheard:
		n.told.unheard.Do(func() { n.tellUnheard(ctx, rec) })
	case s.Coverage == request.Uncovered && s.Profile.Carrier.Place != profile.Nowhere:
		operation := rec.Method + " " + request.NormalPath(rec.Target)
		isNew, last := n.told.isNew(operation)
		if !isNew {
			return
		}
		more := ""
		if last {
			more = "; further operations are not named"
		}
		cause := fmt.Errorf("profile %q does not list %s among the operations that honour keys: it is sent once, and held where its outcome is not known; if its API honours keys there, say so in KeyHonoured%s", rec.Profile, operation, more)
		if n.cfg.Logger != nil {
			n.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "oncehttp: no key protects this operation (said once)",
				slog.String("key", rec.Key), slog.String("operation", operation), slog.String("error", cause.Error()))
		}
	}
}

// tellKey warns that the API may not accept a key: the profile does not say which keys it accepts.
func (n *notices) tellKey(ctx context.Context, rec *persist.Record) {
	cause := fmt.Errorf("profile %q does not say which keys its API takes, and this one has %d bytes, or other characters than letters, digits and -_.:=%%~; if the API refuses it, or cuts it, make a short one (Key.Short)", rec.Profile, len(rec.Key))
	n.cfg.log(ctx, slog.LevelWarn, "a key that the API may not take (said once)", rec.Key, cause)
}

// tellUnheard warns that the API may ignore keys on the method of an operation: the profile does not list the method.
func (n *notices) tellUnheard(ctx context.Context, rec *persist.Record) {
	cause := fmt.Errorf("profile %q does not say that keys count on %s; if the API ignores them there, a second send takes effect twice: name a profile that lists its methods", rec.Profile, rec.Method)
	n.cfg.log(ctx, slog.LevelWarn, "a method on which keys may not count (said once)", rec.Key, cause)
}
