package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
)

// ParseTarget checks the URL of an operation. Its errors repeat nothing of it,
// because a password or a token may stand in it.
func ParseTarget(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	var ue *url.Error
	switch {
	case errors.As(err, &ue):
		return nil, fmt.Errorf("want a URL such as https://api.example.com/charges: %w", ue.Err)
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the URL must start with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the URL names no host")
	case u.Fragment != "":
		return nil, errors.New("the URL has a #fragment, which is never sent")
	}
	return u, nil
}

// CheckMethod returns an error for a text that is no HTTP method, for one in lower case, for CONNECT, and for a likely slip such as POTS.
func CheckMethod(method string) error {
	switch {
	case !words.IsToken(method):
		return fmt.Errorf("%q is not an HTTP method", words.Clip(method))
	case method != strings.ToUpper(method):
		return fmt.Errorf("method %q: methods are case-sensitive; %s is meant?", method, strings.ToUpper(method))
	case method == http.MethodConnect:
		return errors.New("CONNECT cannot be journaled")
	}
	if meant := request.Misspelled(method); meant != "" {
		return fmt.Errorf("%q is not an HTTP method; %s is meant?", method, meant)
	}
	return nil
}

// NewRequest returns the request of one operation. The end of ctx does not end it: a user's interrupt never cuts an attempt on the wire. It is marked as one owner's,
// since all requests of the command belong to its --account: so a token renewed between two runs makes no other account of it.
func NewRequest(ctx context.Context, method string, target *url.URL, header http.Header, body []byte) *http.Request {
	req := (&http.Request{
		Method: method, URL: target, Host: target.Host, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(request.ContextWithOneOwner(context.WithoutCancel(ctx)))
	if len(body) == 0 {
		req.Body = http.NoBody
	}
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	return req
}
