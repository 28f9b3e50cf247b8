package bolt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// record is a pending record of ordinary size.
func record(key string) persist.Record {
	sum := sha256.Sum256([]byte(key))
	return persist.Record{
		ID: persist.ID{Account: "acct", Key: key}, Origin: "https://api.example:443", Method: "POST", Target: "/v1/charges",
		Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(`{"amount":100,"currency":"eur","customer":"cus_1"}`),
		Carrier: "header", CarrierName: "Idempotency-Key", Protected: true, WireKey: key, Profile: "draft-07", ProfileVersion: "7",
		Window: 24 * time.Hour, Fingerprint: sum[:], Recipe: "1 content-type", Created: time.Unix(1_750_000_000, 123).UTC(),
	}
}

func sized(key string, body int) persist.Record {
	r := record(key)
	r.Body = bytes.Repeat([]byte(key), body/len(key)+1)[:body]
	return r
}

// confirmed is r with an answer.
func confirmed(r persist.Record) persist.Record {
	r.State, r.Finished = persist.StateConfirmed, r.Created.Add(time.Minute)
	r.Answer = &persist.Answer{Status: 201, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(`{"id":"ch_1"}`), At: r.Finished}
	return r
}

func open(t testing.TB, path string) *bolt.Journal {
	t.Helper()
	return openWith(t, path, bolt.Options{})
}

// tryOpen opens a journal as a program does that says that it is built with the
// reviewed version of bbolt, which test binaries do not, unless opts says otherwise.
func tryOpen(path string, opts bolt.Options) (*bolt.Journal, error) {
	return bolt.Open(path, bolt.Reviewing(opts))
}

func openWith(t testing.TB, path string, opts bolt.Options) *bolt.Journal {
	t.Helper()
	j, err := tryOpen(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func newPath(t testing.TB) string { return filepath.Join(testrun.Dir(t), "journal.db") }

func begin(t testing.TB, j *bolt.Journal, r persist.Record) persist.Record {
	t.Helper()
	got, created, err := j.Begin(context.Background(), r)
	if err != nil || !created {
		t.Fatalf("Begin of %q: created %t, error %v", r.Key, created, err)
	}
	return got
}

func finish(t testing.TB, j *bolt.Journal, r persist.Record) {
	t.Helper()
	if err := j.Finish(context.Background(), confirmed(r)); err != nil {
		t.Fatalf("Finish of %q: %v", r.Key, err)
	}
}

func flush(t testing.TB, j *bolt.Journal) {
	t.Helper()
	if err := j.Flush(context.Background()); err != nil {
		t.Fatalf("Flush: %v", err)
	}
}

func closeIt(t testing.TB, j *bolt.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// contents is what a journal holds, one line a record: everything that a test
// compares.
func contents(j *bolt.Journal) (lines []string, err error) {
	for r, err := range j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, line(&r))
	}
	return lines, nil
}

func line(r *persist.Record) string {
	answer := "none"
	if a := r.Answer; a != nil {
		answer = fmt.Sprintf("%d %x", a.Status, sha256.Sum256(a.Body))
	}
	marks := fmt.Sprintf("swept %t unreported %t enqueued %t", r.Swept, r.Unreported, r.Enqueued)
	return fmt.Sprintf("%d %s/%s revision %d %v %s attempts %d body %x answer %s",
		r.Seq, r.Account, r.Key, r.Revision, r.State, marks, r.Attempts, sha256.Sum256(r.Body), answer)
}

func mustContents(t testing.TB, j *bolt.Journal) []string {
	t.Helper()
	lines, err := contents(j)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return lines
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantErr checks an error, and that it is one line that names the file.
func wantErr(t testing.TB, err, target error, path string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got error %v, want %v", err, target)
		return
	}
	if s := err.Error(); !bytes.Contains([]byte(s), []byte(path)) || bytes.ContainsRune([]byte(s), '\n') {
		t.Errorf("error %q is not one line that names %s", s, path)
	}
}

// mkdir makes an empty directory, if it is not there.
func mkdir(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "journal.db")); err != nil {
		t.Fatal(err)
	}
}
