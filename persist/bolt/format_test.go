package bolt_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
)

// formatOf is the version of the format that the file of a closed journal says.
func formatOf(path string) (string, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return "", err
	}
	format := ""
	err = db.View(func(tx *bbolt.Tx) error {
		format = string(tx.Bucket([]byte("oncehttp")).Get([]byte("format")))
		return nil
	})
	return format, errors.Join(err, db.Close())
}

// withKept is r with kept fields.
func withKept(r persist.Record) persist.Record {
	r.KeptFields = []persist.KeptField{{Pointer: "/amount", Value: "100"}, {Pointer: "/note", Omitted: true}}
	return r
}

// TestOldFile: a file of the version before there were kept fields opens, with its
// record and its tombstone, and takes kept fields from then on. The file is testdata
// that the code of that version has written: order-1 pending, order-2 swept.
func TestOldFile(t *testing.T) {
	t.Parallel()
	packed, err := os.Open("testdata/format1.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	image, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path := newPath(t)
	writeFile(t, path, image)
	j := open(t, path)
	ctx := context.Background()
	pending, err := j.Get(ctx, persist.ID{Account: "acct", Key: "order-1"})
	if err != nil || pending.State != persist.StatePending || string(pending.Body) != `{"amount":100}` || pending.KeptFields != nil {
		t.Errorf("the pending record is %+v, %v", pending, err)
	}
	swept, err := j.Get(ctx, persist.ID{Account: "acct", Key: "order-2"})
	if err != nil || !swept.Swept || swept.Status != 201 || swept.KeptFields != nil {
		t.Errorf("the tombstone is %+v, %v", swept, err)
	}
	begin(t, j, record("order-3"))
	closeIt(t, j)
	if f, err := formatOf(path); f != "1" || err != nil {
		t.Errorf("without kept fields the file's format is %q, %v; want 1, which older code reads", f, err)
	}
	j = open(t, path)
	begin(t, j, withKept(record("order-4")))
	closeIt(t, j)
	// TestLaterFormat shows what code does with a format that it does not know.
	if f, err := formatOf(path); f != "2" || err != nil {
		t.Errorf("with kept fields the file's format is %q, %v; want 2, which older code refuses", f, err)
	}
	j = open(t, path)
	got, err := j.Get(ctx, persist.ID{Account: "acct", Key: "order-4"})
	if want := withKept(record("order-4")).KeptFields; err != nil || !slices.Equal(got.KeptFields, want) {
		t.Errorf("kept fields %+v, %v; want %+v", got.KeptFields, err, want)
	}
}

// TestTokenFormat: a record whose key on the wire is a server's token sets the later format, too, and its token is there
// when the file is opened again.
func TestTokenFormat(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	r := record("order-1")
	r.ServerToken, r.WireKey = true, ""
	r = begin(t, j, r)
	closeIt(t, j)
	if f, err := formatOf(path); f != "2" || err != nil {
		t.Errorf("with a record that waits for its token the file's format is %q, %v; want 2", f, err)
	}
	j = open(t, path)
	r.Token, r.MaybeSent, r.FirstSent = "tok_1", true, time.Now().UTC()
	if _, err := j.Update(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	closeIt(t, j)
	got, err := open(t, path).Get(context.Background(), r.ID)
	if err != nil || got.KeyOnWire() != "tok_1" || !got.MaybeSent || !got.FirstSent.Equal(r.FirstSent) {
		t.Errorf("after the file was opened again: %+v, %v", got, err)
	}
}

// TestSweepKeeps: the tombstone of a record whose body lies outside its entry has the
// kept fields, also after the file was opened again.
func TestSweepKeeps(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	j := open(t, path)
	finish(t, j, begin(t, j, withKept(sized("order-1", 100<<10))))
	if n, err := j.Sweep(context.Background(), persist.Limits{KeepAnswer: -1, Now: time.Now()}); n != 1 || err != nil {
		t.Fatalf("Sweep: %d, %v", n, err)
	}
	closeIt(t, j)
	got, err := open(t, path).Get(context.Background(), persist.ID{Account: "acct", Key: "order-1"})
	if err != nil || !got.Swept || got.Body != nil || !slices.Equal(got.KeptFields, withKept(record("")).KeptFields) {
		t.Errorf("the tombstone is %+v, %v", got, err)
	}
}
