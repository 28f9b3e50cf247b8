package request

import (
	"net/url"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// Origin is scheme, host and port of u, normalised so that a changed base URL shows and another spelling of the
// same one does not. The port is always there.
func Origin(u *url.URL) string {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), Port(u)
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host + ":" + port
}

// Port is u's port, or that of its scheme.
func Port(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return defaultPort(u.Scheme)
}

func defaultPort(scheme string) string {
	if strings.EqualFold(scheme, "https") {
		return "443"
	}
	return "80"
}

// URL is where a record is sent to. What it omits of the query is not there. It is an error if the record's target
// is no URL.
func URL(rec *persist.Record) (*url.URL, error) {
	u, err := url.Parse(rec.Origin + rec.Target)
	if err != nil {
		return nil, err
	}
	return SentTo(u), nil
}

// SentTo is a copy of u as it is sent to: without userinfo and fragment, in one spelling, and without a default
// port, as the Host header shows it to the server.
func SentTo(u *url.URL) *url.URL {
	t := *u
	t.User, t.Fragment, t.RawFragment = nil, "", ""
	t.Scheme, t.Host = strings.ToLower(t.Scheme), strings.ToLower(t.Host)
	if port := t.Port(); port == defaultPort(t.Scheme) || port == "" {
		t.Host = strings.TrimSuffix(strings.TrimSuffix(t.Host, port), ":")
	}
	return &t
}

// Path is a target without its query.
func Path(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}
