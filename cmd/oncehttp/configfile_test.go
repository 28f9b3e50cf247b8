package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
)

// The configuration file speaks where the call does not, for one command or for
// all, and what is wrong in it is said by file and line.
func TestConfigurationFile(t *testing.T) {
	s := refusing(t)
	file := writeFile(t, "in.csv", "id\n1\n")
	config := writeFile(t, "config", "# mine\n\nbatch.workers = 0\nsend.out = x\n")
	batch := []string{"batch", file, "--url", s.url, "--key", "o:{id}", "--dry-run"}
	run(t, batch...).want(t, exitOK)
	t.Setenv("ONCEHTTP_CONFIG", config)
	run(t, batch...).usage(t, "oncehttp: --workers must be from 1 to 1024")
	run(t, append(batch, "--workers", "2")...).want(t, exitOK)
	run(t, "send", s.url, "--help").want(t, exitOK)
	writeFile(t, config, "profile = acme\n")
	if got := run(t, batch...).want(t, exitUsage); !strings.Contains(got.err, `--profile "acme" is not known`) {
		t.Errorf("stderr %q", got.err)
	}
	for text, want := range map[string]string{
		"workers\n":          "line 1: want flag = value, or command.flag = value",
		"\nbatch.nope = 1\n": "line 2: batch has no flag --nope",
		"workers = many\n":   "line 1: --workers: want a whole number",
	} {
		writeFile(t, config, text)
		if got := run(t, batch...).want(t, exitUsage); !strings.Contains(got.err, "configuration file "+config+": "+want) {
			t.Errorf("%q: stderr %q", text, got.err)
		}
	}
	t.Setenv("ONCEHTTP_CONFIG", config+"x")
	run(t, batch...).usage(t, "oncehttp: configuration file "+config+"x: no such file or directory")
}

// A manual page is written for every command.
func TestManualPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run(t, "man", dir).want(t, exitOK)
	for _, name := range []string{"oncehttp", "oncehttp-batch", "oncehttp-journal-settle"} {
		if b, err := os.ReadFile(filepath.Join(dir, name+".1")); err != nil || !strings.HasPrefix(string(b), ".") {
			t.Errorf("%s: %v", name, err)
		}
	}
	run(t, "man", dir+"/none").usage(t, "oncehttp: "+dir+"/none is not a folder")
}

// A sound journal is said to be sound.
func TestJournalVerify(t *testing.T) {
	t.Parallel()
	j := auditJournal(t)
	if got := run(t, "journal", "verify", "--journal", j).want(t, exitOK); got.out != "sound: 7 operations\n" {
		t.Errorf("stdout %q", got.out)
	}
}

// compact changes nothing that can be read, and gives back the space of what was
// pruned.
func TestJournalCompact(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	var in strings.Builder
	in.WriteString("id,text\n")
	for i := range 200 {
		fmt.Fprintf(&in, "%d,%s\n", i, strings.Repeat("x", 5000))
	}
	file := writeFile(t, "in.csv", in.String())
	j := file + ".oncehttp.db"
	run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}").want(t, exitOK)
	m.Inject(mockserver.Fault{Kind: mockserver.DropAfter})
	run(t, fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--key", "pending", "--journal", j, "--max-attempts", "1")...).want(t, exitUnknown)
	run(t, "journal", "settle", seenAs(t, j, "pending"), "--absent", "--yes", "--journal", j).want(t, exitOK)
	run(t, "journal", "prune", "--keep-answer", "-1s", "--yes", "--journal", j).want(t, exitOK)
	m.Inject(mockserver.Fault{Kind: mockserver.DropAfter})
	run(t, fast("send", "POST", m.URL()+"/payments", "-d", "{}", "--key", "open", "--journal", j, "--max-attempts", "1")...).want(t, exitUnknown)
	before := run(t, "journal", "export", "--bodies", "--journal", j).want(t, exitOK).out
	info, err := os.Stat(j)
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, "journal", "compact", "--journal", j).want(t, exitOK)
	if !strings.HasPrefix(got.out, "compacted: 202 operations, ") {
		t.Errorf("stdout %q", got.out)
	}
	if after, err := os.Stat(j); err != nil || after.Size() > info.Size()/3 || after.Mode() != info.Mode() {
		t.Errorf("%v, %v; was %v", after, err, info)
	}
	if after := run(t, "journal", "export", "--bodies", "--journal", j).want(t, exitOK).out; after != before {
		t.Errorf("what can be read has changed:\n%s\nwas\n%s", after, before)
	}
	run(t, "journal", "verify", "--journal", j).want(t, exitOK)
	run(t, "batch", file, "--url", m.URL()+"/payments", "--key", "o:{id}").want(t, exitOK)
	if left, _ := filepath.Glob(j + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// An empty value, as of a shell variable that is not set, is no other journal, no journal in clear, no request without
// a signature and no other API.
func TestEmptyValues(t *testing.T) {
	t.Parallel()
	s := refusing(t)
	j := filepath.Join(t.TempDir(), "a.db")
	for _, name := range []string{"journal", "seal-key", "sign", "profile"} {
		run(t, fast("send", "POST", s.url, "-d", "{}", "--key", "k", "--journal", j, "--"+name, "")...).usage(t, "oncehttp: --"+name+" is empty; give it a value, or leave it out")
	}
}
