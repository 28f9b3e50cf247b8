package mockserver_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// loopback runs the test against a server on a port of 127.0.0.1.
func loopback(t *testing.T, cfg mockserver.Config) (*mockserver.Server, *client) {
	t.Helper()
	server := mockserver.New(cfg)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return server, newClient(t, transport, server.URL())
}

// The wire faults on real TCP, where the pipe only imitates.
func TestFaultsOnLoopback(t *testing.T) {
	t.Parallel()
	server, cl := loopback(t, mockserver.Config{Script: []mockserver.Fault{
		{Kind: mockserver.DropBefore}, {Kind: mockserver.DropAfter}, {Kind: mockserver.ResetAfter},
		{Kind: mockserver.CutBody, Bytes: 3}, {Kind: mockserver.HugeError},
	}})
	for i, check := range []func(reply) bool{
		func(r reply) bool { return errors.Is(r.err, io.EOF) },
		func(r reply) bool { return errors.Is(r.err, io.EOF) },
		func(r reply) bool { return errors.Is(r.err, syscall.ECONNRESET) },
		func(r reply) bool { return errors.Is(r.err, io.ErrUnexpectedEOF) && r.body == `{"b` },
		func(r reply) bool { return r.err == nil && r.status == 500 && len(r.body) == 1<<20 },
		func(r reply) bool { return r.err == nil && r.status == 201 && r.replayed() },
	} {
		if got := cl.post("k"); !check(got) {
			t.Errorf("send %d: got %d, %d bytes, %v", i+1, got.status, len(got.body), got.err)
		}
	}
	wantCounts(t, server, "k", 6, 1)
}

// A raw client, since net/http would notice or hide: the answer announces
// nothing, the next request is swallowed, and the connection ends.
func TestKillIdleOnLoopback(t *testing.T) {
	t.Parallel()
	server, _ := loopback(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.KillIdle}}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const text = "POST /payments HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}"
	if _, err := io.WriteString(conn, text+text); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	if got := strings.Count(string(all), "HTTP/1.1 "); got != 1 || strings.Contains(string(all), "Connection:") {
		t.Errorf("got %d answers, want one that announces no end:\n%s", got, all)
	}
	wantCounts(t, server, "k", 2, 1)
}

func TestControlPaths(t *testing.T) {
	t.Parallel()
	server, cl := loopback(t, mockserver.Config{})
	get := func(path string) reply { return cl.do(request{method: http.MethodGet, path: path}) }
	if got, want := get("/_ledger").want(t, 200).body, `{"sends":0,"effects":0,"keys":{},"violations":[]}`; got != want {
		t.Errorf("empty ledger: got %s, want %s", got, want)
	}
	cl.post("k").want(t, 201)
	cl.do(request{key: "k", body: `{"reference":"r2"}`}).want(t, 422)
	var ledger struct {
		Sends, Effects int
		Keys           map[string]struct{ Sends, Effects int }
		Violations     []struct{ Rule, Key, Detail string }
	}
	if err := json.Unmarshal([]byte(get("/_ledger").body), &ledger); err != nil {
		t.Fatal(err)
	}
	if ledger.Sends != 2 || ledger.Effects != 1 || ledger.Keys["k"].Sends != 2 || ledger.Keys["k"].Effects != 1 {
		t.Errorf("got %+v", ledger)
	}
	if len(ledger.Violations) == 0 || ledger.Violations[0].Rule != "request/same-bytes" || ledger.Violations[0].Key != "k" {
		t.Errorf("violations: got %+v", ledger.Violations)
	}
	if got, want := get("/_effects?ref=r1").body, `{"count":1,"total":1}`; got != want {
		t.Errorf("witness: got %s, want %s", got, want)
	}
	if got, want := get("/_effects?ref=none").body, `{"count":0,"total":1}`; got != want {
		t.Errorf("witness: got %s, want %s", got, want)
	}
	get("/_reset").want(t, 405)
	cl.do(request{path: "/_expire"}).want(t, 200)
	if cl.post("other").want(t, 201).replayed() {
		t.Error("an unknown key was replayed")
	}
	cl.do(request{path: "/_reset"}).want(t, 200)
	if got := server.Ledger().Snapshot(); got.Sends != 0 || got.Effects != 0 || len(got.Violations) != 0 {
		t.Errorf("after a reset: %+v", got)
	}
	cl.post("k").want(t, 201)
}

func TestListenTwice(t *testing.T) {
	t.Parallel()
	server, _ := loopback(t, mockserver.Config{})
	if err := server.Start(); err == nil {
		t.Error("a second Start: got no error")
	}
	other := mockserver.New(mockserver.Config{})
	if err := other.Listen(strings.TrimPrefix(server.URL(), "http://")); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a port that is taken: got %v", err)
	}
	if err := errors.Join(other.Close(), other.Close()); err != nil {
		t.Errorf("Close twice: %v", err)
	}
	if err := other.Start(); err == nil {
		t.Error("Start after Close: got no error")
	}
}

// A closed pipe refuses as a closed port does; the server lives on.
func TestPipeClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.New(mockserver.Config{})
		defer server.Close()
		one, two := server.Pipe(), server.Pipe()
		cl := newClient(t, one.Transport(), one.URL)
		cl.post("k").want(t, 201)
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		cl.http.CloseIdleConnections()
		if got := cl.post("k"); !errors.Is(got.err, syscall.ECONNREFUSED) {
			t.Errorf("got %d, %v, want a refused connection", got.status, got.err)
		}
		if !newClient(t, two.Transport(), "http://other.test").post("k").want(t, 201).replayed() {
			t.Error("the second pipe leads to another server")
		}
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	nameless := profile.Draft07()
	nameless.Carrier.Name = ""
	for want, cfg := range map[string]mockserver.Config{
		"unknown fault":        {Script: []mockserver.Fault{{Kind: 99}}},
		"entry 2":              {Scenarios: [][]mockserver.Fault{{{}, {Kind: mockserver.Hang, Delay: -1}}}},
		"200..599":             {ByKey: map[string][]mockserver.Fault{"k": {{Kind: mockserver.Answer, Status: 99}}}},
		"location":             {Script: []mockserver.Fault{{Kind: mockserver.Redirect, Location: "http://[x"}}},
		"not in 0..1":          {Mix: mockserver.Mix{{Probability: 2}}},
		"negative window":      {Window: -1},
		"MaxRequestBytes":      {MaxRequestBytes: -1},
		"JSON pointer":         {OperationPointer: "reference"},
		"names no carrier":     {Profile: nameless},
		"unknown bug \"nope\"": {Bug: "nope"},
	} {
		err := cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line with %q", err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("New took a configuration that Validate refuses")
		}
	}()
	mockserver.New(mockserver.Config{Window: -1})
}
