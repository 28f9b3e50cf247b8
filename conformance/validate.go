package conformance

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// Validate returns the first mistake in the options as a *UsageError, in one line that matches
// ErrUsage; nil if there is none. It sends nothing. Run calls it first.
func (o Options) Validate() error {
	o = o.withDefaults()
	for _, check := range []func() error{o.checkTarget, o.checkTemplates, o.checkCarrier, o.checkKeys, o.checkNumbers, o.checkExplore} {
		if err := check(); err != nil {
			return err
		}
	}
	_, err := o.selected()
	return err
}

// checkTarget checks URL and Witness. In a Witness {ref} stands for the reference; a JSON pointer to the count in its answer may follow behind #.
func (o *Options) checkTarget() error {
	if o.URL == "" {
		return usage("URL", "there is none")
	}
	if err := o.checkURL("URL", o.URL); err != nil {
		return err
	}
	if o.Witness != "" {
		if !strings.Contains(o.Witness, "{ref}") {
			return usage("Witness", "%q has no {ref}", o.Witness)
		}
		address, pointer, _ := strings.Cut(o.Witness, "#")
		if pointer != "" && !strings.HasPrefix(pointer, "/") {
			return usage("Witness", "%q behind # is not a JSON pointer, which starts with a slash", pointer)
		}
		return o.checkURL("Witness", strings.ReplaceAll(address, "{ref}", "ref"))
	}
	return nil
}

// checkURL checks the URL of an option. It refuses every host but loopback and
// Options.AllowHosts: a run against a real API spends money.
func (o *Options) checkURL(option, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return usage(option, "%q is not a URL", text)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return usage(option, "%q is not an http or https URL with a host", text)
	case u.User != nil:
		return usage(option, "credentials belong into Header, not into the URL")
	}
	host := u.Hostname()
	if !isLoopback(host) && !slices.Contains(o.AllowHosts, host) {
		return usage(option, "host %q is not loopback, and not allowed by AllowHosts", host)
	}
	return nil
}

// isLoopback reports whether a host name without port is localhost or a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkTemplates checks templates, paths, pointers and header fields.
func (o *Options) checkTemplates() error {
	for _, t := range []struct{ option, text, word string }{
		{"Body", o.Body, "{ref}"},
		{"DelayQuery", o.DelayQuery, "{ms}"},
		{"FailQuery", o.FailQuery, "{status}"},
		{"ActionPath", o.ActionPath, "{id}"},
	} {
		if t.text != "" && !strings.Contains(t.text, t.word) {
			return usage(t.option, "%q has no %s", t.text, t.word)
		}
	}
	for _, p := range []struct{ option, text string }{
		{"SecondPath", o.SecondPath}, {"ActionPath", o.ActionPath}, {"TokenPath", o.TokenPath}, {"IDPointer", o.IDPointer}, {"TokenPointer", o.TokenPointer},
	} {
		if p.text != "" && !strings.HasPrefix(p.text, "/") {
			return usage(p.option, "%q does not start with a slash", p.text)
		}
	}
	if strings.Contains(o.ContentType, "json") && !json.Valid([]byte(render(o.Body, "ref", "key"))) {
		return usage("Body", "the template is not JSON once it is filled in, though ContentType says so")
	}
	for name, values := range o.Header {
		if !plainField(name, values) {
			return usage("Header", "%q is not a header field, or its value has a line break", name)
		}
	}
	for name, values := range o.As {
		if !plainField(name, values) {
			return usage("As", "%q is not a header field, or its value has a line break", name)
		}
	}
	return nil
}

// plainField reports whether a header field can be written without harm to the lines around it: its name is no part of another line, and no value has
// a line break.
func plainField(name string, values []string) bool {
	bad := name == "" || strings.ContainsAny(name, " \t\r\n:")
	return !bad && !slices.ContainsFunc(values, func(v string) bool { return strings.ContainsAny(v, "\r\n") })
}

