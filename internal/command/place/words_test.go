package place_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// Whatever is wrong with a URL, or with what is at its end, is one line that names the part and shows no word of a driver: each
// of them at the real servers.
func TestServerErrorsNameThePart(t *testing.T) {
	t.Parallel()
	pg, my := commandtest.Servers()["postgres"].URL(t), commandtest.Servers()["mysql"].URL(t)
	at := func(u *url.URL, change func(*url.URL)) string {
		v := *u
		change(&v)
		return v.String()
	}
	locked, full := commandtest.OwnRedis(t, append(commandtest.Durable(), "--requirepass", "right")...), commandtest.OwnRedis(t, append(commandtest.Durable(), "--maxclients", "1")...)
	fill(t, full.Address)
	redis := func(address string) string { return "redis://" + address + "/0?keep_key=forever" }
	withRedis := &url.URL{Scheme: "redis", Host: locked.Address, Path: "/0", RawQuery: "keep_key=forever"}
	distrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	distrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	distrusted.StartTLS()
	t.Cleanup(distrusted.Close)
	plain, secured := strings.TrimPrefix(commandtest.Refusing(t).URL, "http://"), distrusted.Listener.Addr().String()
	fatal := "SFATAL\x00VFATAL\x00C28P01\x00Mpassword authentication failed for user \"u\"\x00\x00"
	refusing := answering(t, "E\x00\x00\x00"+string(rune(len(fatal)+4))+fatal, true)
	greeting := "\x0a10.11.0\x00\x01\x00\x00\x00abcdefgh\x00\x00\x02" // it names no TLS
	without := answering(t, string(rune(len(greeting)))+"\x00\x00\x00"+greeting, false)
	for name, c := range map[string]struct {
		journal string
		status  int
		want    string
	}{
		"postgres, role":          {at(pg, func(u *url.URL) { u.User = url.User("nobody_here") }), terminal.ExitUsage, `user "nobody_here" may not connect: role "nobody_here" does not exist`},
		"postgres, database":      {at(pg, func(u *url.URL) { u.Path = "/nodatabase" }), terminal.ExitUsage, `there is no database "nodatabase"; create it first (CREATE DATABASE nodatabase), and then its tables: oncehttp journal migrate`},
		"postgres, named oddly":   {at(pg, func(u *url.URL) { u.Path = "/No base" }), terminal.ExitUsage, `there is no database "No base"; create it first (CREATE DATABASE "No base"), and then its tables: oncehttp journal migrate`},
		"postgres, parameter":     {at(pg, func(u *url.URL) { u.RawQuery = "nonsense=1" }), terminal.ExitUsage, `the server does not know a parameter of the URL: "nonsense"`},
		"postgres, value":         {at(pg, func(u *url.URL) { u.RawQuery = "sslmode=maybe" }), terminal.ExitUsage, "the parameter sslmode of the URL is not known, or has a value that it does not take"},
		"postgres, no host":       {at(pg, func(u *url.URL) { u.Host = "nosuch.invalid:5432" }), terminal.ExitUnknown, "there is no host nosuch.invalid"},
		"postgres at MariaDB":     {at(pg, func(u *url.URL) { u.Host = my.Host }), terminal.ExitUsage, "what listens at " + my.Host + " is no PostgreSQL server"},
		"postgres at Redis":       {at(pg, func(u *url.URL) { u.Host = locked.Address }), terminal.ExitUsage, "what listens at " + locked.Address + " is Redis, not PostgreSQL"},
		"postgres at HTTP":        {at(pg, func(u *url.URL) { u.Host = plain }), terminal.ExitUsage, "what listens at " + plain + " is no PostgreSQL server"},
		"postgres, password":      {"postgres://u@" + refusing + "/db?sslmode=disable", terminal.ExitUsage, `user "u", or the password, is refused (PGPASSWORD, ~/.pgpass, or the URL in @FILE)`},
		"postgres, nothing there": {"postgres://u@127.0.0.1:1/db", terminal.ExitUnknown, "nothing listens at 127.0.0.1:1 (connection refused)"},
		"mysql, user":             {at(my, func(u *url.URL) { u.User = url.User("nobody_here") }), terminal.ExitUsage, `user "nobody_here", or the password, is refused (MYSQL_PWD, or the URL in @FILE)`},
		"mysql, database":         {at(my, func(u *url.URL) { u.Path = "/no-database" }), terminal.ExitUsage, "there is no database \"no-database\"; create it first (CREATE DATABASE `no-database`), and then its tables: oncehttp journal migrate"},
		"mysql, parameter":        {at(my, func(u *url.URL) { u.RawQuery = "nonsense=1" }), terminal.ExitUsage, `parameter "nonsense" of the URL is not known; want tls, or none`},
		"mysql at PostgreSQL":     {at(my, func(u *url.URL) { u.Host = pg.Host }), terminal.ExitUsage, "what listens at " + pg.Host + " is PostgreSQL, not MariaDB"},
		"mysql at Redis":          {at(my, func(u *url.URL) { u.Host = locked.Address }), terminal.ExitUsage, "what listens at " + locked.Address + " is Redis, not MariaDB"},
		"mysql, no TLS":           {at(my, func(u *url.URL) { u.Host, u.RawQuery = without, "tls=true" }), terminal.ExitUsage, "the server at " + without + " has no TLS, which the URL asks for"},
		"redis, no password":      {redis(locked.Address), terminal.ExitUsage, "the server wants a password (REDISCLI_AUTH, or the URL in @FILE)"},
		"redis, parameter":        {redis(locked.Address) + "&nonsense=1", terminal.ExitUsage, "the parameter nonsense of the URL is not known, or has a value that it does not take"},
		"redis, database":         {at(withRedis, func(u *url.URL) { u.Path = "/x" }), terminal.ExitUsage, `the database "x" in the URL is no number`},
		"redis, many databases":   {at(withRedis, func(u *url.URL) { u.Host, u.Path = commandtest.OwnRedis(t, commandtest.Durable()...).Address, "/99" }), terminal.ExitUsage, `there is no database "99"`},
		"rediss at a plain Redis": {at(withRedis, func(u *url.URL) { u.Scheme = "rediss" }), terminal.ExitUsage, "the server at " + locked.Address + " has no TLS, which the URL asks for; one without TLS has redis://"},
		"rediss at MariaDB":       {at(withRedis, func(u *url.URL) { u.Scheme, u.Host = "rediss", my.Host }), terminal.ExitUsage, "what listens at " + my.Host + " is MariaDB, not Redis"},
		"rediss, certificate":     {at(withRedis, func(u *url.URL) { u.Scheme, u.Host = "rediss", secured }), terminal.ExitUsage, "the TLS certificate of the server at " + secured + " is not accepted: x509: certificate signed by unknown authority"},
		"rediss at PostgreSQL":    {at(withRedis, func(u *url.URL) { u.Scheme, u.Host = "rediss", pg.Host }), terminal.ExitUsage, "what listens at " + pg.Host + " is PostgreSQL, not Redis"},
		"redis at MariaDB":        {redis(my.Host), terminal.ExitUsage, "what listens at " + my.Host + " is no Redis server"},
		"redis at PostgreSQL":     {redis(pg.Host), terminal.ExitUsage, "what listens at " + pg.Host + " is PostgreSQL, not Redis"},
		"redis at HTTP":           {redis(plain), terminal.ExitUsage, "what listens at " + plain + " is no Redis server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := commandtest.Run(t, "journal", "list", "--journal", c.journal).Want(t, c.status)
			if got.Out != "" || got.Err != "oncehttp: journal "+c.journal+": "+c.want+"\n" {
				t.Errorf("stderr\n%swant\n%s", got.Err, c.want)
			}
		})
	}
	t.Run("redis, full", func(t *testing.T) {
		t.Parallel()
		got := commandtest.Run(t, "journal", "list", "--journal", redis(full.Address)).Want(t, terminal.ExitUnknown)
		if strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, "the server has no connection left") && !strings.Contains(got.Err, "it may take no more clients") {
			t.Errorf("stderr %q", got.Err)
		}
	})
}

