package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Numbers are those of what was counted, and no line says more than is known.
func TestStatsSayWhatIsKnown(t *testing.T) {
	t.Parallel()
	j := auditJournal(t)
	var st struct{ Attempts distribution }
	if err := json.Unmarshal([]byte(run(t, "journal", "stats", "--json", "--journal", j).want(t, exitOK).out), &st); err != nil {
		t.Fatal(err)
	}
	if st.Attempts.P50 != 1 || st.Attempts.P95 != 1 || st.Attempts.Max != 1 {
		t.Errorf("attempts %+v, want one each", st.Attempts)
	}
	var d distribution
	for i := range 100 {
		d.addCount(i / 10)
	}
	if d.conclude(); d.P50 != 4 || d.P95 != 9 || d.Max != 9 {
		t.Errorf("%+v", d)
	}
	onServers(t, func(t *testing.T, journal string) {
		for _, args := range [][]string{{"journal", "stats"}, {"journal", "stats", "--json"}} {
			if got := run(t, append(args, "--journal", journal)...).want(t, exitOK); strings.Contains(got.out, "MB") || strings.Contains(got.out, "file_bytes") {
				t.Errorf("of a journal in no file: %q", got.out)
			}
		}
	})
}

// A body that was not kept is not "0 bytes".
func TestShowOfADroppedBody(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, strings.Repeat("x", answerBytesMax+1))
	})
	j := filepath.Join(t.TempDir(), "j.db")
	run(t, "send", "POST", s.url, "--key", "k", "--journal", j).want(t, exitOK)
	if got := run(t, "journal", "show", "k", "--journal", j).want(t, exitOK); !strings.Contains(got.out, "\n  answer    201, its body was not kept\n") {
		t.Errorf("stdout\n%s", got.out)
	}
}

// A page with a filter says so beside its count.
func TestReportSaysItsFilter(t *testing.T) {
	t.Parallel()
	j := auditJournal(t)
	page := j + ".html"
	for want, args := range map[string][]string{
		"7 operations, as of": nil,
		"2 operations that <code>idemp:* --state pending,held</code> selects, as of": {"idemp:*", "--state", "pending,held"},
	} {
		run(t, append([]string{"journal", "report", "--journal", j, "--out", page}, args...)...).want(t, exitOK)
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v, the page lacks %q", err, want)
		}
	}
}

// resume --dry-run shows how operations stand, not how they would; and whom they are left to.
func TestResumeDryRunSaysHowOperationsStand(t *testing.T) {
	t.Parallel()
	down := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	dir := shortDir(t)
	file := writeFile(t, filepath.Join(dir, "in.csv"), "id\na\n")
	run(t, fast("batch", file, "--url", down.url, "--key", "o:{id}", "--max-attempts", "1")...).want(t, exitUnknown)
	j := file + ".oncehttp.db"
	run(t, "journal", "restored", "--journal", j, "--taken", time.Now().UTC().Format(time.RFC3339Nano)).want(t, exitOK)
	got := run(t, "journal", "resume", "--restored", "--dry-run", "--journal", j).want(t, exitOK)
	if strings.Contains(got.out, "  pending  ") || !strings.Contains(got.out, "  held (restored)  ") {
		t.Errorf("stdout\n%s", got.out)
	}
	url, arrived, release := blocking(t)
	sent := filepath.Join(dir, "s.db")
	end := beside(arrived, fast("send", "POST", url, "--key", "k", "--max-attempts", "1", "--journal", sent)...)
	got = run(t, "journal", "resume", "--dry-run", "--journal", sent)
	close(release)
	end()
	if got.want(t, exitOK); !strings.Contains(got.out, "wait: sent by worker ") {
		t.Errorf("stdout\n%s", got.out)
	}
}

// The shells are told the words that a flag takes, also behind others of a list.
func TestCompletionOfWords(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"stripe\nstripe-v2\n":         {"batch", "--profile", "stri"},
		"held\n":                      {"journal", "list", "--state", "he"},
		"held,pending\n":              {"journal", "list", "--state", "held,pe"},
		"declined\n":                  {"journal", "stats", "--result", "dec"},
		"finished\n":                  {"journal", "list", "--sort", "f"},
		"major\nminor\n":              {"audit", "--our-unit", "m"},
		"draft-07\ndraft-07-quoted\n": {"check", "--profile", "draft-"},
		"mismatch,unknown\n":          {"journal", "report", "--result", "mismatch,u"},
	} {
		got := run(t, append([]string{"__complete"}, args...)...).want(t, exitOK)
		out := strings.Join(strings.Fields(strings.ReplaceAll(got.out, ":4", "")), "\n") + "\n"
		if !sameWords(out, want) {
			t.Errorf("%q: %q, want %q", args, out, want)
		}
	}
}

// sameWords compares lists of lines in any order.
func sameWords(a, b string) bool {
	for _, word := range strings.Fields(b) {
		if !strings.Contains(a, word+"\n") {
			return false
		}
	}
	return len(strings.Fields(a)) == len(strings.Fields(b))
}
