package run

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/profile"
)

// Checks of a Config. Each refuses a value without an effect, or with another effect than it
// says. The error has the field's name and the fix.

const (
	attemptTimeoutMin = time.Millisecond // no answer comes sooner
	workersMax        = 10_000
)

// checkConfig returns the first mistake of a Config. Its defaults must be filled in.
func checkConfig(c *Config) error {
	for _, check := range []func(*Config) error{
		checkTransport, checkInstrument, checkNewKey, checkSecrets, checkDropAnswer, checkWindows, checkResults, checkUnused,
	} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

// checkBounds checks numbers with a least or a greatest value of their own.
func checkBounds(c *Config) error {
	r := &c.Retry
	switch {
	case c.Lease < leaseMin:
		return fmt.Errorf("a Lease of %v is below %v", c.Lease, leaseMin)
	case max(c.MaxRequestBytes, c.MaxRequestHeaderBytes, c.MaxResponseBytes, c.MaxResponseHeaderBytes) > keptBytesMax:
		return fmt.Errorf("a MaxRequestBytes of %d, a MaxRequestHeaderBytes of %d, a MaxResponseBytes of %d or a MaxResponseHeaderBytes of %d is over %d",
			c.MaxRequestBytes, c.MaxRequestHeaderBytes, c.MaxResponseBytes, c.MaxResponseHeaderBytes, keptBytesMax)
	case c.KeepRequest >= requestKeepings:
		return errors.New("KeepRequest is none of KeepRequestAsNeeded, DropRequestAfterSuccess, KeepRequestWithAnswer and DropRequestAfterEnd")
	case c.ResumeWorkers > workersMax:
		return fmt.Errorf("ResumeWorkers is %d; want at most %d", c.ResumeWorkers, workersMax)
	case c.ResultWorkers > workersMax:
		return fmt.Errorf("ResultWorkers is %d; want at most %d", c.ResultWorkers, workersMax)
	case r.MaxPause < r.MaxDelay:
		return fmt.Errorf("a Retry.MaxPause of %v is below the Retry.MaxDelay of %v", r.MaxPause, r.MaxDelay)
	case r.MaxDelay < r.MinDelay:
		return fmt.Errorf("a Retry.MaxDelay of %v is below the Retry.MinDelay of %v", r.MaxDelay, r.MinDelay)
	case r.AttemptTimeout > r.AnswerTimeout:
		return fmt.Errorf("a Retry.AttemptTimeout of %v is over the Retry.AnswerTimeout of %v, which bounds the whole attempt: raise that, or lower the first",
			r.AttemptTimeout, r.AnswerTimeout)
	}
	return nil
}

// checkUnits refuses a time, as it was given, if it is a number without its unit, such as 30 in place of 30*time.Second. A time below a microsecond is taken
// for such a number. One nanosecond, the least time, stands for none at all.
func checkUnits(c *Config) error {
	for _, part := range []struct {
		prefix string
		fields reflect.Value
	}{{"", reflect.ValueOf(c).Elem()}, {"Retry.", reflect.ValueOf(&c.Retry).Elem()}} {
		for i := range part.fields.NumField() {
			// By its type, so that a new field is checked, too.
			field := part.fields.Type().Field(i)
			if field.Type != reflect.TypeFor[time.Duration]() {
				continue
			}
			if d := time.Duration(part.fields.Field(i).Int()); 1 < d && d < time.Microsecond {
				return fmt.Errorf("%s%s is %v; a time needs its unit, such as %d*time.Second", part.prefix, field.Name, d, d)
			}
		}
	}
	for name, d := range map[string]time.Duration{"AttemptTimeout": c.Retry.AttemptTimeout, "AnswerTimeout": c.Retry.AnswerTimeout} {
		if 0 < d && d < attemptTimeoutMin {
			return fmt.Errorf("the time %v is too short for Retry.%s; want at least %v", d, name, attemptTimeoutMin)
		}
	}
	return nil
}

// checkTransport refuses a transport if it would send by itself more often than it is asked to, or not at all.
func checkTransport(c *Config) error {
	switch c.Transport.(type) {
	case interface{ BeginsOperations() }: // RoundTripper, and types embedding it
		return errors.New("the Transport is that of another Client, which would begin an operation for each send; want one that only sends")
	case *retryablehttp.RoundTripper:
		return errors.New("the Transport retries by itself; want one that sends once, since each send has to be known")
	}
	if isNil(c.Transport) {
		return fmt.Errorf("the Transport is a nil %T; leave it out for the default, or make one", c.Transport)
	}
	return nil
}

// checkInstrument returns an error if Config.Instrument holds a nil pointer. No Instrument is no error.
func checkInstrument(c *Config) error {
	if c.Instrument == nil {
		return nil
	}
	// package oncehttp puts the value of the user into one of its own, which is never nil.
	if of := c.Instrument.Of(); isNil(of) {
		return fmt.Errorf("the Instrument is a nil %T; leave it out, or make one", of)
	}
	return nil
}

// isNil reports whether an interface holds a nil pointer, map, function, slice or channel: a call of its methods may panic.
func isNil(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Slice, reflect.Chan:
		return r.IsNil()
	}
	return false
}

