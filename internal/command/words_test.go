package command_test

import (
	"bytes"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
)

// An age may be of days, and is never negative.
func TestAge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"3d": 72 * time.Hour, "0d": 0, "90m": 90 * time.Minute, "0s": 0} {
		if got, err := settings.ParseAge(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "3", "d", "-1d", "-2h", "1d2h", "9999999d", "3 d"} {
		if got, err := settings.ParseAge(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	j := commandtest.AuditJournal(t)
	for _, command := range []string{"list", "stuck", "stats"} {
		commandtest.Run(t, "journal", command, "--journal", j, "--older", "3d").Want(t, terminal.ExitOK)
		commandtest.Run(t, "journal", command, "--journal", j, "--older", "3 days").Usage(t, `oncehttp: --older "3 days": want a duration such as 30m, 2h or 3d; see oncehttp journal `+command+` --help`)
	}
	if got := commandtest.Run(t, "journal", "stuck", "--journal", j, "--older", "1d").Want(t, terminal.ExitOK); strings.Contains(got.Out, "idemp:") {
		t.Errorf("stdout %q", got.Out)
	}
}

// What looks at a journal finds that of send; what changes one is told where it is.
func TestJournalOfSendIsFound(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, args := range [][]string{{"list"}, {"stuck"}, {"show", "k"}, {"resume"}, {"settle", "k", "--absent"}, {"abandon", "k"}, {"prune"}, {"export"}} {
		commandtest.Run(t, append([]string{"journal"}, args...)...).Usage(t, "oncehttp: --journal is required")
	}
	m := commandtest.StartMock(t, mockserver.Config{})
	commandtest.Run(t, "send", "POST", m.URL()+"/payments", "-d", "{}", "--key", "k").Want(t, terminal.ExitOK)
	path := filepath.Join(os.Getenv("XDG_STATE_HOME"), "oncehttp", "send.db")
	for _, command := range [][]string{{"journal", "list"}, {"journal", "show", "k"}, {"journal", "stats"}, {"journal", "stuck"}} {
		got := commandtest.Run(t, command...).Want(t, terminal.ExitOK)
		if got.Err != "journal: "+path+"\n" || command[1] == "list" && !strings.Contains(got.Out, "\nk ") {
			t.Errorf("%q: stdout %q, stderr %q", command, got.Out, got.Err)
		}
	}
	commandtest.Run(t, "journal", "abandon", "k").Usage(t, "oncehttp: --journal is required (send's own is "+path+")")
}

// Help finds a command below another by its own name, where there is one only.
func TestHelpFindsCommandsBelowOthers(t *testing.T) {
	t.Parallel()
	if got := commandtest.Run(t, "help", "stuck").Want(t, terminal.ExitOK); !strings.Contains(got.Out, "oncehttp journal stuck") {
		t.Errorf("stdout %q", got.Out)
	}
	commandtest.Run(t, "help", "list").Usage(t, "oncehttp: list is the name of several commands: say help check list, or help journal list, or help profile list")
	if got := commandtest.Run(t, "version").Want(t, terminal.ExitOK); got.Out != commandtest.Run(t, "--version").Out {
		t.Errorf("stdout %q", got.Out)
	}
}

// A name that no command has is a slip, and said where it stands.
func TestConfigRefusesUnknownNames(t *testing.T) {
	config := commandtest.WriteFile(t, "config", "")
	t.Setenv("ONCEHTTP_CONFIG", config)
	for text, want := range map[string]string{
		"wrokers = 3":        "no command has a flag --wrokers",
		"# fine\nbatchs.x=1": "there is no command batchs",
		"batch.wrokers = 3":  "batch has no flag --wrokers",
		"journal.lst = 3":    "journal has no flag --lst",
	} {
		commandtest.WriteFile(t, config, text+"\n")
		got := commandtest.Run(t, "journal", "list", "--journal", "none.db").Want(t, terminal.ExitUsage)
		if !strings.HasSuffix(got.Err, ": "+want+"\n") || !strings.HasPrefix(got.Err, "oncehttp: configuration file "+config+": line ") {
			t.Errorf("%q: stderr %q, want %q", text, got.Err, want)
		}
	}
	commandtest.WriteFile(t, config, "workers = 3\nbatch.rate = 5\nlist.format = csv\nstuck.older = 3d\njournal.account = x\n")
	commandtest.Run(t, "version").Want(t, terminal.ExitOK)
}

// leaving is a reader that goes away after its first bytes.
type leaving struct{ bytes.Buffer }

func (l *leaving) Write(p []byte) (int, error) {
	if l.Len() > 0 {
		return 0, &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
	}
	return l.Buffer.Write(p)
}

// A pager or head that goes away is no failure of what only looks; a batch's lines are.
func TestReaderThatLeaves(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(1200))
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", commandtest.OrderKey).Want(t, terminal.ExitOK)
	for _, args := range [][]string{{"journal", "list"}, {"journal", "list", "--json"}, {"journal", "export"}} {
		var out leaving
		var errs bytes.Buffer
		if status := command.Run(t.Context(), append(args, "--journal", file+".oncehttp.db"), strings.NewReader(""), &out, &errs); status != terminal.ExitOK || errs.Len() > 0 || out.Len() == 0 {
			t.Errorf("%q: status %d, stderr %q", args, status, errs.String())
		}
	}
	list, _, err := command.Root(terminal.Streams{}).Find([]string{"journal", "list"})
	if err != nil {
		t.Fatal(err)
	}
	gone := &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
	if !command.ReaderLeft(list, syscall.EPIPE) || command.ReaderLeft(list, gone) || command.ReaderLeft(list, place.JournalError("redis://h:1/0", gone)) || command.ReaderLeft(list, nil) {
		t.Error("a server that goes away is taken for a reader")
	}
	var out leaving
	var errs bytes.Buffer
	if status := command.Run(t.Context(), []string{"batch", file, "--url", s.URL, "--key", commandtest.OrderKey}, strings.NewReader(""), &out, &errs); status != terminal.ExitUnknown || !strings.Contains(errs.String(), "broken pipe") {
		t.Errorf("batch: status %d, stderr %q", status, errs.String())
	}
}

// Why a connection failed is said in words.
func TestCauseWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"EOF":                                    "the server closed the connection without an answer",
		"attempts are spent; last attempt: EOF":  "attempts are spent; last attempt: the server closed the connection without an answer",
		"answer 200 was cut off: unexpected EOF": "answer 200 was cut off: the connection ended in the middle",
		"the GEOFENCE: x":                        "the GEOFENCE: x",
		"no answer within --attempt-timeout":     "no answer within --attempt-timeout",
		"dial tcp: lookup nosuch.example on 127.0.0.53:53: no such host":    "there is no host nosuch.example",
		"dial tcp 127.0.0.1:1: connect: connection refused":                 "nothing listens at 127.0.0.1:1 (connection refused)",
		"read tcp 127.0.0.1:4->127.0.0.1:1: read: connection reset by peer": "the server reset the connection",
		"write tcp 127.0.0.1:4->127.0.0.1:1: write: broken pipe":            "the server closed the connection while the request was sent",
	} {
		if got := words.CauseWords(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	journal := []string{"--journal", file + ".oncehttp.db"}
	all := got.Out + commandtest.Run(t, append(journal, "journal", "stuck")...).Out + commandtest.Run(t, append(journal, "journal", "show", "idemp:o:1")...).Out
	if strings.Count(all, "the server closed the connection without") != 3 || strings.Contains(all, "EOF") {
		t.Errorf("got\n%s", all)
	}
}

// Who has an operation, and until when, stands where the next attempt would.
func TestStuckNamesTheOwner(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, rec := range map[string]persist.Record{
		"":                          {},
		"sent by x, free in 12s":    {LeaseOwner: "x", LeaseUntil: now.Add(12*time.Second - time.Millisecond)},
		"sent by x, free now":       {LeaseOwner: "x", LeaseUntil: now.Add(-time.Second)},
		"sent by the other process": {LeaseOwner: "the other process"},
		"sent by worker 0a1b2c3d, free in 1m": {
			LeaseOwner: "0a1b2c3d-0000-4000-8000-000000000000", LeaseUntil: now.Add(time.Minute)},
	} {
		if got := view.SendingText(&rec, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	url, arrived, release := commandtest.Blocking(t)
	j := filepath.Join(commandtest.ShortDir(t), "j.db")
	end := commandtest.Beside(arrived, commandtest.Fast("send", "POST", url, "--key", "k", "--max-attempts", "1", "--journal", j)...)
	stuck, show := commandtest.Run(t, "journal", "stuck", "--journal", j), commandtest.Run(t, "journal", "show", "k", "--journal", j)
	close(release)
	end()
	owner := regexp.MustCompile(`sent by worker [0-9a-f]{8}, free in \d+[sm]`)
	if stuck.Want(t, terminal.ExitOK); !owner.MatchString(stuck.Out) {
		t.Errorf("stuck\n%s", stuck.Out)
	}
	if show.Want(t, terminal.ExitOK); !owner.MatchString(show.Out) {
		t.Errorf("show\n%s", show.Out)
	}
}
