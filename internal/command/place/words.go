package place

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	goredis "github.com/redis/go-redis/v9"
)

// engineName returns the name of the kind of server that a URL leads to, such as "PostgreSQL", for messages.
func engineName(u *url.URL) string {
	switch {
	case strings.HasPrefix(u.Scheme, "postgres"):
		return "PostgreSQL"
	case strings.HasPrefix(u.Scheme, "redis"):
		return "Redis"
	}
	return "MariaDB"
}

// serverFault names in words the part of a journal's URL, or of the way to its server, at fault in an error. It returns "" for any other
// error. name is the journal's, without a password.
func serverFault(name string, err error) string {
	u, perr := url.Parse(name)
	if perr != nil || u.Host == "" || strings.Contains(err.Error(), "connection to listen on") { // it may be of the URL of --journal-direct
		return ""
	}
	var pg *pgconn.PgError
	var my *mysqldriver.MySQLError
	var answered goredis.Error
	var listens *listensError
	switch {
	case errors.As(err, &listens):
		return listens.text
	case errors.As(err, &pg):
		return postgresFault(u, pg)
	case errors.As(err, &my):
		return mysqlFault(u, my)
	case errors.As(err, &answered):
		return redisFault(u, answered.Error())
	}
	return connectionFault(u, err)
}

// passwordRefused returns the text about a refused user or password. from names the possible places of the password.
func passwordRefused(u *url.URL, from string) string {
	who := "the password"
	if name := u.User.Username(); name != "" {
		who = fmt.Sprintf("user %q, or the password,", name)
	}
	return who + " is refused (" + from + ", or the URL in @FILE)"
}

// noDatabase returns the text about a missing database, with the statement that makes it; quote is that of the server's identifiers.
func noDatabase(u *url.URL, quote string) string {
	name := strings.TrimPrefix(u.Path, "/")
	return fmt.Sprintf("there is no database %q; create it first (CREATE DATABASE %s), and then its tables: oncehttp journal migrate", name, identifier(name, quote))
}

// identifier spells a name in SQL: as it is if it needs no quotes, else within quote.
func identifier(name, quote string) string {
	plain := func(r rune) bool { return r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
	if name != "" && (name[0] < '0' || name[0] > '9') && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	return quote + strings.ReplaceAll(name, quote, quote+quote) + quote
}

// postgresFault returns the text for an error that a PostgreSQL server answered, with advice where there is one; "" for an error without a text of
// its own. u is the URL of the journal.
func postgresFault(u *url.URL, err *pgconn.PgError) string {
	switch {
	case err.Code == "28P01":
		return passwordRefused(u, "PGPASSWORD, ~/.pgpass")
	case err.Code == "28000":
		return fmt.Sprintf("user %q may not connect: %s", u.User.Username(), err.Message)
	case err.Code == "3D000":
		return noDatabase(u, `"`)
	case err.Code == "53300":
		return "the server has no connection left: " + err.Message
	case err.Code == "42501":
		return fmt.Sprintf("user %q has not all rights that this needs: %s", u.User.Username(), err.Message)
	case err.Code == "42704" && strings.HasPrefix(err.Message, "unrecognized configuration parameter"):
		return "the server does not know a parameter of the URL: " + strings.TrimPrefix(err.Message, "unrecognized configuration parameter ")
	}
	return ""
}

// mysqlFault returns the text for an error that a MySQL server answered; "" for an error without a text of its own. u is the URL of the journal.
func mysqlFault(u *url.URL, err *mysqldriver.MySQLError) string {
	switch err.Number {
	case 1045, 1698:
		return passwordRefused(u, "MYSQL_PWD")
	case 1044:
		return fmt.Sprintf("user %q has no right to the database %q", u.User.Username(), strings.TrimPrefix(u.Path, "/"))
	case 1049:
		return noDatabase(u, "`")
	case 1040, 1203, 1226:
		return "the server has no connection left: " + err.Message
	}
	return ""
}

// redisFault returns the text for an error that a Redis server answered; "" for an error without a text of its own. u is the URL of the journal.
func redisFault(u *url.URL, text string) string {
	switch {
	case strings.HasPrefix(text, "NOAUTH"):
		return "the server wants a password (REDISCLI_AUTH, or the URL in @FILE)"
	case strings.HasPrefix(text, "WRONGPASS"):
		return passwordRefused(u, "REDISCLI_AUTH")
	case strings.HasPrefix(text, "ERR DB index"):
		return fmt.Sprintf("there is no database %q", strings.TrimPrefix(u.Path, "/"))
	case strings.HasPrefix(text, "ERR max number of clients"):
		return "the server has no connection left: it has as many clients as it takes"
	}
	return ""
}

// connectionFault says in words what is wrong with the connection to a journal's server at u, if err holds no answer of the server. It returns "" for
// an error of another kind.
func connectionFault(u *url.URL, err error) string {
	var lookup *net.DNSError
	var record tls.RecordHeaderError
	text, engine := err.Error(), engineName(u)
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "there is no host " + lookup.Name
	case errors.Is(err, syscall.ECONNREFUSED):
		at := u.Host
		if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Addr != nil {
			at = dial.Addr.String()
		}
		return "nothing listens at " + at + " (connection refused)"
	case isForeign(text):
		return notThat(u)
	case errors.As(err, &record), strings.Contains(text, "server refused TLS connection") && asksForTLS(u), strings.Contains(text, "server does not support TLS"):
		return noTLS(u)
	case certificateRefused(err):
		return "the TLS certificate of the server at " + u.Host + " is not accepted: " + text[max(0, strings.Index(text, "x509: ")):]
	case u.Scheme == "rediss" && lostConnection(err):
		return "no answer in TLS from " + u.Host + "; a server without TLS has redis://"
	case errors.Is(err, mysqldriver.ErrInvalidConn):
		return "the server at " + u.Host + " has closed the connection, or does not answer as " + engine + " does"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time from " + u.Host + "; if it is up, it may be no " + engine + " server"
	case lostConnection(err):
		return "the server at " + u.Host + " has closed the connection; it may take no more clients, or be no " + engine + " server"
	}
	return ""
}

