package place_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// redisAnswer is an answer of Redis that is an error.
type redisAnswer string

func (a redisAnswer) Error() string { return string(a) }

func (redisAnswer) RedisError() {}

func ofMySQL(number uint16, state string) error {
	return &mysqldriver.MySQLError{Number: number, SQLState: [5]byte([]byte(state))}
}

// What a server says of itself ends a command with status 3, and what it says of the call with 2.
func TestJournalFaultStatus(t *testing.T) {
	t.Parallel()
	ofPostgres := func(state string) error { return &pgconn.PgError{Code: state} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{ofPostgres("57P03"), terminal.ExitUnknown}, {ofPostgres("53300"), terminal.ExitUnknown}, {ofPostgres("55P03"), terminal.ExitUnknown}, {ofPostgres("40P01"), terminal.ExitUnknown},
		{ofPostgres("28P01"), terminal.ExitUsage}, {ofPostgres("3D000"), terminal.ExitUsage}, {ofPostgres("42501"), terminal.ExitUsage}, {ofPostgres("42P01"), terminal.ExitUsage},
		{ofMySQL(1040, "08004"), terminal.ExitUnknown}, {ofMySQL(1203, "42000"), terminal.ExitUnknown}, {ofMySQL(1226, "42000"), terminal.ExitUnknown}, {ofMySQL(1205, "HY000"), terminal.ExitUnknown},
		{ofMySQL(1045, "28000"), terminal.ExitUsage}, {ofMySQL(1049, "42000"), terminal.ExitUsage}, {ofMySQL(1142, "42000"), terminal.ExitUsage}, {ofMySQL(1130, "HY000"), terminal.ExitUsage},
		{redisAnswer("LOADING Redis is loading the dataset in memory"), terminal.ExitUnknown}, {redisAnswer("ERR max number of clients reached"), terminal.ExitUnknown},
		{redisAnswer("WRONGPASS invalid username-password pair"), terminal.ExitUsage}, {redisAnswer("ERR DB index is out of range"), terminal.ExitUsage},
		{mysqldriver.ErrInvalidConn, terminal.ExitUnknown}, {io.ErrUnexpectedEOF, terminal.ExitUnknown}, {context.DeadlineExceeded, terminal.ExitUnknown}, {sql.ErrConnDone, terminal.ExitUnknown},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, terminal.ExitUnknown}, {syscall.ENOENT, terminal.ExitUsage},
		{&net.OpError{Op: "write", Err: &tls.CertificateVerificationError{Err: x509.HostnameError{}}}, terminal.ExitUsage}, {errors.New("other"), terminal.ExitUsage},
		{persist.ErrUncertain, terminal.ExitUnknown}, {persist.ErrLocked, terminal.ExitLocked}, {persist.ErrCorrupt, terminal.ExitUsage},
		{fmt.Errorf("%w: %w", postgres.ErrVolatile, io.EOF), terminal.ExitUsage}, {fmt.Errorf("%w: %w", postgres.ErrSchema, io.EOF), terminal.ExitUsage},
	} {
		for _, err := range []error{c.err, fmt.Errorf("list: %w", errors.Join(c.err))} {
			if got := terminal.StatusOf(fmt.Errorf("more: %w", place.JournalError("j", err))); got != c.want {
				t.Errorf("%v: status %d, want %d", err, got, c.want)
			}
		}
		if got := terminal.StatusOf(c.err); got != terminal.ExitUsage {
			t.Errorf("%v, which is not of a journal: status %d", c.err, got)
		}
	}
}

// together runs commands at once, and wants this status of each.
func together(t *testing.T, want int, journal string, commands ...[]string) {
	t.Helper()
	var all sync.WaitGroup
	for _, args := range commands {
		all.Go(func() {
			if got := commandtest.Run(t, append(args, "--journal", journal)...); got.Status != want {
				t.Errorf("%v: status %d, want %d: %s", args, got.Status, want, got.Err)
			}
		})
	}
	all.Wait()
}

// A table that somebody has locked is no wrong call.
func TestServerLockedTable(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		db, table := commandtest.Records(t, journal)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = errors.Join(conn.Close(), db.Close()) }() // the pool would keep the lock
		lock := []string{"LOCK TABLES " + table + " WRITE"}
		if strings.HasPrefix(journal, "postgres") {
			lock = []string{"BEGIN", "LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE"}
		}
		for _, statement := range lock {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		file := commandtest.WriteFile(t, "in.csv", "id\na\n")
		together(t, terminal.ExitUnknown, journal, []string{"journal", "list"}, []string{"journal", "settle", "k", "--happened"}, []string{"work", "--origin", "http://127.0.0.1:*"},
			[]string{"send", "POST", commandtest.Refusing(t).URL, "--key", "k"}, []string{"batch", file, "--url", commandtest.Refusing(t).URL, "--key", "o:{id}"})
	})
}

