package testport

import (
	"net"
	"testing"
)

// TestTake: a port is free for a server, also once that is down, and nobody gets it twice.
func TestTake(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 200 {
		port := Take(t)
		if seen[port] {
			t.Fatalf("port %s twice", port)
		}
		seen[port] = true
		for range 2 {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Close()
		}
		if again, ok := reserve(net.JoinHostPort("127.0.0.1", port)); ok {
			_ = again.Close()
			t.Fatalf("port %s is reserved twice", port)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if taken, ok := reserve(listener.Addr().String()); ok {
		_ = taken.Close()
		t.Error("a port is reserved on which somebody listens")
	}
}
