package main

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Whatever is wrong with a URL, or with what is at its end, is one line that names the part and shows no word of a driver: each
// of them at the real servers.
func TestServerErrorsNameThePart(t *testing.T) {
	t.Parallel()
	pg, my := servers()["postgres"].url(t), servers()["mysql"].url(t)
	at := func(u *url.URL, change func(*url.URL)) string {
		v := *u
		change(&v)
		return v.String()
	}
	locked, full := ownRedis(t, append(durable(), "--requirepass", "right")...), ownRedis(t, append(durable(), "--maxclients", "1")...)
	fill(t, full.address)
	redis := func(address string) string { return "redis://" + address + "/0?keep_key=forever" }
	withRedis := &url.URL{Scheme: "redis", Host: locked.address, Path: "/0", RawQuery: "keep_key=forever"}
	for name, c := range map[string]struct {
		journal string
		status  int
		want    string
	}{
		"postgres, role":          {at(pg, func(u *url.URL) { u.User = url.User("nobody_here") }), exitUsage, `user "nobody_here" may not connect: role "nobody_here" does not exist`},
		"postgres, database":      {at(pg, func(u *url.URL) { u.Path = "/nodatabase" }), exitUsage, `there is no database "nodatabase"`},
		"postgres, parameter":     {at(pg, func(u *url.URL) { u.RawQuery = "nonsense=1" }), exitUsage, `the server does not know a parameter of the URL: "nonsense"`},
		"postgres, value":         {at(pg, func(u *url.URL) { u.RawQuery = "sslmode=maybe" }), exitUsage, "the parameter sslmode of the URL is not known, or has a value that it does not take"},
		"postgres, no host":       {at(pg, func(u *url.URL) { u.Host = "nosuch.invalid:5432" }), exitUnknown, "there is no host nosuch.invalid"},
		"postgres at MariaDB":     {at(pg, func(u *url.URL) { u.Host = my.Host }), exitUsage, "what listens at " + my.Host + " is no PostgreSQL server"},
		"postgres at Redis":       {at(pg, func(u *url.URL) { u.Host = locked.address }), exitUnknown, "no answer in time from " + locked.address + "; if it is up, it may be no PostgreSQL server"},
		"postgres, nothing there": {"postgres://u@127.0.0.1:1/db", exitUnknown, "nothing listens at 127.0.0.1:1 (connection refused)"},
		"mysql, user":             {at(my, func(u *url.URL) { u.User = url.User("nobody_here") }), exitUsage, `user "nobody_here", or the password, is refused (MYSQL_PWD, or the URL in @FILE)`},
		"mysql, database":         {at(my, func(u *url.URL) { u.Path = "/nodatabase" }), exitUsage, `there is no database "nodatabase"`},
		"mysql, parameter":        {at(my, func(u *url.URL) { u.RawQuery = "nonsense=1" }), exitUsage, `parameter "nonsense" of the URL is not known; want tls, or none`},
		"mysql at PostgreSQL":     {at(my, func(u *url.URL) { u.Host = pg.Host }), exitUnknown, "the server at " + pg.Host + " has closed the connection, or does not answer as MariaDB does"},
		"redis, no password":      {redis(locked.address), exitUsage, "the server wants a password (REDISCLI_AUTH, or the URL in @FILE)"},
		"redis, parameter":        {redis(locked.address) + "&nonsense=1", exitUsage, "the parameter nonsense of the URL is not known, or has a value that it does not take"},
		"redis, database":         {at(withRedis, func(u *url.URL) { u.Path = "/x" }), exitUsage, `the database "x" in the URL is no number`},
		"redis, many databases":   {at(withRedis, func(u *url.URL) { u.Host, u.Path = ownRedis(t, durable()...).address, "/99" }), exitUsage, `there is no database "99"`},
		"rediss at a plain Redis": {at(withRedis, func(u *url.URL) { u.Scheme = "rediss" }), exitUnknown, "no answer in TLS from " + locked.address + "; a server without TLS has redis://"},
		"redis at MariaDB":        {redis(my.Host), exitUsage, "what listens at " + my.Host + " is no Redis server"},
		"redis at PostgreSQL":     {redis(pg.Host), exitUnknown, "the server at " + pg.Host + " has closed the connection; it may take no more clients, or be no Redis server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run(t, "journal", "list", "--journal", c.journal).want(t, c.status)
			if got.out != "" || got.err != "oncehttp: journal "+c.journal+": "+c.want+"\n" {
				t.Errorf("stderr\n%swant\n%s", got.err, c.want)
			}
		})
	}
	t.Run("redis, full", func(t *testing.T) {
		t.Parallel()
		got := run(t, "journal", "list", "--journal", redis(full.address)).want(t, exitUnknown)
		if strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "the server has no connection left") && !strings.Contains(got.err, "it may take no more clients") {
			t.Errorf("stderr %q", got.err)
		}
	})
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

// The answer that says most counts, wherever it stands among the tries of a driver.
func TestServerFaultOfSeveralTries(t *testing.T) {
	t.Parallel()
	err := errors.Join(errors.New("tls error: server refused TLS connection"), &pgconn.PgError{Code: "28P01", Message: "password authentication failed"})
	if got := serverFault("postgres://u@h:1/db", err); got != `user "u", or the password, is refused (PGPASSWORD, ~/.pgpass, or the URL in @FILE)` {
		t.Errorf("%q", got)
	}
	for name, journal := range map[string]string{"a file": "payments.db", "no fault of the URL": "postgres://u@h:1/db"} {
		if got := serverFault(journal, errors.New("permission denied for table x")); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
