package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// packet is max_allowed_packet of the tests' own server.
const packet = 64 << 10

// shop is a server that answers with a body of so many bytes, and a client on a journal.
type shop struct {
	*httptest.Server
	client *oncehttp.Client
	sends  atomic.Int32
	status int
	body   string
	header string
}

// newShop is a shop of which the test's end disposes.
func newShop(t *testing.T, j persist.Journal) *shop {
	t.Helper()
	s := &shop{status: http.StatusCreated}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.sends.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if s.header != "" {
			w.Header().Set("X-Long", s.header)
		}
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.body)
	}))
	t.Cleanup(s.Close)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: sqltest.Loopback(), Retry: oncehttp.Policy{MaxAttempts: 1}, MaxResponseHeaderBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s.client = client
	return s
}

// order is a request with a body of n bytes.
func (s *shop) order(t *testing.T, n int) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(strings.Repeat("\x00", n)))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// TestPacket: what does not fit into max_allowed_packet.
func TestPacket(t *testing.T) {
	t.Parallel()
	own := ownServer(t, fmt.Sprintf("--max-allowed-packet=%d", packet))
	db, url := inOwn(t, own)
	j := open(t, url, journal.Options{})
	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "k1", Secret: make([]byte, 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	opts := journal.Options{Database: "sealed"}
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE sealed"); err != nil {
		t.Fatal(err)
	}
	if err := journal.Migrate(t.Context(), url, opts); err != nil {
		t.Fatal(err)
	}
	sealed, err := sealer.Journal(t.Context(), open(t, url, opts))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("requests", func(t *testing.T) { packetRequests(t, j) })
	t.Run("transactions", func(t *testing.T) { packetTransactions(t, own, db, j) })
	t.Run("answers", func(t *testing.T) { packetAnswers(t, j, "plain") })
	t.Run("sealed answers", func(t *testing.T) { packetAnswers(t, sealed, "sealed") })
	t.Run("lowered", func(t *testing.T) { packetLowered(t, db, url) })
}

// tooLarge checks the error of a call that could not begin an operation.
func tooLarge(t *testing.T, name string, err error, size int) {
	t.Helper()
	if !errors.Is(err, persist.ErrTooLarge) || !errors.Is(err, persist.ErrInvalid) || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("%s: %v; want ErrTooLarge", name, err)
		return
	}
	for _, part := range []string{fmt.Sprint(size), fmt.Sprint(packet), "max_allowed_packet"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q does not name %s", name, err, part)
		}
	}
}

// packetRequests: a request at the bound is begun, whatever its bytes, and one past it had no effect, whoever chose the key.
func packetRequests(t *testing.T, j persist.Journal) {
	s := newShop(t, j)
	for past := range 2 {
		for name, call := range map[string]func(*http.Request, oncehttp.Key) error{
			"Do": func(req *http.Request, key oncehttp.Key) error {
				resp, err := s.client.DoKey(req, key)
				if err == nil {
					_ = resp.Body.Close()
				}
				return err
			},
			"Do-without-a-key": func(req *http.Request, _ oncehttp.Key) error {
				resp, err := s.client.Do(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				return err
			},
			"Enqueue": s.client.Enqueue,
		} {
			key, before := oncehttp.Key(fmt.Sprintf("%s-%d", name, past)), s.sends.Load()
			err := call(s.order(t, packet+past), key)
			if past == 0 {
				if err != nil {
					t.Errorf("%s of %d bytes: %v", name, packet, err)
				}
				continue
			}
			tooLarge(t, name, err, packet+past)
			if !errors.Is(err, oncehttp.ErrNoEffect) || errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrBodyTooLarge) || s.sends.Load() != before {
				t.Errorf("%s of %d bytes: %v, and it was sent: %t; want no effect", name, packet+past, err, s.sends.Load() != before)
			}
			if _, err := j.Get(t.Context(), persist.ID{Key: string(key)}); !errors.Is(err, persist.ErrNotFound) {
				t.Errorf("%s of %d bytes: %v, want no record", name, packet+past, err)
			}
		}
	}
}

