package plainhttp_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// start starts the server, which ends with the conversation. A raw one gets each connection.
func (s server) start(c *talk) (url string, config *tls.Config) {
	if s.raw == nil {
		srv := s.httptestServer(c)
		c.Cleanup(srv.CloseClientConnections) // of a conversation that did not end
		c.later(srv.Close)
		if srv.Certificate() == nil {
			return srv.URL, nil
		}
		roots := x509.NewCertPool()
		roots.AddCert(srv.Certificate())
		return srv.URL, &tls.Config{RootCAs: roots}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.Fatal(err)
	}
	scheme := "http://"
	if s.tls || s.http2 {
		listener, config = overTLS(listener, s.http2)
		scheme = "https://"
	}
	var busy sync.WaitGroup
	busy.Go(func() {
		for n := 1; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.later(func() { _ = conn.Close() })
			busy.Go(func() {
				defer conn.Close()
				s.raw(c, &wire{Conn: conn, in: bufio.NewReader(conn), number: n})
			})
		}
	})
	c.Cleanup(func() { _ = listener.Close() })
	c.later(busy.Wait)
	c.later(func() { _ = listener.Close() })
	return scheme + listener.Addr().String(), config
}

// overTLS returns a TLS listener with the certificate of httptest, and what a client needs for it.
func overTLS(under net.Listener, http2 bool) (net.Listener, *tls.Config) {
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS() // makes the certificate
	defer srv.Close()
	config := &tls.Config{Certificates: srv.TLS.Certificates}
	if http2 {
		config.NextProtos = []string{"h2"}
	}
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return tls.NewListener(under, config), &tls.Config{RootCAs: roots}
}

// wire is a connection of a raw server.
type wire struct {
	net.Conn
	in     *bufio.Reader
	number int    // from 1
	method string // of the latest request
}

// request reads a request with its body, and notes it.
func (w *wire) request(c *talk) bool {
	req, err := http.ReadRequest(w.in)
	if err != nil {
		return false
	}
	c.got(req)
	w.method = req.Method
	return true
}

// head reads the head of a request, and notes it. Its body is not read.
func (w *wire) head(c *talk) *http.Request {
	req, err := http.ReadRequest(w.in)
	if err != nil {
		return nil
	}
	c.serve("%s %s, expect %q", req.Method, req.URL, req.Header.Get("Expect"))
	return req
}

// say writes a head, which an empty line ends.
func (w *wire) say(lines ...string) {
	_, _ = io.WriteString(w, strings.Join(lines, "\r\n")+"\r\n\r\n")
}

// answer writes a 200 with a text; without it to a HEAD, whose connection could not be used again.
func (w *wire) answer(text string) {
	w.say("HTTP/1.1 200 OK", fmt.Sprintf("Content-Length: %d", len(text)))
	if w.method != http.MethodHead {
		_, _ = io.WriteString(w, text)
	}
}

// drop ends the connection with a reset.
func (w *wire) drop() {
	if tcp, ok := w.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = w.Close()
}

// The types of HTTP/2's frames, and some errors.
const (
	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4
	framePing     = 0x6
	frameGoAway   = 0x7

	endStream  = 0x1
	endHeaders = 0x4

	refusedStream = 0x7
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// frame is one of HTTP/2.
type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// begin reads the preface and sends settings.
func (w *wire) begin() bool {
	got := make([]byte, len(preface))
	if _, err := io.ReadFull(w.in, got); err != nil || string(got) != preface {
		return false
	}
	w.send(frame{kind: frameSettings})
	return true
}

// next reads a frame; ok is false at the end. It answers settings and pings itself.
func (w *wire) next() (f frame, ok bool) {
	for {
		var head [9]byte
		if _, err := io.ReadFull(w.in, head[:]); err != nil {
			return f, false
		}
		f = frame{head[3], head[4], binary.BigEndian.Uint32(head[5:]) & 0x7fffffff, make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))}
		if _, err := io.ReadFull(w.in, f.payload); err != nil {
			return f, false
		}
		switch {
		case f.kind == frameSettings && f.flags == 0:
			w.send(frame{kind: frameSettings, flags: 1})
		case f.kind == framePing && f.flags == 0:
			w.send(frame{framePing, 1, 0, f.payload})
		case f.kind == frameData || f.kind == frameHeaders:
			return f, true
		}
	}
}

// stream reads the frames of one request, and returns its stream.
func (w *wire) stream(c *talk) (id uint32, ok bool) {
	size := 0
	for {
		f, ok := w.next()
		if !ok {
			return 0, false
		}
		if f.kind == frameData {
			size += len(f.payload)
		}
		if f.flags&endStream != 0 {
			c.serve("connection %d, stream %d, body of %d", w.number, f.stream, size)
			return f.stream, true
		}
	}
}

func (w *wire) send(f frame) {
	n := len(f.payload)
	out := append([]byte{byte(n >> 16), byte(n >> 8), byte(n), f.kind, f.flags}, binary.BigEndian.AppendUint32(nil, f.stream)...)
	_, _ = w.Write(append(out, f.payload...))
}

// goAway says that streams after last were not processed.
func (w *wire) goAway(last uint32) {
	w.send(frame{kind: frameGoAway, payload: binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), 0)})
}

// ok answers a stream with 200 and no body.
func (w *wire) ok(id uint32) {
	const status200 = 0x88 // of the static table, RFC 7541
	w.send(frame{frameHeaders, endHeaders | endStream, id, []byte{status200}})
}
