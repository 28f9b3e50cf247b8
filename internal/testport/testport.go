// Package testport hands out TCP ports for server programs started by tests, and finds the servers shared by tests.
package testport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports handed out by Take. They lie below the ports given by systems by themselves: so a port stays free while its server is down.
const (
	first = 10_000
	count = 10_000
)

// Take returns a TCP port of 127.0.0.1. No other test gets it before this one ends, in this process or another. A UDP socket of the same number marks the port
// as taken while TCP stays free for the test.
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

// reserve returns a socket to mark an address as taken. ok is false if the address is taken already, or if somebody listens there by TCP.
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
