package place

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// listener is the kind of server at an address, as its first bytes show it.
type listener int

const (
	listensUnseen     listener = iota // it says nothing, or nothing known here
	listensPostgres                   // "PostgreSQL"
	listensMySQL                      // "MariaDB"
	listensRedis                      // Redis without TLS
	listensOther                      // a server of another kind, such as HTTP
	listensInTLSAlone                 // a server that answers plain bytes with an alert of TLS
)

// The times of a look at a silent server. A server that works has answered long before openPatience is over. Once the open has failed, nothing
// else waits for the look, and a server under load gets failedPatience to answer.
const (
	openPatience   = 300 * time.Millisecond
	lookPatience   = 300 * time.Millisecond
	failedPatience = 3 * time.Second
)

// sslRequest asks a PostgreSQL server whether it speaks TLS. The answer is one byte, S or N.
const sslRequest = "\x00\x00\x00\x08\x04\xd2\x16\x2f"

// listensError reports a server of the wrong kind at a journal's address, or one without TLS.
type listensError struct{ text string }

// Error returns the finished text.
func (e *listensError) Error() string { return e.text }

// withinPatience calls open, and explains its failure. If open takes long, or loses its connection, a server of another kind may be at the address: two protocols may
// each wait for the other side to speak. So withinPatience looks at that server's first bytes, and returns an error if they are not those of the wanted kind. An open
// left behind ends by its own time limit, and its journal is closed.
func withinPatience(ctx context.Context, u *url.URL, open func(context.Context) (persist.Journal, error)) (persist.Journal, error) {
	ctx, cancel := context.WithCancel(ctx)
	type opened struct {
		j   persist.Journal
		err error
	}
	done := make(chan opened, 1)
	go func() {
		defer cancel()
		j, err := open(ctx)
		done <- opened{j, err}
	}()
	var o opened
	select {
	case o = <-done:
	case <-time.After(openPatience):
		if wrong := wrongListener(u, lookPatience); wrong != nil {
			cancel()
			go func() {
				if o := <-done; o.err == nil && o.j != nil {
					_ = o.j.Close()
				}
			}()
			return nil, wrong
		}
		o = <-done // the server is of the right kind as far as can be seen, and slow
	}
	if o.err != nil && (lostConnection(o.err) || errors.As(o.err, new(tls.RecordHeaderError))) {
		return nil, cmp.Or(wrongListener(u, failedPatience), o.err)
	}
	return o.j, o.err
}

// wrongListener returns an error if the server at the URL's address is clearly of another kind than the URL says; else nil. It asks first in the way of the
// wanted kind, and then, if nothing is learnt (listensUnseen), in the other way. patience bounds each of the two tries. If the address is in a parameter of the
// URL, it does not look.
func wrongListener(u *url.URL, patience time.Duration) error {
	q := u.Query()
	if u.Hostname() == "" || q.Has("host") || q.Has("hostaddr") || q.Has("port") {
		return nil
	}
	at, wanted := addressOf(u), engineName(u)
	var found listener
	switch wanted {
	case "PostgreSQL":
		if found = askPostgres(at, patience); found == listensUnseen {
			found = listensAt(at, patience)
		}
	default:
		if found = listensAt(at, patience); found == listensUnseen {
			found = askPostgres(at, patience)
		}
	}
	return found.unfit(u, wanted)
}

// unfit returns an error if a server of the kind l is not the one that the URL wants; nil if it is, or if nothing was learnt of it but that it speaks TLS. wanted is
// the name of the wanted kind.
func (l listener) unfit(u *url.URL, wanted string) error {
	is := map[listener]string{listensPostgres: "PostgreSQL", listensMySQL: "MariaDB", listensRedis: "Redis"}[l]
	switch {
	case l == listensUnseen, l == listensInTLSAlone, is == wanted && u.Scheme != "rediss":
		return nil
	case is == wanted: // by rediss, and it has answered without TLS
		return &listensError{noTLS(u)}
	case is == "":
		return &listensError{notThat(u)}
	}
	return &listensError{"what listens at " + u.Host + " is " + is + ", not " + wanted}
}

// noTLS returns the text of an error about a server that does not speak TLS, which the URL asks for.
func noTLS(u *url.URL) string {
	text := "the server at " + u.Host + " has no TLS, which the URL asks for"
	if u.Scheme == "rediss" {
		text += "; one without TLS has redis://"
	}
	return text
}

// notThat returns the text about a server that is of no known kind, and not the one that the URL wants.
func notThat(u *url.URL) string {
	return "what listens at " + u.Host + " is no " + engineName(u) + " server"
}

// addressOf returns host and port of a URL, with the usual port of its kind of server if it names none.
func addressOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"PostgreSQL": "5432", "MariaDB": "3306", "Redis": "6379"}[engineName(u)]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// askPostgres asks the server at an address for TLS in the way of PostgreSQL, and returns listensPostgres if it answers so, else listensUnseen. Nothing of a login is
// sent.
func askPostgres(at string, patience time.Duration) listener {
	if said := saidTo(at, sslRequest, patience); len(said) == 1 && (said[0] == 'S' || said[0] == 'N') {
		return listensPostgres
	}
	return listensUnseen
}

// listensAt sends the PING of Redis to an address, and returns the kind of server by its first bytes: some kinds speak first, others answer with an error. Nothing of a
// login is sent.
func listensAt(at string, patience time.Duration) listener {
	said := saidTo(at, "PING\r\n", patience)
	starts := func(texts ...string) bool {
		for _, text := range texts {
			if bytes.HasPrefix(said, []byte(text)) {
				return true
			}
		}
		return false
	}
	switch {
	case starts("+PONG", "-NOAUTH", "-LOADING", "-ERR", "-DENIED", "-MASTERDOWN"):
		return listensRedis
	case starts("\x15\x03"): // an alert of TLS
		return listensInTLSAlone
	case len(said) > 5 && said[3] == 0 && (said[4] == 10 || said[4] == 0xff): // a greeting, or an error instead of it
		return listensMySQL
	case starts("HTTP/", "<", "INFO ", "SSH-", "220 ", "220-", "* OK", "AMQP"):
		return listensOther
	}
	return listensUnseen
}

// saidTo sends text to the address at, and returns the first bytes of the answer, 64 at most. It returns none if nothing is answered within patience.
func saidTo(at, text string, patience time.Duration) []byte {
	conn, err := net.DialTimeout("tcp", at, patience)
	if err != nil {
		return nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience)) // without a deadline it ends with the connection
	if _, err := io.WriteString(conn, text); err != nil {
		return nil
	}
	said := make([]byte, 64)
	n, _ := conn.Read(said)
	return said[:n]
}
