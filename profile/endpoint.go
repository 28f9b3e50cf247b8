package profile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Endpoint is an operation of an API: a method, and the path below the API's host. In files it is a text, such as
// "POST /v2/payments/{id}/refunds", with "!" in front if Keyless is set. The host is no part of it: a sandbox, a mock and a
// proxy have others.
type Endpoint struct {
	// Method is in upper case.
	Method string
	// Path begins with a slash, and has no query. A segment {name} stands for any one segment that is not empty. It includes
	// the API's version, if the API's own paths do.
	Path string
	// Keyless: the API ignores keys here, although the path of another endpoint covers it.
	Keyless bool
}

// String returns the endpoint in the spelling of files, such as "POST /payments/{id}". "!" in front means that keys are ignored there (Keyless).
func (e Endpoint) String() string {
	if e.Keyless {
		return "!" + e.Method + " " + e.Path
	}
	return e.Method + " " + e.Path
}

// MarshalText returns the text of String; the error is always nil.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText is ParseEndpoint. An error leaves e as it was.
func (e *Endpoint) UnmarshalText(text []byte) error {
	read, err := ParseEndpoint(string(text))
	if err == nil {
		*e = read
	}
	return err
}

// ParseEndpoint reads an endpoint in the spelling of files: a method and a path, such as "POST /payments/{id}", with "!" in front if keys are ignored
// there. The error is one line and quotes the text.
func ParseEndpoint(text string) (Endpoint, error) {
	plain, keyless := strings.CutPrefix(text, "!")
	method, path, _ := strings.Cut(plain, " ")
	if strings.Contains(method, "!") { // so that checkMethodList refuses it
		method = ""
	}
	if err := checkMethodList([]string{method}); err != nil {
		return Endpoint{}, fmt.Errorf("%q: %w", text, err)
	}
	if err := checkPath(path); err != nil {
		return Endpoint{}, fmt.Errorf("%q: %w", text, err)
	}
	return Endpoint{Method: method, Path: path, Keyless: keyless}, nil
}

// checkPath checks the path of an endpoint: a segment is a plain text, or {name} for any text.
func checkPath(path string) error {
	segments := strings.Split(path, "/")
	if segments[0] != "" || len(segments) < 2 {
		return errors.New("want a method and a path, such as POST /payments/{id}")
	}
	for _, s := range segments[1:] {
		name, opened := strings.CutPrefix(s, "{")
		name, closed := strings.CutSuffix(name, "}")
		switch {
		case opened && closed && name != "" && !strings.ContainsAny(name, "{}"):
		case s == "." || s == "..":
			return errors.New("want a path with neither \".\" nor \"..\" as a segment")
		case strings.ContainsAny(s, "{}"):
			return fmt.Errorf("the segment %q: want {name} as a whole segment, or a text without braces", s)
		case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '?' || r == '#' || r == '%' }):
			return fmt.Errorf("the segment %q: want visible ASCII characters, and neither a query nor %%", s)
		}
	}
	return nil
}

// checkEndpoints refuses invalid endpoints, one that is listed twice or has a method outside Methods, and a list without any
// endpoint with keys.
func checkEndpoints(p *Profile) error {
	for i, e := range p.Endpoints {
		if _, err := ParseEndpoint(e.String()); err != nil {
			return err
		}
		same := func(other Endpoint) bool { return other.Method == e.Method && other.Path == e.Path }
		switch {
		case slices.ContainsFunc(p.Endpoints[:i], same):
			return fmt.Errorf("%s %s is there twice", e.Method, e.Path)
		case len(p.Methods) > 0 && !slices.Contains(p.Methods, e.Method):
			return fmt.Errorf("%v: methods do not list %s", e, e.Method)
		}
	}
	if len(p.Endpoints) > 0 && !slices.ContainsFunc(p.Endpoints, func(e Endpoint) bool { return !e.Keyless }) {
		return errors.New("want one at which keys count")
	}
	return nil
}