// packetTransactions: in a transaction of the caller's own a record that does not fit is refused before anything is written, and the
// transaction goes on, whatever the caller's driver does with what is large.
func packetTransactions(t *testing.T, own *sqltest.OwnServer, db *sql.DB, j persist.Journal) {
	s := newShop(t, j)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE journal.orders (id INT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, params := range map[string]string{
		"default": "", "interpolated": "?interpolateParams=true", "bounded": "?interpolateParams=true&maxAllowedPacket=0", "prepared": "?maxAllowedPacket=0",
	} {
		theirs, err := sql.Open("mysql", "root@tcp("+own.Address+")/journal"+params)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = theirs.Close() })
		for _, size := range []int{100, packet / 4, packet / 2, packet - 3000, packet, packet + 1, 20 * packet} {
			n++
			rec, err := s.client.Prepare(s.order(t, size), oncehttp.Key(fmt.Sprint(name, size)))
			if err != nil {
				t.Fatal(err)
			}
			fits, err := beginBeside(t.Context(), theirs, n, rec)
			if size <= packet-3000 && !fits {
				t.Errorf("%s: %d bytes are refused: %v", name, size, err)
			} else if size >= packet && (fits || !errors.Is(err, persist.ErrTooLarge) || !strings.Contains(err.Error(), "max_allowed_packet")) {
				t.Errorf("%s: %d bytes: begun %t, %v", name, size, fits, err)
			}
			if _, err := j.Get(t.Context(), rec.ID); (err == nil) != fits {
				t.Errorf("%s: %d bytes: Get: %v, and it was begun: %t", name, size, err, fits)
			}
		}
	}
	var orders int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM journal.orders").Scan(&orders); err != nil || orders != n {
		t.Errorf("%d orders, %v; want %d", orders, err, n)
	}
}

// beginBeside begins a record, and inserts an order all the same if that does not fit.
func beginBeside(ctx context.Context, db *sql.DB, order int, rec persist.Record) (fits bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	_, fits, begun := journal.Begin(ctx, tx, rec)
	if begun != nil && !errors.Is(begun, persist.ErrTooLarge) {
		return false, begun
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?)", order); err != nil {
		return false, err
	}
	return fits, errors.Join(begun, tx.Commit())
}

// packetAnswers: an answer that does not fit is given to the caller, and its record ends as confirmed, without the body; without the
// header, too, where that alone is too large.
func packetAnswers(t *testing.T, j persist.Journal, kind string) {
	s := newShop(t, j)
	for name, c := range map[string]struct {
		status, body, header int
		dropped, noHeader    bool
	}{
		"small":          {201, 100, 0, false, false},
		"nearly-too-big": {201, packet - 1000, 0, false, false},
		"too-large":      {201, packet + 1, 0, true, false},
		"very-large":     {201, 20 * packet, 0, true, false},
		"refused":        {402, 2 * packet, 0, true, false},
		"long-header":    {201, 100, 2 * packet, true, true},
		"both":           {201, 2 * packet, 2 * packet, true, true},
	} {
		s.status, s.body, s.header = c.status, `"`+strings.Repeat("b", c.body-2)+`"`, strings.Repeat("h", c.header)
		key, before := oncehttp.Key(kind+name), s.sends.Load()
		resp, err := s.client.DoKey(s.order(t, 10), key)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != s.body {
			t.Errorf("%s: %d bytes of the answer, %v; want %d", name, len(body), err, c.body)
		}
		_ = resp.Body.Close()
		if err := s.client.Flush(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rec, err := j.Get(t.Context(), persist.ID{Key: string(key)})
		if err != nil {
			t.Fatal(err)
		}
		a := rec.Answer
		if rec.State != persist.StateConfirmed || a == nil || a.Status != c.status || a.BodyDropped != c.dropped || (len(a.Body) == 0) != c.dropped || (a.Header == nil) != c.noHeader {
			t.Errorf("%s: it is %v, with the answer %.200v", name, rec.State, a)
		}
		if n := s.sends.Load() - before; n != 1 {
			t.Errorf("%s: %d sends", name, n)
		}
	}
}

// packetLowered: the server's bound was lowered since the journal was opened, which its connections learn when they are made.
func packetLowered(t *testing.T, db *sql.DB, url string) {
	j := open(t, url, journal.Options{MaxConns: 1})
	if _, err := db.ExecContext(t.Context(), fmt.Sprintf("SET GLOBAL max_allowed_packet = %d", packet/2)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_, _ = db.ExecContext(context.Background(), fmt.Sprintf("SET GLOBAL max_allowed_packet = %d", packet))
	}()
	dropConnections(t, db)
	s := newShop(t, j)
	resp, err := s.client.DoKey(s.order(t, packet/2+1), "lowered")
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, persist.ErrTooLarge) || !errors.Is(err, oncehttp.ErrNoEffect) || s.sends.Load() != 0 {
		t.Errorf("%v after %d sends; want no effect", err, s.sends.Load())
	}
}
