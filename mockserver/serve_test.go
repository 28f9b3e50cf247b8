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
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
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
	return server, mocktest.NewClient(t, transport, server.URL())
}

// The wire faults on real TCP, where the pipe only imitates.
func TestFaultsOnLoopback(t *testing.T) {
	t.Parallel()
	server, cl := loopback(t, mockserver.Config{Script: []mockserver.Fault{
		{Kind: mockserver.DropBefore}, {Kind: mockserver.DropAfter}, {Kind: mockserver.ResetAfter},
		{Kind: mockserver.CutBody, Bytes: 3}, {Kind: mockserver.HugeError},
	}})
	for i, check := range []func(reply) bool{
		func(r reply) bool { return errors.Is(r.Err, io.EOF) },
		func(r reply) bool { return errors.Is(r.Err, io.EOF) },
		func(r reply) bool { return errors.Is(r.Err, syscall.ECONNRESET) },
		func(r reply) bool { return errors.Is(r.Err, io.ErrUnexpectedEOF) && r.Body == `{"b` },
		func(r reply) bool { return r.Err == nil && r.Status == 500 && len(r.Body) == 1<<20 },
		func(r reply) bool { return r.Err == nil && r.Status == 201 && r.Replayed() },
	} {
		if got := cl.Post("k"); !check(got) {
			t.Errorf("send %d: got %d, %d bytes, %v", i+1, got.Status, len(got.Body), got.Err)
		}
	}
	mocktest.WantCounts(t, server, "k", 6, 1)
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
	mocktest.WantCounts(t, server, "k", 2, 1)
}

func TestControlPaths(t *testing.T) {
	t.Parallel()
	server, cl := loopback(t, mockserver.Config{})
	get := func(path string) reply { return cl.Do(request{Method: http.MethodGet, Path: path}) }
	if got, want := get("/_ledger").Want(t, 200).Body, `{"sends":0,"effects":0,"keys":{},"violations":[]}`; got != want {
		t.Errorf("empty ledger: got %s, want %s", got, want)
	}
	cl.Post("k").Want(t, 201)
	cl.Do(request{Key: "k", Body: `{"reference":"r2"}`}).Want(t, 422)
	var ledger struct {
		Sends, Effects int
		Keys           map[string]struct{ Sends, Effects int }
		Violations     []struct{ Rule, Key, Detail string }
	}
	if err := json.Unmarshal([]byte(get("/_ledger").Body), &ledger); err != nil {
		t.Fatal(err)
	}
	if ledger.Sends != 2 || ledger.Effects != 1 || ledger.Keys["k"].Sends != 2 || ledger.Keys["k"].Effects != 1 {
		t.Errorf("got %+v", ledger)
	}
	if len(ledger.Violations) == 0 || ledger.Violations[0].Rule != "request/same-bytes" || ledger.Violations[0].Key != "k" {
		t.Errorf("violations: got %+v", ledger.Violations)
	}
	if got, want := get("/_effects?ref=r1").Body, `{"count":1,"total":1}`; got != want {
		t.Errorf("witness: got %s, want %s", got, want)
	}
	if got, want := get("/_effects?ref=none").Body, `{"count":0,"total":1}`; got != want {
		t.Errorf("witness: got %s, want %s", got, want)
	}
	get("/_reset").Want(t, 405)
	cl.Do(request{Path: "/_expire"}).Want(t, 200)
	if cl.Post("other").Want(t, 201).Replayed() {
		t.Error("an unknown key was replayed")
	}
	cl.Do(request{Path: "/_reset"}).Want(t, 200)
	if got := server.Ledger().Snapshot(); got.Sends != 0 || got.Effects != 0 || len(got.Violations) != 0 {
		t.Errorf("after a reset: %+v", got)
	}
	cl.Post("k").Want(t, 201)
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
		cl := mocktest.NewClient(t, one.Transport(), one.URL)
		cl.Post("k").Want(t, 201)
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
		cl.HTTP.CloseIdleConnections()
		if got := cl.Post("k"); !errors.Is(got.Err, syscall.ECONNREFUSED) {
			t.Errorf("got %d, %v, want a refused connection", got.Status, got.Err)
		}
		if !mocktest.NewClient(t, two.Transport(), "http://other.test").Post("k").Want(t, 201).Replayed() {
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
