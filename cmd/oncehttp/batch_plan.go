package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp"
)

// plan makes a request out of each row.
type plan struct {
	method string
	target *url.URL
	header http.Header
	key    keyTemplate
	needs  rowNeeds
	// generation is the try: 1 is the first.
	generation int
}

// keyOf is the row's key in this generation of it.
func (p *plan) keyOf(r *row, generation int) oncehttp.Key {
	return p.key.key(r.fields).Generation(generation)
}

// request is the row's request. The caller's header map is shared and not changed.
func (p *plan) request(ctx context.Context, body []byte) *http.Request {
	return newRequest(ctx, p.method, p.target, p.header, body)
}

// survey is what the first reading of the input found: that every row is sound,
// and what each key names. It keeps 16 bytes each of a key's and a body's hash
// and a row number, so that memory grows by some 60 bytes a row.
type survey struct {
	rows    int
	account string           // of every record, the scoping headers in it
	client  *oncehttp.Client // prepares requests and sends none
	keys    map[[16]byte]named
}

type named struct {
	body [16]byte
	row  int
}

// surveyRows reads the whole input and sends nothing.
func surveyRows(ctx context.Context, in *input, p *plan, cfg oncehttp.Config) (*survey, error) {
	rows, err := newRows(in.name, in.reader(), p.needs)
	if err != nil {
		return nil, err
	}
	// Prepare asks the client itself whether it would take the request and the
	// key. It writes nothing, so that there has to be no journal yet.
	cfg.Journal = noJournal{}
	cfg.Authorize = func(*http.Request) error { return nil } // Do has the caller's credentials
	client, err := oncehttp.New(cfg)
	if err != nil {
		return nil, plain(err)
	}
	s := &survey{keys: make(map[[16]byte]named), client: client}
	for {
		r, err := rows.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, &exitError{status: exitUnknown, err: errors.New("interrupted before anything was sent")}
		}
		key := p.keyOf(&r, p.generation)
		rec, err := client.Prepare(p.request(ctx, r.body), key)
		if err != nil {
			return nil, &inputError{file: in.name, row: r.number, line: r.line, err: plain(err)}
		}
		s.account = rec.Account
		if err := s.add(key, &r); err != nil {
			return nil, &inputError{file: in.name, row: r.number, line: r.line, err: err}
		}
	}
}

// add: the same key with the same bytes is one operation; with other bytes it is
// two that would pass for one.
func (s *survey) add(key oncehttp.Key, r *row) error {
	s.rows++
	k, n := short([]byte(key)), named{body: short(r.body), row: r.number}
	first, found := s.keys[k]
	switch {
	case !found:
		s.keys[k] = n
	case first.body != n.body:
		return fmt.Errorf("has the key %q of row %d, and other content", key, first.row)
	}
	return nil
}

// saw reports whether the first reading found this row, so that a file which
// changes between the two readings sends nothing that was not checked. first is
// the number of the first row with its key.
func (s *survey) saw(key oncehttp.Key, r *row) (first int, found bool) {
	n, found := s.keys[short([]byte(key))]
	return n.row, found && n.body == short(r.body)
}

func short(b []byte) [16]byte {
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}
