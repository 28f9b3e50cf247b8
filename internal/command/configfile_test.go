package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// The configuration file speaks where the call does not, for one command or for
// all, and what is wrong in it is said by file and line.
func TestConfigurationFile(t *testing.T) {
	s := commandtest.Refusing(t)
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	config := commandtest.WriteFile(t, "config", "# mine\n\nbatch.workers = 0\nsend.out = x\n")
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--dry-run"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
	t.Setenv("ONCEHTTP_CONFIG", config)
	commandtest.Run(t, batch...).Usage(t, "oncehttp: --workers must be from 1 to 1024")
	commandtest.Run(t, append(batch, "--workers", "2")...).Want(t, terminal.ExitOK)
	commandtest.Run(t, "send", s.URL, "--help").Want(t, terminal.ExitOK)
	commandtest.WriteFile(t, config, "profile = acme\n")
	if got := commandtest.Run(t, batch...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, `--profile "acme" is not known`) {
		t.Errorf("stderr %q", got.Err)
	}
	for text, want := range map[string]string{
		"workers\n":                          "line 1: want flag = value, or command.flag = value",
		"\nbatch.nope = 1\n":                 "line 2: batch has no flag --nope",
		"workers = many\n":                   "line 1: --workers: want a whole number",
		"workers = 2\n\nbatch.workers = 3\n": "line 3: --workers has its value from line 1 already",
	} {
		commandtest.WriteFile(t, config, text)
		if got := commandtest.Run(t, batch...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "configuration file "+config+": "+want) {
			t.Errorf("%q: stderr %q", text, got.Err)
		}
	}
	commandtest.WriteFile(t, config, "header = X-A: 1\nbatch.header = X-B: 2\nsend.header = X-C: 3\n")
	if got := commandtest.Run(t, batch...).Want(t, terminal.ExitOK); !strings.Contains(got.Out, `"headers":["Content-Type","X-A","X-B"]`) {
		t.Errorf("two lines of a flag that may be repeated: %s", got.Out)
	}
	t.Setenv("ONCEHTTP_CONFIG", config+"x")
	commandtest.Run(t, batch...).Usage(t, "oncehttp: configuration file "+config+"x: no such file or directory")
}

// A manual page is written for every command.
func TestManualPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	commandtest.Run(t, "man", dir).Want(t, terminal.ExitOK)
	for _, name := range []string{"oncehttp", "oncehttp-batch", "oncehttp-journal-settle"} {
		if b, err := os.ReadFile(filepath.Join(dir, name+".1")); err != nil || !strings.HasPrefix(string(b), ".") {
			t.Errorf("%s: %v", name, err)
		}
	}
	commandtest.Run(t, "man", dir+"/none").Usage(t, "oncehttp: "+dir+"/none is not a folder")
}

// A sound journal is said to be sound.
func TestJournalVerify(t *testing.T) {
	t.Parallel()
	j := commandtest.AuditJournal(t)
	if got := commandtest.Run(t, "journal", "verify", "--journal", j).Want(t, terminal.ExitOK); got.Out != "sound: 7 operations\n" {
		t.Errorf("stdout %q", got.Out)
	}
}

// compact changes nothing that can be read, and gives back the space of what was
// pruned.
func TestJournalCompact(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	var in strings.Builder
	in.WriteString("id,text\n")
	for i := range 200 {
		fmt.Fprintf(&in, "%d,%s\n", i, strings.Repeat("x", 5000))
	}
	file := commandtest.WriteFile(t, "in.csv", in.String())
	j := file + ".oncehttp.db"
	commandtest.Run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}").Want(t, terminal.ExitOK)
	m.Inject(mockserver.Fault{Kind: mockserver.DropAfter})
	commandtest.Run(t, commandtest.Fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--key", "pending", "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "pending"), "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "journal", "prune", "--keep-answer", "-1s", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	m.Inject(mockserver.Fault{Kind: mockserver.DropAfter})
	commandtest.Run(t, commandtest.Fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--key", "open", "--journal", j, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	before := commandtest.Run(t, "journal", "export", "--bodies", "--journal", j).Want(t, terminal.ExitOK).Out
	info, err := os.Stat(j)
	if err != nil {
		t.Fatal(err)
	}
	got := commandtest.Run(t, "journal", "compact", "--journal", j).Want(t, terminal.ExitOK)
	if !strings.HasPrefix(got.Out, "compacted: 202 operations, ") {
		t.Errorf("stdout %q", got.Out)
	}
	if after, err := os.Stat(j); err != nil || after.Size() > info.Size()/3 || after.Mode() != info.Mode() {
		t.Errorf("%v, %v; was %v", after, err, info)
	}
	if after := commandtest.Run(t, "journal", "export", "--bodies", "--journal", j).Want(t, terminal.ExitOK).Out; after != before {
		t.Errorf("what can be read has changed:\n%s\nwas\n%s", after, before)
	}
	commandtest.Run(t, "journal", "verify", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}").Want(t, terminal.ExitOK)
	if left, _ := filepath.Glob(j + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// An empty value, as of a shell variable that is not set, is no other journal, no journal in clear, no request without
// a signature and no other API.
func TestEmptyValues(t *testing.T) {
	t.Parallel()
	s := commandtest.Refusing(t)
	j := filepath.Join(t.TempDir(), "a.db")
	for _, name := range []string{"journal", "seal-key", "sign", "profile"} {
		commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", j, "--"+name, "")...).Usage(t, "oncehttp: --"+name+" is empty; give it a value, or leave it out")
	}
}
