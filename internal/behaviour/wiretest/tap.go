package wiretest

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Tap is a TCP server without a library between the test and the wire. It keeps the head of each request, and answers by
// script: an empty answer hangs up; after the script every request is answered with OK200.
type Tap struct {
	Addr    string // where it listens
	mu      sync.Mutex
	answers []string
	heads   []string
	bodies  []string
	Conns   int // accepted so far
}

// serve answers the requests of one connection, and keeps each as it came on the wire. The n-th request of the test gets the n-th answer, or OK200. An empty answer,
// and one that begins with ThenHangUp, ends the connection.
func (p *Tap) serve(conn net.Conn) {
	defer conn.Close()
	p.mu.Lock()
	p.Conns++
	p.mu.Unlock()
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(conn, &raw))
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		head, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
		raw.Reset()
		p.mu.Lock()
		p.heads, p.bodies = append(p.heads, head), append(p.bodies, string(body))
		answer := OK200
		if n := len(p.heads); n <= len(p.answers) {
			answer = p.answers[n-1]
		}
		p.mu.Unlock()
		answer, last := strings.CutPrefix(answer, ThenHangUp)
		if _, err := io.WriteString(conn, answer); answer == "" || last || err != nil {
			return
		}
	}
}

// Then adds answers to the script.
func (p *Tap) Then(answers ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = append(p.answers, answers...)
}

// Seen returns the heads and the bodies of the requests so far.
func (p *Tap) Seen() (heads, bodies []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.heads...), append([]string(nil), p.bodies...)
}

// NewTap returns a server that answers its first requests with answers, one each, and all later ones with OK200. An empty answer ends the connection.
// The end of the test ends the server.
func NewTap(t *testing.T, answers ...string) *Tap {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Tap{Addr: ln.Addr().String(), answers: answers}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() { ln.Close(); serving.Wait() })
	return p
}

// OK200 is an answer of two bytes.
const OK200 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// ThenHangUp, in front of an answer, makes it the last one on its connection.
const ThenHangUp = "\x00"

// Silent returns a logger that drops all lines, for a server of which the errors are expected.
func Silent() *log.Logger { return log.New(io.Discard, "", 0) }
