package place

import (
	"context"
	"encoding/gob"
	"net"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// If another process holds a journal, its readers ask that process for the operations being sent: a bolt file has no leases.

// lookWithin bounds the holder's look for one operation.
const lookWithin = 2 * time.Second

// lookers are clients on the holder's journal, one for each account. They share the journal's table of calls.
type lookers struct {
	journal persist.Journal

	mu      sync.Mutex
	clients map[string]*oncehttp.Client
}

// client returns the client for an account, by which sending looks operations up. It is made at the first call, and may send nothing: it has no origins.
func (l *lookers) client(account string) (*oncehttp.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clients[account]
	if c != nil {
		return c, nil
	}
	c, err := oncehttp.New(oncehttp.Config{Journal: l.journal, Origins: []string{}, Account: account})
	if err != nil {
		return nil, err
	}
	if l.clients == nil {
		l.clients = map[string]*oncehttp.Client{}
	}
	l.clients[account] = c
	return c, nil
}

// sending reports whether this process may be sending the operation now: a client of the same journal shows a lease owner (the process that may send) in its record
// only during a send. It is true, too, if the lookup fails.
func (l *lookers) sending(ctx context.Context, id persist.ID) bool {
	c, err := l.client(words.AccountName(id.Account))
	if err != nil {
		return true
	}
	ctx, stop := context.WithTimeout(ctx, lookWithin)
	defer stop()
	rec, err := c.Lookup(ctx, oncehttp.Key(id.Key), oncehttp.OfAccount(id.Account))
	return err != nil || rec.LeaseOwner != ""
}

// close closes all clients by which operations were looked up.
func (l *lookers) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		_ = c.Close() // it has begun nothing
	}
}

// answerSending answers a reader whether each operation that it asks for is being sent now, until the reader goes away. id is the first one.
func (h *Holder) answerSending(enc *gob.Encoder, dec *gob.Decoder, id persist.ID) error {
	for {
		if err := enc.Encode(h.looks.sending(h.ctx, id)); err != nil {
			return err
		}
		id = persist.ID{}
		if err := dec.Decode(&id); err != nil {
			return err
		}
	}
}

// sendingAsked is the connection for a reader's questions about operations being sent.
type sendingAsked struct {
	mu   sync.Mutex
	conn net.Conn
	enc  *gob.Encoder
	dec  *gob.Decoder
}

// close closes the connection by which Sending asks, if there is one.
func (a *sendingAsked) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn == nil {
		return nil
	}
	return a.conn.Close()
}

// Sending reports whether the holder may be sending an operation. The caller has read its record before. Sending returns true if the
// holder does not answer: then nobody acts on the record.
func (j *HeldJournal) Sending(id persist.ID) bool {
	a := &j.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	var question any = id // the first one on a connection is a holderQuery, each later one an id alone
	if a.conn == nil {
		conn, dec, err := j.ask()
		if err != nil {
			return true
		}
		a.conn, a.enc, a.dec = conn, gob.NewEncoder(conn), dec
		question = holderQuery{Sending: true, ID: id}
	}
	answer := true
	if a.enc.Encode(question) != nil || a.dec.Decode(&answer) != nil {
		return true
	}
	return answer
}
