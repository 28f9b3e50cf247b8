package mysql_test

import (
	"bytes"
	"database/sql"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// TestAutocommitOff: on a server where sessions begin with autocommit off, Migrate commits what
// it makes, and each method returns after its commit.
func TestAutocommitOff(t *testing.T) {
	t.Parallel()
	own := ownServer(t, "--autocommit=0")
	_, url := inOwn(t, own)
	beside, err := sql.Open("mysql", "root@tcp("+own.Address+")/journal?autocommit=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = beside.Close() })
	for _, allow := range []bool{false, true} {
		opts := journal.Options{MaxConns: 1, AllowVolatile: allow}
		j, err := journal.Open(t.Context(), url, opts)
		if err != nil {
			t.Fatal(err)
		}
		rec, created, err := j.Begin(t.Context(), sqltest.Record("a", sqltest.Name()))
		if err != nil || !created {
			t.Fatalf("Begin: created %t, error %v", created, err)
		}
		var revision uint64
		if err := beside.QueryRow("SELECT revision FROM oncehttp_record WHERE op_key = ?", rec.Key).Scan(&revision); err != nil || revision != 1 {
			t.Errorf("after Begin, another connection sees revision %d, error %v", revision, err)
		}
		if err := j.Finish(t.Context(), sqltest.Finished(rec)); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := open(t, url, opts).Get(t.Context(), rec.ID); err != nil || got.State != persist.StateConfirmed {
			t.Errorf("after Close there is a record in state %v, error %v", got.State, err)
		}
	}
}

// TestAutocommitStaysOff: a connection on which autocommit is off, as behind a proxy that keeps
// settings to itself, is refused.
func TestAutocommitStaysOff(t *testing.T) {
	t.Parallel()
	opts := migrated(t, pool(t, ""))
	at := changing(t, config(t, "").Addr, "autocommit = 1", "autocommit = 0")
	j, err := journal.Open(t.Context(), strings.Replace(server(t), config(t, "").Addr, at, 1), opts)
	if !errors.Is(err, journal.ErrVolatile) || !strings.Contains(err.Error(), "autocommit") {
		t.Errorf("Open: %v, want ErrVolatile that names autocommit", err)
	}
	if err == nil {
		_ = j.Close()
	}
}

// changing passes on to the server what comes to the address that it returns, with one text in
// place of another of the same length.
func changing(t *testing.T, server, before, after string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	pass := func(from, to net.Conn) {
		defer func() { _, _ = from.Close(), to.Close() }()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if _, err := to.Write(bytes.ReplaceAll(buf[:n], []byte(before), []byte(after))); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			conn, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				return
			}
			go pass(client, conn)
			go pass(conn, client)
		}
	}()
	return l.Addr().String()
}
