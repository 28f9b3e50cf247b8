package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// keyed is a server that notes in which header each key came, and loses the first
// answers.
type keyed struct {
	*counted
	mu   sync.Mutex
	lose int
	came []string // "Header: key", sorted by arrival
}

func serveKeyed(t *testing.T, lose int) *keyed {
	k := &keyed{lose: lose}
	k.counted = serve(t, func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, name := range []string{"Idempotency-Key", "X-Request-Id", "X-Idempotency-Key"} {
			for _, value := range r.Header.Values(name) {
				k.came = append(k.came, name+": "+value)
			}
		}
		if k.lose--; k.lose >= 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
	})
	return k
}

// expect fails the test unless just these keys came since the last call.
func (k *keyed) expect(t *testing.T, want ...string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	slices.Sort(k.came)
	if !slices.Equal(k.came, want) {
		t.Errorf("keys came as %q, want %q", k.came, want)
	}
	k.came = nil
}

// A key travels in the header of --key-header and in no other, through a lost answer,
// a run that forgets the flag or says another, and a resume.
func TestBatchKeyHeader(t *testing.T) {
	t.Parallel()
	s := serveKeyed(t, 2)
	file := writeFile(t, filepath.Join(shortDir(t), "in.csv"), "id\na\nb\n")
	batch := fast("batch", file, "--url", s.url, "--key", "o:{id}", "--max-attempts", "1")
	run(t, append(batch, "--key-header", "x-request-ID")...).want(t, exitUnknown)
	s.expect(t, "X-Request-Id: idemp:o:a", "X-Request-Id: idemp:o:b")

	j := file + ".oncehttp.db"
	forgotten := "oncehttp: journal " + j + ": it was begun with --key-header X-Request-Id; say that again, or --key-header with another name, on purpose"
	run(t, batch...).usage(t, forgotten)
	run(t, append(batch, "--profile", "stripe")...).usage(t, forgotten)

	got := run(t, append(batch, "--key-header", "X-Idempotency-Key")...).want(t, exitUnknown)
	for _, l := range got.lines(t) {
		if l.Result != resultUnknown || l.Sends != 0 || !strings.HasSuffix(l.why(), ": it was begun with --key-header X-Request-Id; say that again, or finish it with oncehttp journal resume") {
			t.Errorf("row %d: %+v: %s", l.Row, l, l.why())
		}
	}
	if !strings.Contains(got.err, "oncehttp journal resume --journal "+j) || strings.Contains(got.err, "run the same command again") {
		t.Errorf("stderr %q", got.err)
	}
	send := run(t, "send", "POST", s.url, "-d", `{"id":"a"}`, "--key", "idemp:o:a", "--journal", j).want(t, exitUsage)
	if !strings.Contains(send.err, "begun with --key-header X-Request-Id") {
		t.Errorf("send: stderr %q", send.err)
	}
	s.expect(t)

	resumed := run(t, fast("journal", "resume", "--journal", j)...).want(t, exitOK)
	s.expect(t, "X-Request-Id: idemp:o:a", "X-Request-Id: idemp:o:b")
	if n := len(resumed.lines(t)); n != 2 {
		t.Errorf("%d lines of resume, want 2:\n%s", n, resumed.out)
	}
	run(t, append(batch, "--key-header", "X-Request-ID")...).want(t, exitOK)
	s.expect(t)
}

// work goes on under the header of --key-header also with what is left in the journal after it has started.
func TestWorkKeyHeader(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, journal string) {
		s := serveKeyed(t, 1)
		w := startWork(t, fast("--journal", journal)...)
		defer time.AfterFunc(time.Minute, func() { _ = w.cmd.Process.Kill() }).Stop() // else the test would wait for a line
		batch := fast("batch", writeFile(t, "in.csv", "id\na\n"), "--url", s.url, "--key", "o:{id}", "--journal", journal)
		run(t, append(batch, "--key-header", "X-Request-ID", "--max-attempts", "1")...).want(t, exitUnknown)
		if l, more := w.next(t); !more || l.Result != resultDone || l.Key != "idemp:o:a" {
			t.Errorf("%+v: %s", l, l.why())
		}
		s.expect(t, "X-Request-Id: idemp:o:a", "X-Request-Id: idemp:o:a")
		if got := w.stop(t, syscall.SIGTERM); got != exitOK {
			t.Errorf("status %d", got)
		}
	})
}

