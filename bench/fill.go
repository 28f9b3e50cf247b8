package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// keyKind is the kind of a journal's keys.
type keyKind string

const (
	businessKeys keyKind = "business keys"
	randomKeys   keyKind = "random keys"
)

// record returns the record that Do begins for payment n: with the business key of
// businessParts, or with a generated random one. It is marked as maybe sent at now, as Do marks it.
func (k keyKind) record(n int64, now time.Time) persist.Record {
	var key oncehttp.Key
	if k == randomKeys {
		key = oncehttp.RandomKey()
	} else {
		key = oncehttp.NewScope("order").Key(businessParts(n))
	}
	fingerprint := make([]byte, 32)
	binary.BigEndian.PutUint64(fingerprint, scatter(n))
	return persist.Record{
		ID: persist.ID{Key: string(key)}, Generated: k == randomKeys,
		Origin: "https://api.payments.example:443", Method: http.MethodPost, Target: "/v1/payments",
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   fmt.Appendf(nil, `{"amount":4200,"currency":"eur","customer":"cus_%d","order":"%d","note":"as agreed"}`, n%977, n),
		// As Do sets them for the default profile.
		Carrier: "header", CarrierName: "Idempotency-Key", Protected: true, WireKey: string(key), Profile: "draft-07", ProfileVersion: "07",
		Window: 24 * time.Hour, Fingerprint: fingerprint, Recipe: "v1 Content-Type",
		Created: now, MaybeSent: true, FirstSent: now,
	}
}

// book is a bolt journal with its syncs counted. They can be slowed, or skipped
// while it is filled. It is safe for concurrent use.
type book struct {
	*bolt.Journal

	path  string
	kind  keyKind
	next  *atomic.Int64 // the number of the latest payment; shared with other books
	syncs atomic.Int64  // so far, skipped ones included
	mode  atomic.Int64  // of type syncMode
}

// syncMode is the treatment of a journal's syncs.
type syncMode int64

const (
	syncDisk syncMode = iota // fdatasync
	syncSlow                 // fdatasync, and slowSync more
	syncNone                 // skipped: for preparations that are not measured
)

const slowSync = 5 * time.Millisecond

// openBook opens, or creates, a bolt journal whose records the benchmark counts and fills in (a book). kind is that of its keys;
// next numbers the payments, and may be shared. The caller must call Close. After an error b is not to be used.
func openBook(path string, kind keyKind, next *atomic.Int64) (*book, error) {
	b := &book{path: path, kind: kind, next: next}
	j, err := bolt.Open(path, bolt.Options{Sync: b.sync})
	b.Journal = j
	return b, err
}

// sync makes the journal's file durable, as the mode of the journal (b.mode) says, and counts the calls. It is the journal's bolt.Options.Sync.
func (b *book) sync(f *os.File) error {
	b.syncs.Add(1)
	return syncMode(b.mode.Load()).sync(f)
}

// sync makes f durable, by the mode: not at all, or by fdatasync, in syncSlow after a pause.
func (m syncMode) sync(f *os.File) error {
	switch m {
	case syncNone:
		return nil
	case syncSlow:
		time.Sleep(slowSync)
	}
	return fdatasync(f)
}

// begin writes the first records of n new operations, by as many goroutines as writers. It calls done (unless nil) with each record. A key that exists already
// is an error, since every begin must write.
func (b *book) begin(ctx context.Context, n int64, writers int, done func(persist.Record) error) error {
	now := time.Now()
	return spread(ctx, n, writers, func(int64) error {
		rec, created, err := b.Begin(ctx, b.kind.record(b.next.Add(1), now))
		if err == nil && !created {
			err = errors.New("a key stands already")
		}
		if err != nil || done == nil {
			return err
		}
		return done(rec)
	})
}

// finish confirms a record with an answer, as Do does.
func (b *book) finish(ctx context.Context, rec persist.Record) error {
	rec.State, rec.Finished, rec.Attempts, rec.Sends = persist.StateConfirmed, rec.Created, 1, 1
	rec.Answer = &persist.Answer{
		Status: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(answerBody), At: rec.Created,
	}
	return b.Finish(ctx, rec)
}

// fill begins n records as begin does, without waiting for the disk, and syncs once at the end, since filling is not measured. From then on each write is
// synced (syncDisk).
func (b *book) fill(ctx context.Context, n int64, done func(persist.Record) error) error {
	b.mode.Store(int64(syncNone))
	defer b.mode.Store(int64(syncDisk))
	if err := b.begin(ctx, n, 1024, done); err != nil {
		return err
	}
	if err := b.Flush(ctx); err != nil {
		return err
	}
	f, err := os.Open(b.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// spread calls op with 1 to n from as many goroutines as workers, and waits. op must be safe for concurrent use. The first error ends it and is returned.
func spread(ctx context.Context, n int64, workers int, op func(i int64) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := next.Add(1); i <= n && ctx.Err() == nil; i = next.Add(1) {
				if err := op(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