// An operation whose row somebody has locked is settled by the same command later, be it one key or several.
func TestServerLockedRow(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		down := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		file := commandtest.WriteFile(t, "in.csv", "id\na\nb\n")
		commandtest.Run(t, commandtest.Fast("batch", file, "--url", down.URL, "--key", "o:{id}", "--journal", journal, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
		db, table := commandtest.Records(t, journal)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "SELECT id FROM "+table+" FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		together(t, terminal.ExitUnknown, journal, []string{"journal", "settle", "--happened", "idemp:o:a"}, []string{"journal", "abandon", "idemp:o:a", "--yes"},
			[]string{"journal", "settle", "--happened", "idemp:o:a", "idemp:o:b"})
	})
}

// answering is a server that says this to each connection: once, or if it waits, whenever the client has spoken.
func answering(t *testing.T, says string, waits bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for heard := make([]byte, 4096); ; {
					n := 0
					if waits {
						if n, err = conn.Read(heard); err != nil {
							return
						}
					}
					_, _ = io.WriteString(conn, strings.Repeat(says, max(1, bytes.Count(heard[:n], []byte("*"))))) // of Redis several commands
					if !waits {
						_, _ = io.Copy(io.Discard, conn) // until the client goes
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A server that starts, has too many connections or says nothing at all is no wrong call.
func TestServerNotNow(t *testing.T) {
	t.Parallel()
	fatal := "SFATAL\x00VFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00"
	full := "\xff\x10\x04#08004Too many connections"
	for name, journal := range map[string]string{
		"postgres starts": "postgres://u@" + answering(t, "E\x00\x00\x00"+string(rune(len(fatal)+4))+fatal, true) + "/db?sslmode=disable",
		"mysql is full":   "mysql://u@" + answering(t, string(rune(len(full)))+"\x00\x00\x00"+full, false) + "/db",
		"redis loads":     "redis://" + answering(t, "-LOADING Redis is loading the dataset in memory\r\n", true) + "/0?keep_key=forever",
		"mysql, silent":   "mysql://u@" + answering(t, "", false) + "/db",
		"redis, silent":   "redis://" + answering(t, "", false) + "/0?keep_key=forever",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitUnknown)
			if strings.Count(got.Err, "\n") != 1 {
				t.Errorf("%q, want a line", got.Err)
			}
		})
	}
}

// cutting leads to a server, and cuts all connections once it has sent so many bytes; from then on it takes none.
func cutting(t *testing.T, server string, after int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var left atomic.Int64
	left.Store(after)
	serve := func(client net.Conn) {
		defer client.Close()
		up, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(up, client) }()
		chunk := make([]byte, 256)
		for {
			n, err := up.Read(chunk)
			if err != nil {
				return
			}
			if left.Add(-int64(n)) < 0 {
				_ = l.Close()
				return
			}
			if _, err := client.Write(chunk[:n]); err != nil {
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
			go serve(client)
		}
	}()
	return l.Addr().String()
}

// Wherever a server goes away, in the middle of a listing too, the command ends with status 3, or has done its work.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, journal string) {
		down := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		rows := "id,text\n"
		for i := range 20 {
			rows += commandtest.Itoa(i) + "," + strings.Repeat("x", 500) + "\n"
		}
		commandtest.Run(t, commandtest.Fast("batch", commandtest.WriteFile(t, "in.csv", rows), "--url", down.URL, "--key", "o:{id}", "--journal", journal, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
		u, err := url.Parse(journal)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for after := int64(200); after < 20_000; after *= 2 {
			for _, args := range [][]string{{"list"}, {"export"}, {"settle", "idemp:o:1", "--happened"}} {
				at := *u
				at.Host = cutting(t, u.Host, after)
				all.Go(func() {
					got := commandtest.Run(t, append(append([]string{"journal"}, args...), "--journal", at.String())...)
					if got.Status != terminal.ExitOK && got.Status != terminal.ExitUnknown {
						t.Errorf("%v, cut after %d bytes: status %d: %s", args, after, got.Status, got.Err)
					}
				})
			}
		}
		all.Wait()
	}
	commandtest.OnServers(t, test)
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, "redis://"+commandtest.OwnRedis(t, commandtest.Durable()...).Address+"/0?keep_key=forever")
	})
}

// A signal in the first moments is no wrong call.
func TestBatchSignalAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs strings.Builder
	status := command.Run(ctx, []string{"batch", commandtest.WriteFile(t, "in.csv", "id\na\n"), "--url", commandtest.Refusing(t).URL, "--key", "o:{id}"}, strings.NewReader(""), io.Discard, &errs)
	if status != terminal.ExitUnknown || !strings.Contains(errs.String(), "interrupted") || strings.Contains(errs.String(), "context canceled") {
		t.Errorf("status %d: %s", status, errs.String())
	}
}
