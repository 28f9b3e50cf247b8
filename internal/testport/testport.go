// Package testport hands out TCP ports for the server programs that tests start, and finds the servers that tests share.
package testport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports that Take hands out. They lie below those that systems give by themselves, so that one stays free while its server is down.
const (
	first = 10_000
	count = 10_000
)

// Take returns a TCP port of 127.0.0.1, which no other test gets before this one ends, in this process or another. A UDP socket of the
// same number says that it is taken.
func Take(t testing.TB) (port string) {
	t.Helper()
	for range count {
		port = strconv.Itoa(first + rand.IntN(count))
		if taken, ok := reserve(net.JoinHostPort("127.0.0.1", port)); ok {
			t.Cleanup(func() { _ = taken.Close() })
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// reserve returns the socket that says that an address is taken, unless it was, or somebody listens there.
func reserve(address string) (taken net.PacketConn, ok bool) {
	taken, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, false
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		_ = taken.Close()
		return nil, false
	}
	_ = listener.Close()
	return taken, true
}