// A server under load answers after the first look at it. It is named all the same, once the driver has given up.
func TestSlowForeignServerIsNamed(t *testing.T) {
	t.Parallel()
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
			go func() { // as PostgreSQL does: it waits for the client, and knows no PING
				defer conn.Close()
				heard := make([]byte, 64)
				n, err := conn.Read(heard)
				time.Sleep(600 * time.Millisecond)
				if err == nil && string(heard[:n]) == "\x00\x00\x00\x08\x04\xd2\x16\x2f" {
					_, _ = io.WriteString(conn, "N")
				}
			}()
		}
	}()
	at := l.Addr().String()
	got := commandtest.Run(t, "journal", "list", "--journal", "mysql://u@"+at+"/test").Want(t, terminal.ExitUsage)
	if want := "what listens at " + at + " is PostgreSQL, not MariaDB"; !strings.Contains(got.Err, want) {
		t.Errorf("stderr %q, want %q", got.Err, want)
	}
}

// TestNoTLSAskedFor: a PostgreSQL server without TLS that is slow is no answer in time, unless the URL asks for TLS.
func TestNoTLSAskedFor(t *testing.T) {
	t.Parallel()
	at := answering(t, "N", true)
	for mode, asks := range map[string]bool{"": false, "?sslmode=prefer": false, "?sslmode=require": true} {
		got := commandtest.Run(t, "journal", "list", "--journal", "postgres://u@"+at+"/db"+mode)
		if said := strings.Contains(got.Err, "which the URL asks for"); said != asks || got.Status == terminal.ExitOK {
			t.Errorf("%q: status %d, stderr %q", mode, got.Status, got.Err)
		}
	}
}

// fill takes the one connection that a server has.
func fill(t *testing.T, address string) {
	t.Helper()
	answer := make([]byte, 7)
	for range 100 {
		first, err := net.DialTimeout("tcp", address, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = first.Close() })
		if _, err := first.Write([]byte("PING\r\n")); err == nil {
			if _, err = io.ReadFull(first, answer); err == nil && string(answer) == "+PONG\r\n" {
				return
			}
		}
	}
	t.Fatal("the server takes no connection at all")
}
