package sign

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// DefaultKeyHeader is the default header of the idempotency key.
const DefaultKeyHeader = "Idempotency-Key"

// bodyOf returns the body of an outgoing request, nil if it has none. It reads a copy from GetBody, so that Body can still be sent; a body without GetBody is
// an error.
func bodyOf(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	if req.GetBody == nil {
		return nil, errors.New("the body can be read only once, since the request has no GetBody: make it from a []byte or a string")
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("the body cannot be read: %w", err)
	}
	if body == nil {
		return nil, errors.New("the body cannot be read: GetBody gives nothing")
	}
	text, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, fmt.Errorf("the body cannot be read: %w", err)
	}
	return text, nil
}

// newNonce returns 128 random bits as 32 hexadecimal digits.
func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // by its documentation it never fails
	return hex.EncodeToString(b[:])
}

// keyOf returns the idempotency key in the request's header; "" if there is none. An empty or repeated header is an error, and
// so is a POST or PATCH without it: a wrong name of the header must not leave the key outside the signature.
func keyOf(req *http.Request, header string) (string, error) {
	lines := req.Header.Values(header)
	switch {
	case len(lines) == 1 && strings.Trim(lines[0], " \t") != "":
		return strings.Trim(lines[0], " \t"), nil // as net/http sends it
	case len(lines) > 0:
		return "", fmt.Errorf("the header %s is there %d times or empty; one key has to be signed", header, len(lines))
	case req.Method == http.MethodPost || req.Method == http.MethodPatch:
		return "", fmt.Errorf("a %s without the header %s, whose key has to be signed; name the header that carries the key in KeyHeader", req.Method, header)
	}
	return "", nil
}

// authority returns the host of a request in lower case, without the scheme's default port (RFC 9421 section 2.2.3).
func authority(req *http.Request) string {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	host = strings.ToLower(host)
	if scheme(req) == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// scheme returns the scheme of the request's URL, or without one (in an incoming request) that of the connection.
func scheme(req *http.Request) string {
	switch {
	case req.URL.Scheme != "":
		return strings.ToLower(req.URL.Scheme)
	case req.TLS != nil:
		return "https"
	}
	return "http"
}

// path returns the escaped path of a request as it is sent; "/" if it is empty.
func path(req *http.Request) string {
	if p := req.URL.EscapedPath(); p != "" {
		return p
	}
	return "/"
}

// target returns the path of a request with its query, as they are sent.
func target(req *http.Request) string {
	if req.URL.RawQuery == "" && !req.URL.ForceQuery {
		return path(req)
	}
	return path(req) + "?" + req.URL.RawQuery
}

// usableName reports whether a name is valid for a header: a token of RFC 9110.
func usableName(name string) bool {
	if name == "" {
		return false
	}
	for _, c := range []byte(name) {
		if !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
