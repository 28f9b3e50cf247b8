package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	goredis "github.com/redis/go-redis/v9"
)

// greeting is a connection. It notes the first write of anything but the client's greeting. Until then its errors are
// those of a connection never made, since nothing of a call can have reached the server.
type greeting struct {
	net.Conn
	over bool // guarded by the connection's current user
}

// errGreeting: the connection failed before anything was sent on it but a greeting.
var errGreeting = errors.New("no connection")

// greets returns the commands with which the client begins a connection. They change nothing.
func greets() []string { return []string{"hello", "auth", "select", "readonly", "config"} }

// Write sends whole commands of the client to the server. It notes (g.over) once they are more than the greeting (the first commands, such as AUTH): from then
// on a call may have reached the server.
func (g *greeting) Write(b []byte) (int, error) {
	g.over = g.over || !isGreeting(b)
	n, err := g.Conn.Write(b)
	return n, g.failed(err)
}

// Read reads from the connection. During the greeting its error is one of that (see failed).
func (g *greeting) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	return n, g.failed(err)
}

// failed returns an error of the connection. During the greeting, the client's first commands on a new connection, it matches errGreeting: no command
// of the journal was sent yet.
func (g *greeting) failed(err error) error {
	if err == nil || g.over {
		return err
	}
	return fmt.Errorf("%w: %w", errGreeting, err) // with two causes, since the client unwraps an error with a single one
}

// isGreeting reports whether the first command in these bytes of the Redis protocol is one that the client sends to greet a server. It looks at the first
// alone, as the client writes its greeting apart from later calls.
func isGreeting(commands []byte) bool {
	// A command is the number of its words, then each word behind its length: line 2 has the first word.
	lines := bytes.SplitN(commands, []byte("\r\n"), 4)
	if len(lines) < 4 {
		return false
	}
	for _, command := range greets() {
		if bytes.EqualFold(lines[2], []byte(command)) {
			return true
		}
	}
	return false
}

// dialer returns a function that makes connections by the dialer of the options, or by the usual one. Each knows whether the
// client has sent more than its greeting (the first commands, such as AUTH): an error before that proves that no call has reached
// the server.
func dialer(o *goredis.Options) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := o.Dialer
	if dial == nil {
		dial = goredis.NewDialer(o)
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		g := &greeting{Conn: conn}
		if sys, ok := conn.(syscall.Conn); ok { // not of TLS: the client uses it to see if an idle connection has ended
			return struct {
				*greeting
				syscall.Conn
			}{g, sys}, nil
		}
		return g, nil
	}
}
