package request

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// Origin returns scheme, host and port of u, normalised: a changed base URL shows, and another spelling of the same URL does
// not. The port is always there.
func Origin(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + hostOf(u) + ":" + portOf(u)
}

// portOf returns u's port, or the default port of its scheme.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return defaultPort(u.Scheme)
}

// defaultPort returns the port of a URL without one (RFC 9110 sections 4.2.1 and 4.2.2).
func defaultPort(scheme string) string {
	if strings.EqualFold(scheme, "https") {
		return "443"
	}
	return "80"
}

// Hosts returns the spellings of u's host: first with u's port or the default one, then without. The first spelling with a
// profile decides. An IPv6 address is in brackets. An absolute name, with a final dot, has that of the same name without.
func Hosts(u *url.URL) []string {
	host := strings.TrimSuffix(hostOf(u), ".")
	return []string{host + ":" + portOf(u), host}
}

// WithoutDot returns a host of IsHost, with or without a port, as Hosts spells it: without the final dot of an absolute name.
func WithoutDot(host string) string {
	name, port, found := strings.Cut(host, ".:")
	if found {
		return name + ":" + port
	}
	return strings.TrimSuffix(host, ".")
}

// hostOf returns the host of u in lower case and without its port. An IPv6 address has brackets.
func hostOf(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// IsHost reports whether the text is a host as Hosts spells the host of a URL: in lower case, with or without a port. A final dot is allowed. A
// configuration with any other text would match no request.
func IsHost(host string) bool {
	u, err := url.Parse("//" + host)
	return err == nil && u.Host == host && u.Hostname() != "" && plainHost(u) && slices.Contains(Hosts(u), WithoutDot(host)) &&
		u.Path == "" && u.RawQuery == "" && !u.ForceQuery && u.User == nil && !strings.Contains(host, "#") &&
		plainName(u.Hostname()) && plainPort(u.Port())
}

// plainName reports whether name can be the name of a host. It must have no character of a pattern or a list, and no empty label; only the last label
// may be empty (a final dot). name must not be empty.
func plainName(name string) bool {
	odd := func(r rune) bool { return strings.ContainsRune("*!$&'()+,;=~{}|^`", r) }
	return !strings.ContainsFunc(name, odd) && name[0] != '.' && !strings.Contains(name, "..")
}

// plainPort reports whether port is a number from 1 to 65535 or empty.
func plainPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// URL returns the URL for a send of a record, without the omitted parts of the query. It is an error if the record's target is
// no URL, or leads to another origin than the recorded one.
func URL(rec *persist.Record) (*url.URL, error) {
	u, err := url.Parse(rec.Origin + rec.Target)
	if err != nil {
		return nil, err
	}
	t := sentTo(u)
	if Origin(&t) != rec.Origin {
		return nil, errors.New("its target leads to another origin")
	}
	return &t, nil
}

// sentTo returns a copy of u for a send: without userinfo and fragment, and in one spelling. It has no default port, as the
// Host header shows it to the server.
func sentTo(u *url.URL) url.URL {
	t := *u
	t.User, t.Fragment, t.RawFragment = nil, "", ""
	t.Scheme, t.Host = strings.ToLower(t.Scheme), strings.ToLower(t.Host)
	if port := t.Port(); port == defaultPort(t.Scheme) || port == "" {
		t.Host = strings.TrimSuffix(strings.TrimSuffix(t.Host, port), ":")
	}
	return t
}

// Path returns a target without its query.
func Path(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}
