package beneath_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// The types of frames, the flags and the error codes used here (RFC 9113 sections 6 and 7).
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway = 0, 1, 3, 4, 6, 7

	flagEnd, flagEndHeaders, flagAck = 1, 4, 1

	codeNone, codeProtocol, codeInternal, codeRefused, codeCancel = 0, 1, 2, 7, 8
)

// stream is a request of HTTP/2 that has arrived whole.
type stream struct {
	conn net.Conn
	id   uint32
}

// frame writes a frame of a stream.
func (s stream) frame(kind, flags byte, id uint32, payload ...byte) {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(b[5:], id)
	_, _ = s.conn.Write(append(b, payload...))
}

// head writes an answer's status; last: it has no body.
func (s stream) head(status string, last bool) {
	flags := byte(flagEndHeaders)
	if last {
		flags |= flagEnd
	}
	s.frame(frameHeaders, flags, s.id, append([]byte{0x08, byte(len(status))}, status...)...) // :status, as a literal (RFC 7541 section 6.2.2)
}

func (s stream) reset(code uint32) {
	s.frame(frameReset, 0, s.id, binary.BigEndian.AppendUint32(nil, code)...)
}

// goAway says that the last stream processed was this one.
func (s stream) goAway(last uint32) {
	s.frame(frameGoAway, 0, 0, append(binary.BigEndian.AppendUint32(nil, last), 0, 0, 0, 0)...)
}

// serveH2 serves HTTP/2 frame by frame: act answers the n-th request, from 1. It returns the server's URL, a transport for it, and the number of requests
// that have arrived whole.
func serveH2(t *testing.T, act func(n int, s stream)) (url string, transport *http.Transport, arrived *atomic.Int32) {
	t.Helper()
	certs := httptest.NewTLSServer(nil)
	t.Cleanup(certs.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certs.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	arrived = new(atomic.Int32)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go readH2(conn, func(s stream) { act(int(arrived.Add(1)), s) })
		}
	}()
	transport = certs.Client().Transport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2, transport.TLSClientConfig.NextProtos = true, nil
	t.Cleanup(transport.CloseIdleConnections)
	return "https://" + l.Addr().String(), transport, arrived
}

// readH2 reads the frames of a connection until it ends.
func readH2(conn net.Conn, act func(stream)) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	if _, err := io.ReadFull(r, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	stream{conn, 0}.frame(frameSettings, 0, 0)
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(r, head); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(r, payload); err != nil {
			return
		}
		s := stream{conn, binary.BigEndian.Uint32(head[5:])}
		switch kind, flags := head[3], head[4]; {
		case kind == frameSettings && flags&flagAck == 0:
			s.frame(frameSettings, flagAck, 0)
		case kind == framePing && flags&flagAck == 0:
			s.frame(framePing, flagAck, 0, payload...)
		case (kind == frameHeaders || kind == frameData) && flags&flagEnd != 0:
			act(s)
		}
	}
}

// sendH2 makes one attempt at a request, and returns its error.
func sendH2(t *testing.T, transport http.RoundTripper, url string, p *profile.Profile, body io.Reader) error {
	t.Helper()
	c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: transport, Profile: p, Retry: oncehttp.Policy{MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/charges/ch_1/capture", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.DoKey(req, "k")
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// TestOneSendOverHTTP2: one attempt over HTTP/2 is one send, whatever ends its stream, also without a body, which net/http sends again by itself, and at an
// API without keys. No effect is claimed of it.
func TestOneSendOverHTTP2(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s stream){
		"protocol error":        func(s stream) { s.reset(codeProtocol) },
		"refused stream":        func(s stream) { s.reset(codeRefused) },
		"no error":              func(s stream) { s.reset(codeNone) },
		"goaway":                func(s stream) { s.goAway(0) },
		"goaway and reset":      func(s stream) { s.goAway(s.id); s.reset(codeCancel) },
		"1xx, then reset":       func(s stream) { s.head("103", false); s.reset(codeProtocol) },
		"200, then reset":       func(s stream) { s.head("200", false); s.reset(codeInternal) },
		"429, then reset":       func(s stream) { s.head("429", false); s.reset(codeProtocol) },
		"many 1xx":              func(s stream) { sendMany(s, "103"); s.reset(codeProtocol) },
		"the connection closes": func(s stream) { _ = s.conn.Close() },
	} {
		for _, p := range []*profile.Profile{nil, profile.None()} {
			for _, body := range []string{"", "{}"} {
				url, transport, arrived := serveH2(t, func(_ int, s stream) { end(s) })
				var r io.Reader
				if body != "" {
					r = strings.NewReader(body)
				}
				err := sendH2(t, transport, url, p, r)
				if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) || arrived.Load() != 1 {
					t.Errorf("%s, body %q, profile %v: %d requests arrived; %v, want 1 and ErrOutcomeUnknown", name, body, p, arrived.Load(), err)
				}
			}
		}
	}
}

// sendMany sends more informational answers than any server would.
func sendMany(s stream, status string) {
	for range 200 {
		s.head(status, false)
	}
}

// TestSendAgainOfATransport: where a transport sends again beneath us without an answer to its first send, the answer to the second one refuses that one alone.
func TestSendAgainOfATransport(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"401", "403", "421", "425", "429"} {
		effects := 0
		url, transport, _ := serveH2(t, func(n int, s stream) {
			if n == 1 {
				effects++
				s.reset(codeProtocol)
				return
			}
			s.head(status, true)
		})
		if err := sendH2(t, deaf{transport}, url, nil, nil); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) || effects != 1 {
			t.Errorf("%s: %v after %d effects, want ErrOutcomeUnknown after 1", status, err, effects)
		}
	}
}

// deaf is a transport that sends on under a context that nobody ends.
type deaf struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (d deaf) RoundTrip(req *http.Request) (*http.Response, error) {
	return d.RoundTripper.RoundTrip(req.WithContext(context.WithoutCancel(req.Context()))) // the trace stays
}

// TestDigestOverHTTP2: a transport that sends again after an answer, such as one for digest authentication, is let alone.
func TestDigestOverHTTP2(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"201", "429"} {
		url, transport, arrived := serveH2(t, func(n int, s stream) {
			if n == 1 {
				s.head("401", true)
				return
			}
			s.head(status, true)
		})
		err := sendH2(t, challenged{transport}, url, nil, nil)
		if want := status != "201"; arrived.Load() != 2 || errors.Is(err, oncehttp.ErrNoEffect) != want {
			t.Errorf("%s: %d requests arrived; %v, want 2, and ErrNoEffect %t", status, arrived.Load(), err, want)
		}
	}
}

// challenged is a transport that sends once more after a 401.
type challenged struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (c challenged) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	_ = resp.Body.Close()
	return c.RoundTripper.RoundTrip(req)
}

// TestSendAgainElsewhere: a transport with another address than the request leaves the same doubt.
func TestSendAgainElsewhere(t *testing.T) {
	t.Parallel()
	url, transport, arrived := serveH2(t, func(n int, s stream) {
		if n == 1 {
			s.reset(codeProtocol)
			return
		}
		s.head("429", true)
	})
	err := sendH2(t, rewrites{transport, strings.TrimPrefix(url, "https://")}, "https://api.example.com", nil, nil)
	if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) {
		t.Errorf("%d requests arrived: %v, want ErrOutcomeUnknown", arrived.Load(), err)
	}
}

// rewrites is a transport that sends to another host.
type rewrites struct {
	http.RoundTripper
	host string
}

// RoundTrip implements [http.RoundTripper].
func (r rewrites) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = r.host
	return r.RoundTripper.RoundTrip(req)
}
