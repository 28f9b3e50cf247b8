package place

import (
	"encoding/gob"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestHolderGoes: a reader has found the holder of a file, and the holder goes before the reader asks. The reader opens the file.
func TestHolderGoes(t *testing.T) {
	t.Parallel()
	at := Place{Name: "journal", Path: filepath.Join(t.TempDir(), "j.db")}
	held, err := Open(at, true)
	if err != nil {
		t.Fatal(err)
	}
	rec := persist.Record{ID: persist.ID{Key: "k"}, Method: "POST", Origin: "https://api.example.com", Target: "/pay", WireKey: "k", Recipe: "1", Profile: "draft-07", Fingerprint: make([]byte, 32), State: persist.StatePending, Created: time.Now()}
	if _, _, err := held.Begin(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	holder := Hold(at, held, held)
	j, without := OpenHeld(at.Path), OpenHeld(at.Path)
	if j == nil || without == nil {
		t.Fatal("the holder does not answer")
	}
	j.Reopens(func() (persist.Journal, error) { return Open(at, false) })
	if _, err := j.Get(t.Context(), rec.ID); err != nil {
		t.Errorf("through the holder: %v", err)
	}
	holder.Close()
	gone := time.AfterFunc(2*heldPause, func() { _ = held.Close() }) // the holder gives up the file a moment later
	defer gone.Stop()
	if got, err := j.Get(t.Context(), rec.ID); err != nil || got.Target != "/pay" {
		t.Errorf("after the holder has gone: %q, %v", got.Target, err)
	}
	n := 0
	for _, err := range j.List(t.Context(), persist.Query{}) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d records listed, want 1", n)
	}
	if _, err := without.Get(t.Context(), rec.ID); err == nil {
		t.Error("without Reopens the file was read")
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// TestHolderGoesAfterHello: the holder says hello, and goes before it has read the question. The reader opens the file.
func TestHolderGoesAfterHello(t *testing.T) {
	t.Parallel()
	at := Place{Name: "journal", Path: filepath.Join(t.TempDir(), "j.db")}
	j, err := Open(at, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(*HeldJournal) error{
		"list": func(j *HeldJournal) error {
			for _, err := range j.List(t.Context(), persist.Query{}) {
				return err
			}
			return nil
		},
		"fact": func(j *HeldJournal) error {
			_, err := j.Fact(t.Context(), persist.FactOrigins, nil, nil)
			return err
		},
	} {
		l, err := net.Listen("unix", socketOf(at.Path))
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			conn, err := l.Accept()
			if err == nil {
				_ = gob.NewEncoder(conn).Encode(holderHello{})
				_ = conn.Close()
			}
			_ = l.Close()
		}()
		reader := &HeldJournal{path: at.Path}
		reader.Reopens(func() (persist.Journal, error) { return Open(at, false) })
		if err := read(reader); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		<-served
		if err := reader.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHolderGoesInAListing: the holder goes after one of three records. The reader opens the file, and has each record once.
func TestHolderGoesInAListing(t *testing.T) {
	t.Parallel()
	at := Place{Name: "journal", Path: filepath.Join(t.TempDir(), "j.db")}
	held, err := Open(at, true)
	if err != nil {
		t.Fatal(err)
	}
	var first persist.Record
	for _, key := range []string{"a", "b", "c"} {
		rec := persist.Record{ID: persist.ID{Key: key}, Method: "POST", Origin: "https://api.example.com", Target: "/pay", WireKey: key, Recipe: "1", Profile: "draft-07", Fingerprint: make([]byte, 32), State: persist.StatePending, Created: time.Now()}
		rec, _, err := held.Begin(t.Context(), rec)
		if err != nil {
			t.Fatal(err)
		}
		if key == "a" {
			first = rec
		}
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socketOf(at.Path))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer l.Close()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		enc, dec := gob.NewEncoder(conn), gob.NewDecoder(conn)
		_ = enc.Encode(holderHello{})
		if dec.Decode(&holderQuery{}) == nil {
			_ = enc.Encode(holderReply{Record: first, More: true})
		}
	}()
	reader := &HeldJournal{path: at.Path}
	reader.Reopens(func() (persist.Journal, error) { return Open(at, false) })
	var keys string
	for rec, err := range reader.List(t.Context(), persist.Query{}) {
		if err != nil {
			t.Error(err)
		}
		keys += rec.Key
	}
	if keys != "abc" {
		t.Errorf("listed %q, want each of a, b and c once", keys)
	}
	<-served
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}
