package session_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// passcode is the value of a header that is called like no secret.
const passcode = "hush-31415"

// passcodeServer wants the passcode, and shows it in its answers. It fails for bodies with "later" until later is set.
func passcodeServer(t *testing.T) (url string, later *atomic.Bool) {
	t.Helper()
	later = &atomic.Bool{}
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Passcode", r.Header.Get("X-Passcode"))
		switch {
		case r.Header.Get("X-Passcode") != passcode:
			t.Errorf("the passcode is %q", r.Header.Get("X-Passcode"))
			w.WriteHeader(http.StatusForbidden)
		case strings.Contains(string(body), "later") && !later.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	})
	return s.URL, later
}

// wantHidden fails if a text or a file holds the passcode.
func wantHidden(t *testing.T, journal string, shown ...string) {
	t.Helper()
	b, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(shown, string(b)) {
		if strings.Contains(text, passcode) {
			t.Errorf("the passcode is in %q", text[:min(len(text), 300)])
		}
	}
}

// TestSecretHeader: the value of a header named by --secret-header is sent, and neither kept nor shown: of requests and of answers, whoever
// looks, and whichever command sends.
func TestSecretHeader(t *testing.T) {
	t.Parallel()
	url, later := passcodeServer(t)
	j := commandtest.JournalIn(t)
	secret := []string{"-H", "X-Passcode: " + passcode, "--secret-header", "x-passcode", "--max-attempts", "1", "--verbose"}
	send := append([]string{"send", "POST", url, "-d", `{"a":1}`, "--key", "k", "--journal", j, "-i"}, secret...)
	first := commandtest.Run(t, send...).Want(t, terminal.ExitOK)
	if !strings.Contains(first.Out, "X-Passcode: (secret)\r\n") {
		t.Errorf("stdout %q", first.Out)
	}
	again := commandtest.Run(t, send...).Want(t, terminal.ExitOK)
	wantHidden(t, j, first.Out, first.Err, again.Out, again.Err)

	file := commandtest.WriteFile(t, "in.csv", "id,text\n1,now\n2,later\n")
	batch := commandtest.Fast(append([]string{"batch", file, "--url", url, "--key", "o:{id}", "--journal", j}, secret...)...)
	ran := commandtest.Run(t, batch...).Want(t, terminal.ExitUnknown)
	dry := commandtest.Run(t, append(batch, "--dry-run")...)
	later.Store(true)
	commandtest.Run(t, append([]string{"journal", "resume", "idemp:o:2", "--journal", j}, secret...)...).Want(t, terminal.ExitOK)
	show := commandtest.Run(t, "journal", "show", "idemp:o:2", "--body", "--journal", j).Want(t, terminal.ExitOK)
	export := commandtest.Run(t, "journal", "export", "--journal", j).Want(t, terminal.ExitOK)
	wantHidden(t, j, ran.Out, ran.Err, dry.Out, dry.Err, show.Out, show.Err, export.Out)

	commandtest.Run(t, "send", "POST", url, "-d", `{"a":1}`, "--key", "k", "--journal", j, "-H", "X-Passcode: "+passcode).Want(t, terminal.ExitOK) // as it was begun
	wantHidden(t, j)
}

// TestSecretHeaderOfWork: work keeps no secret of an answer either.
func TestSecretHeaderOfWork(t *testing.T) {
	t.Parallel()
	url, _ := passcodeServer(t)
	j := commandtest.JournalIn(t)
	commandtest.EnqueueOne(t, j, url+"/enqueued", "k", "{}")
	auth := commandtest.WriteFile(t, "auth.txt", "X-Passcode: "+passcode+"\n")
	w := commandtest.StartWork(t, "--journal", j, "--origin", url, "-H", "@"+auth, "--secret-header", "X-Passcode")
	if _, more := w.Next(t); !more {
		t.Error("work ended")
	}
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
	wantHidden(t, j, commandtest.Run(t, "journal", "show", "k", "--body", "--journal", j).Want(t, terminal.ExitOK).Out)
}

// TestSecretHeaderUsage: a value in place of a name is refused, and not repeated.
func TestSecretHeaderUsage(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	for given, want := range map[string]string{
		"X-Passcode: " + passcode: "want the name of a header, such as X-Passcode, without a colon and without its value",
		"":                        "want the name of a header, such as X-Passcode, without a colon and without its value",
		"Connection":              "Connection is part of how a request is sent, and no credential; leave it out",
		"Idempotency-Key":         `Idempotency-Key carries the key of profile "draft-07", which is no credential; leave it out`,
	} {
		args := []string{"send", "POST", s.URL, "--key", "k", "--journal", commandtest.JournalIn(t), "--secret-header", "X-Good", "--secret-header", given}
		commandtest.Run(t, args...).Usage(t, "oncehttp: --secret-header number 2: "+want)
	}
}
