package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The configuration file speaks where the call does not, for one command or for
// all, and what is wrong in it is said by file and line.
func TestConfigurationFile(t *testing.T) {
	s := refusing(t)
	file := writeFile(t, "in.csv", "id\n1\n")
	config := writeFile(t, "config", "# mine\n\nbatch.workers = 0\nsend.workers = x\n")
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
		"workers = many\n":   "line 1: --workers: ",
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