// asksForTLS reports whether the URL of a PostgreSQL server, or PGSSLMODE where it says nothing, asks for TLS. Without that the driver tries TLS first, and then goes
// on without it.
func asksForTLS(u *url.URL) bool {
	mode := cmp.Or(u.Query().Get("sslmode"), os.Getenv("PGSSLMODE"))
	return slices.Contains([]string{"require", "verify-ca", "verify-full"}, mode)
}

// isForeign reports whether a driver's error tells of an answer outside its protocol.
func isForeign(text string) bool {
	return slices.ContainsFunc([]string{"received unexpected message", "invalid body length", "invalid reply", "redis: can't parse", "malformed packet"},
		func(part string) bool { return strings.Contains(text, part) })
}

// certificateRefused reports whether a server's certificate was not accepted here.
func certificateRefused(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError))
}

// lostConnection reports whether a connection was closed, or said nothing in time.
func lostConnection(err error) bool {
	text := err.Error()
	return strings.HasSuffix(text, "EOF") ||
		isOneOf(err, syscall.ECONNRESET, syscall.EPIPE, context.DeadlineExceeded, os.ErrDeadlineExceeded, mysqldriver.ErrInvalidConn)
}

// wrongParameter returns an error that names the first parameter of a URL that the driver refuses; nil if the fault is elsewhere. parse is the driver's reading of a
// URL. No value is shown: one may be a secret.
func wrongParameter(rawURL string, parse func(string) error) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil
	}
	query := u.Query()
	u.RawQuery = ""
	if parse(u.String()) != nil {
		return nil
	}
	for _, pair := range strings.Split(query.Encode(), "&") {
		u.RawQuery = pair
		if pair != "" && parse(u.String()) != nil {
			name, _, _ := strings.Cut(pair, "=")
			return fmt.Errorf("the parameter %s of the URL is not known, or has a value that it does not take", name)
		}
	}
	return nil
}

// NewKeyStep says what to do about an operation that the API has confirmed, and does not have: nothing is sent under its key again.
const NewKeyStep = "if the API's own list lacks it, send it alone under a new key: send --key NEWKEY, or batch a file of such rows only, with another text in --key and --new-journal"
