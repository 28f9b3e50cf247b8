package request

import (
	"bytes"
	"cmp"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
)

// writesBytesMax bounds the body read by Writes. The GetBody of a copy for functions of the user has a bound of its own.
const writesBytesMax = 10 << 20

// Writes implements oncehttp.Writes: it reports whether a request is a POST or PATCH that needs a key. Queries of GraphQL, requests for OAuth tokens, and those for
// streams of events alone need none. In doubt, as when the body cannot be read again, it returns true.
func Writes(req *http.Request) bool {
	if req == nil {
		return false
	}
	switch method := Method(req); {
	case !strings.EqualFold(method, http.MethodPost) && !strings.EqualFold(method, http.MethodPatch):
		return false
	case onlyEvents(req.Header.Values("Accept")):
		return false
	}
	kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	form := kind == formType
	if !form && !IsJSON(kind) || req.GetBody == nil {
		return true
	}
	body, err := bodyUpTo(req, writesBytesMax)
	if err != nil {
		return true
	}
	if !form && req.URL != nil && IsQuery(req.URL.Path, body) {
		return false
	}
	return !asksForToken(req.Header, form, body)
}

// onlyEvents reports whether the values of Accept name text/event-stream and nothing else.
func onlyEvents(accept []string) bool {
	named := false
	for _, value := range accept {
		for part := range strings.SplitSeq(value, ",") {
			kind, _, err := mime.ParseMediaType(part)
			if err != nil || kind != "text/event-stream" {
				return false
			}
			named = true
		}
	}
	return named
}

// asksForToken reports whether a body has exactly one grant_type, and it is one of OAuth. form: the body is a form, else JSON.
func asksForToken(h http.Header, form bool, body []byte) bool {
	if !bytes.Contains(body, []byte("grant_type")) {
		return false
	}
	var types []string
	if form {
		types = FieldsOf(h, body).Form()["grant_type"]
	} else {
		types = jsonpointer.Texts(body, "/grant_type")
	}
	return len(types) == 1 && (strings.HasPrefix(types[0], "urn:ietf:") ||
		slices.Contains([]string{"authorization_code", "client_credentials", "password", "refresh_token"}, types[0]))
}

// bodyUpTo reads a body of at most limit bytes through GetBody. Errors: those of the body, io.ErrUnexpectedEOF if there is
// none, and io.ErrShortBuffer for a longer one.
func bodyUpTo(req *http.Request, limit int64) ([]byte, error) {
	r, err := req.GetBody()
	if err != nil || r == nil {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	defer r.Close()
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = io.ErrShortBuffer
	}
	return body, err
}
