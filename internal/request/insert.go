package request

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/profile"
)

// If Keys.Insert is set, a key named by the call is put into the body, form or query of a request without a key there.

// insert puts a key into a request that has none, at the place that the profile names: the query, a form or a JSON body. It returns the request and
// its body with the key.
func insert(req *http.Request, p *profile.Profile, body []byte, key string) (*http.Request, []byte, error) {
	if p.Carrier.Place == profile.Query {
		same := req.WithContext(req.Context())
		u := *req.URL
		u.RawQuery, same.URL = joinedPairs(u.RawQuery, p.Carrier.Name, key), &u
		return same, body, nil
	}
	if err := mayAlter(req.Header, p.Carrier.Place); err != nil {
		return nil, nil, err
	}
	if p.Carrier.Place == profile.Form {
		return req, []byte(joinedPairs(string(body), p.Carrier.Name, key)), nil
	}
	with, err := jsonpointer.Insert(body, p.Carrier.Name, key)
	return req, with, err
}

// joinedPairs adds a pair to a query or a form.
func joinedPairs(pairs, name, value string) string {
	pair := url.QueryEscape(name) + "=" + url.QueryEscape(value)
	if pairs == "" {
		return pair
	}
	return pairs + "&" + pair
}

// mayAlter refuses a body if it is not clearly of the type in which the profile's keys travel, a form or JSON, or if a header holds a digest of it.
func mayAlter(h http.Header, at profile.Place) error {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch {
	case at == profile.Form && kind != formType:
		return errors.New("the Content-Type is not that of a form")
	case at == profile.Body && kind != "" && !IsJSON(kind):
		return errors.New("the Content-Type is not that of JSON")
	}
	if coding := strings.Join(lines(h, "Content-Encoding"), ","); coding != "" && !strings.EqualFold(coding, "identity") {
		return errors.New("the body has a Content-Encoding")
	}
	for _, name := range []string{"Content-Digest", "Repr-Digest", "Digest", "Content-MD5", "X-Amz-Content-Sha256"} {
		if len(lines(h, name)) > 0 {
			return fmt.Errorf("the header %s is of the body without it; make it in Authorize", name)
		}
	}
	return nil
}

// Rereadable returns a request with body, the bytes read from it before. Its GetBody gives them, too.
func Rereadable(req *http.Request, body []byte) *http.Request {
	same := WithBody(req, body)
	same.GetBody = func() (io.ReadCloser, error) { return bytesBody(body), nil }
	return same
}