// checkCarrier checks that the profile has a place for the key, and the body template a {key}
// if it is the body.
func (o *Options) checkCarrier() error {
	carrier := o.Profile.Carrier
	switch {
	case carrier.Name == "":
		return usage("Profile", "profile %q names no carrier of the key", o.Profile.Name)
	case (carrier.Place == profile.Body || carrier.Place == profile.Form) && !strings.Contains(o.Body, "{key}"):
		return usage("Body", "profile %q carries the key in the body, and the template has no {key}", o.Profile.Name)
	}
	return nil
}

// checkKeys checks the options for the format and the place of keys.
func (o *Options) checkKeys() error {
	switch {
	case o.KeyFormat != "" && o.KeyFormat != KeyUUIDv4 && o.KeyFormat != KeyUUIDv7:
		return usage("KeyFormat", "%q is neither %s nor %s", o.KeyFormat, KeyUUIDv4, KeyUUIDv7)
	case strings.ContainsFunc(o.KeyPrefix, func(c rune) bool { return c <= ' ' || c > '~' }):
		return usage("KeyPrefix", "%q is not of printable ASCII without blanks", o.KeyPrefix)
	case o.KeyHeader != "" && o.KeyField != "":
		return usage("KeyField", "KeyHeader is set as well, and a key travels in one place")
	case o.KeyQuoted && !o.inHeader():
		return usage("KeyQuoted", "the key travels in the body, where it is not quoted")
	}
	return o.checkToken()
}

// checkToken checks the options for keys from the server.
func (o *Options) checkToken() error {
	switch {
	case o.TokenMethod != "" && o.TokenMethod != http.MethodGet && o.TokenMethod != http.MethodPost:
		return usage("TokenMethod", "%q is neither GET nor POST", o.TokenMethod)
	case o.TokenPath == "" && (o.TokenMethod != "" || o.TokenPointer != ""):
		return usage("TokenPath", "there is none, and TokenMethod or TokenPointer is set")
	}
	return nil
}

// checkNumbers returns an error that names the first option with a negative number.
func (o *Options) checkNumbers() error {
	for _, n := range []struct {
		option string
		value  int64
	}{
		{"Rounds", int64(o.Rounds)}, {"Histories", int64(o.Histories)}, {"For", int64(o.For)}, {"MaxFindings", int64(o.MaxFindings)}, {"Timeout", int64(o.Timeout)}, {"AnswerTimeout", int64(o.AnswerTimeout)},
		{"MaxRequests", int64(o.MaxRequests)}, {"MaxEffects", int64(o.MaxEffects)}, {"Parallel", int64(o.Parallel)}, {"Hold", int64(o.Hold)},
		{"Settle", int64(o.Settle)}, {"EffectWait", int64(o.EffectWait)}, {"Repeat", int64(o.Repeat)}, {"Window", int64(o.Window)},
	} {
		if n.value < 0 {
			return usage(n.option, "it is negative")
		}
	}
	return nil
}

// checkExplore checks the options of a search and of volume. Off loopback, where effects may
// be real, both need a bound.
func (o *Options) checkExplore() error {
	u, err := url.Parse(o.URL)
	switch {
	case !o.Explore && o.For > 0:
		return usage("For", "it bounds a search, and there is none (Explore)")
	case o.Explore && o.Volume:
		return usage("Volume", "it goes without Explore")
	case !o.Explore && !o.Volume:
		return nil
	case err != nil:
		return usage("URL", "%q is not a URL", o.URL)
	case !isLoopback(u.Hostname()) && o.MaxEffects == 0:
		return usage("MaxEffects", "there is none, and elsewhere than on loopback it is needed (Explore, Volume)")
	case o.Quick:
		return usage("Quick", "it chooses among cases, and Explore and Volume play none of them")
	case o.Volume && PlanVolume(*o).Effects < volumeEffectsLeast:
		return usage("Volume", "it needs a bound of %d effects and three times as many requests at least (MaxEffects, MaxRequests)", volumeEffectsLeast)
	}
	return nil
}

// render fills a template in with a reference and a key. ref and key must not contain {ref} or {key}.
func render(template, ref, key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(template, "{ref}", ref), "{key}", key) // neither holds the other's mark
}