// Other operations in the journal are no reason to refuse a batch: those of another
// server, and those that another header was chosen for on purpose.
func TestBatchKeyHeaderOfOthers(t *testing.T) {
	t.Parallel()
	one, two := serveKeyed(t, 0), serveKeyed(t, 0)
	file := writeFile(t, "in.csv", "id\na\n")
	run(t, "batch", file, "--url", one.url, "--key", "o:{id}", "--key-header", "X-Request-ID").want(t, exitOK)
	run(t, "batch", file, "--url", two.url, "--key", "p:{id}", "--journal", file+".oncehttp.db").want(t, exitOK)
	two.expect(t, "Idempotency-Key: idemp:p:a")
	run(t, "batch", file, "--url", one.url, "--key", "q:{id}", "--key-header", "idempotency-key").want(t, exitOK)
	one.expect(t, "Idempotency-Key: idemp:q:a", "X-Request-Id: idemp:o:a")
}

// send puts its key, chosen or made, into the header, and finds it there.
func TestSendKeyHeader(t *testing.T) {
	t.Parallel()
	s := serveKeyed(t, 0)
	j := journalIn(t)
	run(t, "send", "POST", s.url, "-d", "1", "--key", "k", "--journal", j, "--key-header", "X-Request-ID").want(t, exitOK)
	run(t, "send", "POST", s.url, "-d", "1", "-H", "X-Request-ID: own", "--journal", j, "--key-header", "X-Request-ID").want(t, exitOK)
	s.expect(t, "X-Request-Id: k", "X-Request-Id: own")
	got := run(t, "send", "POST", s.url, "-d", "2", "--journal", j, "--key-header", "X-Request-ID").want(t, exitOK)
	made, _, _ := strings.Cut(strings.TrimPrefix(got.err, "key: "), "\n")
	s.expect(t, "X-Request-Id: "+made)
	got = run(t, "send", "POST", s.url, "-d", "3", "--key", "k3", "-H", "Idempotency-Key: k3", "--journal", j, "--key-header", "X-Request-ID").want(t, exitUsage)
	if !strings.Contains(got.err, "does not use the key header Idempotency-Key") {
		t.Errorf("stderr %q", got.err)
	}
	s.expect(t)
}

func TestKeyHeaderUsage(t *testing.T) {
	t.Parallel()
	s := refusing(t)
	file := writeFile(t, "in.csv", "id\n1\n")
	for header, want := range map[string]string{
		"X Request":              "--key-header X Request: not the name of a header",
		"X:":                     "--key-header X:: not the name of a header",
		strings.Repeat("x", 129): "--key-header " + strings.Repeat("x", 40) + "…: not the name of a header",
		"connection":             "--key-header connection: this header has another use; no key can travel in it",
		"Host":                   "--key-header Host: this header has another use; no key can travel in it",
		"Authorization":          "--key-header Authorization: this header has another use; no key can travel in it",
		"stripe-account":         "--key-header stripe-account: this header has another use; no key can travel in it",
		"Stripe-Version":         "--key-header Stripe-Version: this header has another use; no key can travel in it",
	} {
		run(t, "batch", file, "--url", s.url, "--key", "o:{id}", "--profile", "stripe", "--key-header", header).usage(t, "oncehttp: "+want)
		run(t, "send", "POST", s.url, "--profile", "stripe", "--key-header", header, "--journal", journalIn(t)).usage(t, "oncehttp: "+want)
		run(t, "mock", "--profile", "stripe", "--key-header", header).usage(t, "oncehttp: "+want)
	}
}

// Only a header can be another one, and the profile's own is no other.
func TestCarriedBy(t *testing.T) {
	t.Parallel()
	own := profile.Draft07()
	for _, header := range []string{"", "Idempotency-Key", "idempotency-key"} {
		if p, err := carriedBy(own, header); p != own || err != nil {
			t.Errorf("%q: %v, %v", header, p, err)
		}
	}
	p, err := carriedBy(own, "x-request-id")
	if err != nil || p.Name != "draft-07@X-Request-Id" || p.Carrier != (profile.Carrier{Place: profile.Header, Name: "X-Request-Id"}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, kept := own.Sources["Carrier"]; !kept || own.Name != "draft-07" {
		t.Error("the profile itself was changed")
	}
	body := profile.Draft07()
	body.Name, body.Carrier = "acme", profile.Carrier{Place: profile.Body, Name: "/request_id"}
	_, err = carriedBy(body, "X-Request-ID")
	if want := "--key-header X-Request-ID: the keys of profile acme travel in the body (/request_id), not in a header"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
