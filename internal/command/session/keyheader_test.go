package session_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/profile"
)

// keyed is a server that notes in which header each key came, and loses the first
// answers.
type keyed struct {
	*commandtest.Counted
	mu   sync.Mutex
	lose int
	came []string // "Header: key", sorted by arrival
}

func serveKeyed(t *testing.T, lose int) *keyed {
	k := &keyed{lose: lose}
	k.Counted = commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
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
	file := commandtest.WriteFile(t, filepath.Join(commandtest.ShortDir(t), "in.csv"), "id\na\nb\n")
	batch := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1")
	commandtest.Run(t, append(batch, "--key-header", "x-request-ID")...).Want(t, terminal.ExitUnknown)
	s.expect(t, "X-Request-Id: idemp:o:a", "X-Request-Id: idemp:o:b")

	j := file + ".oncehttp.db"
	forgotten := "oncehttp: journal " + j + ": it was begun with --key-header X-Request-Id; say that again, or --key-header with another name and --new-journal, on purpose"
	commandtest.Run(t, batch...).Usage(t, forgotten)
	commandtest.Run(t, append(batch, "--profile", "stripe")...).Usage(t, forgotten)

	commandtest.Run(t, append(batch, "--key-header", "X-Request")...).Usage(t, forgotten)
	got := commandtest.Run(t, append(batch, "--key-header", "X-Idempotency-Key", "--new-journal")...).Want(t, terminal.ExitUnknown)
	for _, l := range got.Lines(t) {
		if l.Result != results.Unknown || l.Sends != 1 || !strings.HasSuffix(l.Why(), ": it was begun with --key-header X-Request-Id; say that again, or finish it with oncehttp journal resume") {
			t.Errorf("row %d: %+v: %s", l.Row, l, l.Why())
		}
	}
	if !strings.Contains(got.Err, "the rows' messages say what this run lacks: give it as the run that began them had it") {
		t.Errorf("stderr %q", got.Err)
	}
	send := commandtest.Run(t, "send", "POST", s.URL, "-d", `{"id":"a"}`, "--key", "idemp:o:a", "--journal", j).Want(t, terminal.ExitUsage)
	if !strings.Contains(send.Err, "begun with --key-header X-Request-Id") {
		t.Errorf("send: stderr %q", send.Err)
	}
	s.expect(t)

	resumed := commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", j)...).Want(t, terminal.ExitOK)
	s.expect(t, "X-Request-Id: idemp:o:a", "X-Request-Id: idemp:o:b")
	if n := len(resumed.Lines(t)); n != 2 {
		t.Errorf("%d lines of resume, want 2:\n%s", n, resumed.Out)
	}
	commandtest.Run(t, append(batch, "--key-header", "X-Request-ID")...).Want(t, terminal.ExitOK)
	s.expect(t)
}

// work goes on under the header of --key-header also with what is left in the journal after it has started.
func TestWorkKeyHeader(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		s := serveKeyed(t, 1)
		w := commandtest.StartWork(t, commandtest.Fast("--journal", journal)...)
		defer time.AfterFunc(time.Minute, func() { _ = w.Cmd.Process.Kill() }).Stop() // else the test would wait for a line
		batch := commandtest.Fast("batch", commandtest.WriteFile(t, "in.csv", "id\na\n"), "--url", s.URL, "--key", "o:{id}", "--journal", journal)
		commandtest.Run(t, append(batch, "--key-header", "X-Request-ID", "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
		if l, more := w.Next(t); !more || l.Result != results.Done || l.Key != "idemp:o:a" {
			t.Errorf("%+v: %s", l, l.Why())
		}
		s.expect(t, "X-Request-Id: idemp:o:a", "X-Request-Id: idemp:o:a")
		if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
			t.Errorf("status %d", got)
		}
	})
}

// Other operations in the journal are no reason to refuse a batch: those of another
// server, and those that another header was chosen for on purpose.
func TestBatchKeyHeaderOfOthers(t *testing.T) {
	t.Parallel()
	one, two := serveKeyed(t, 0), serveKeyed(t, 0)
	file := commandtest.WriteFile(t, "in.csv", "id\na\n")
	commandtest.Run(t, "batch", file, "--url", one.URL, "--key", "o:{id}", "--key-header", "X-Request-ID").Want(t, terminal.ExitOK)
	commandtest.Run(t, "batch", file, "--url", two.URL, "--key", "p:{id}", "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK)
	two.expect(t, "Idempotency-Key: idemp:p:a")
	commandtest.Run(t, "batch", file, "--url", one.URL, "--key", "q:{id}", "--key-header", "idempotency-key", "--new-journal").Want(t, terminal.ExitOK)
	one.expect(t, "Idempotency-Key: idemp:q:a", "X-Request-Id: idemp:o:a")
}

// send puts its key, chosen or made, into the header, and finds it there.
func TestSendKeyHeader(t *testing.T) {
	t.Parallel()
	s := serveKeyed(t, 0)
	j := commandtest.JournalIn(t)
	commandtest.Run(t, "send", "POST", s.URL, "-d", "1", "--key", "k", "--journal", j, "--key-header", "X-Request-ID").Want(t, terminal.ExitOK)
	commandtest.Run(t, "send", "POST", s.URL, "-d", "1", "-H", "X-Request-ID: own", "--journal", j, "--key-header", "X-Request-ID").Want(t, terminal.ExitOK)
	s.expect(t, "X-Request-Id: k", "X-Request-Id: own")
	got := commandtest.Run(t, "send", "POST", s.URL, "-d", "2", "--journal", j, "--key-header", "X-Request-ID").Want(t, terminal.ExitOK)
	made, _, _ := strings.Cut(strings.TrimPrefix(got.Err, "key: "), "\n")
	s.expect(t, "X-Request-Id: "+made)
	got = commandtest.Run(t, "send", "POST", s.URL, "-d", "3", "--key", "k3", "-H", "Idempotency-Key: k3", "--journal", j, "--key-header", "X-Request-ID").Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, "does not use the key header Idempotency-Key") {
		t.Errorf("stderr %q", got.Err)
	}
	s.expect(t)
}

func TestKeyHeaderUsage(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
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
		commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--profile", "stripe", "--key-header", header).Usage(t, "oncehttp: "+want)
		commandtest.Run(t, "send", "POST", s.URL, "--profile", "stripe", "--key-header", header, "--journal", commandtest.JournalIn(t)).Usage(t, "oncehttp: "+want)
		commandtest.Run(t, "mock", "--profile", "stripe", "--key-header", header).Usage(t, "oncehttp: "+want)
	}
}

// Only a header can be another one, and the profile's own is no other.
func TestCarriedBy(t *testing.T) {
	t.Parallel()
	own := profile.Draft07()
	for _, header := range []string{"", "Idempotency-Key", "idempotency-key"} {
		if p, err := session.CarriedBy(own, header); p != own || err != nil {
			t.Errorf("%q: %v, %v", header, p, err)
		}
	}
	p, err := session.CarriedBy(own, "x-request-id")
	if err != nil || p.Name != "draft-07@X-Request-Id" || p.Carrier != (profile.Carrier{Place: profile.Header, Name: "X-Request-Id"}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, kept := own.Sources["Carrier"]; !kept || own.Name != "draft-07" {
		t.Error("the profile itself was changed")
	}
	body := profile.Draft07()
	body.Name, body.Carrier = "acme", profile.Carrier{Place: profile.Body, Name: "/request_id"}
	_, err = session.CarriedBy(body, "X-Request-ID")
	if want := "--key-header X-Request-ID: the keys of profile acme travel in the body (/request_id), not in a header"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