// checkNewKey checks a NewKey of KeyFromJSON. It refuses any NewKey beside RequireKey, since it is never asked then.
func checkNewKey(c *Config) error {
	switch {
	case c.randomKeys:
		return nil
	case c.RequireKey:
		return errors.New("NewKey is never asked where RequireKey is set: leave one out")
	case !c.ReadsKey:
		return nil
	}
	// KeyFromJSON takes nil for the question whether its pointers are in order.
	if _, err := c.NewKey(nil); err != nil {
		return fmt.Errorf("in NewKey: %w", err)
	}
	return nil
}

// checkSecrets checks the names of credentials. It does not repeat a name if this may be a credential itself.
func checkSecrets(c *Config) error {
	for i, name := range c.SecretHeaders {
		if err := request.CheckSecretHeader(name); err != nil {
			return fmt.Errorf("SecretHeaders[%d]: %w", i, err)
		}
		// The key would be left out of the record as a credential, and no process could send it again.
		if p := c.profiles().carrying(profile.Header, func(carrier string) bool { return strings.EqualFold(carrier, name) }); p != nil {
			return fmt.Errorf("SecretHeaders[%d]: %s carries the key of profile %q, which is no credential; leave it out", i, name, p.Name)
		}
	}
	for i, name := range c.SecretParameters {
		if err := request.CheckSecretParameter(name); err != nil {
			return fmt.Errorf("SecretParameters[%d]: %w", i, err)
		}
		if p := c.profiles().carrying(profile.Query, func(carrier string) bool { return carrier == name }); p != nil {
			return fmt.Errorf("SecretParameters[%d]: %s carries the key of profile %q, which is no credential; leave it out", i, name, p.Name)
		}
	}
	return nil
}

// checkWindows compares times with the window of each profile. A key forgotten by the journal within the window could be sent as a
// new one. A clock possibly off by more than the window cannot judge it.
func checkWindows(c *Config) error {
	_, profiles := c.profiles().all()
	for _, p := range profiles {
		window := p.Window.Floor
		switch {
		case c.KeepKey > 0 && c.KeepKey < window:
			return fmt.Errorf("a KeepKey of %v is under the window of profile %q, %v: a key would be new again while the server knows it; want at least that, or leave it out to remember keys for ever",
				c.KeepKey, p.Name, window)
		case c.KeepKey < 0 && c.KeepAnswer != 0 && c.KeepAnswer < window:
			return fmt.Errorf("KeepKey is negative, so that keys go with their answers, after a KeepAnswer of %v, which is under the window of profile %q, %v: leave one of them out",
				max(c.KeepAnswer, 0), p.Name, window)
		case c.KeepText > 0 && c.KeepText < window:
			return fmt.Errorf("a KeepText of %v is under the window of profile %q, %v: a repeat could not be compared while the server knows the key; want at least that, or leave it out to keep texts as long as keys",
				c.KeepText, p.Name, window)
		// The default may be over a short window: operation.Client.Skew then takes a part of it.
		case c.ClockSkew > window && c.ClockSkew != defaultClockSkew:
			return fmt.Errorf("a ClockSkew of %v is over the window of profile %q, %v: set the clock by a time server, and want a minute or so", c.ClockSkew, p.Name, window)
		}
	}
	return nil
}

// checkUnused refuses a setting if no profile of the client lets it use the setting. ProfileOf may know such a profile.
func checkUnused(c *Config) error {
	if c.ProfileOf != nil {
		return nil
	}
	_, profiles := c.profiles().all()
	if c.Token != nil && !slices.ContainsFunc(profiles, func(p *profile.Profile) bool { return p.Token != nil && p.Token.Path == "" }) {
		return errors.New("nothing asks Config.Token: no profile has a Profile.Token without a Path; set that, or leave Config.Token out")
	}
	if c.Retry.AskFirst && !slices.ContainsFunc(profiles, func(p *profile.Profile) bool { return p.Reference != nil && len(p.Duplicate) > 0 }) {
		return errors.New("nothing to ask for Retry.AskFirst: no profile has both a Reference and a Duplicate; add them, or leave AskFirst out")
	}
	return nil
}
