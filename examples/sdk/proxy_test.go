package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// proxy forwards TCP connections to a server on loopback and keeps what clients
// sent. It cuts the first connections: the request goes through, the server
// answers, and the answer is lost.
type proxy struct {
	url      string
	upstream string

	mu    sync.Mutex
	cuts  int             // connections that are still to be cut
	sent  []*bytes.Buffer // what the client sent, by connection
	conns []net.Conn
	busy  sync.WaitGroup
}

func newProxy(t *testing.T, upstream string, cuts int) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "http://" + listener.Addr().String(), upstream: strings.TrimPrefix(upstream, "http://"), cuts: cuts}
	p.busy.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.busy.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, conn := range p.conns {
			_ = conn.Close()
		}
		p.mu.Unlock()
		p.busy.Wait()
	})
	return p
}

// serve carries one connection.
func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	record := &bytes.Buffer{}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.sent = append(p.sent, record)
	cut := p.cuts > 0
	p.cuts--
	p.mu.Unlock()

	p.busy.Go(func() { _, _ = io.Copy(io.MultiWriter(&locked{&p.mu, record}, server), client) })
	if cut {
		_, _ = server.Read(make([]byte, 1)) // until the server has done its work
		return
	}
	_, _ = io.Copy(client, server)
}

// received is what came in so far, by connection.
func (p *proxy) received() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, b := range p.sent {
		all = append(all, b.String())
	}
	return all
}

// locked is a writer that others read meanwhile.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// parse reads the one request that a connection carried, and its body.
func parse(t *testing.T, raw string) (*http.Request, string) {
	t.Helper()
	rest := bufio.NewReader(strings.NewReader(raw))
	req, err := http.ReadRequest(rest)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	if more, _ := io.ReadAll(rest); len(more) > 0 {
		t.Fatalf("%d bytes follow the request", len(more))
	}
	return req, string(body)
}
