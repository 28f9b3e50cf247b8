package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// What cron asks is answered by a status and a line, and by nothing where all is well.
func TestFailOver(t *testing.T) {
	t.Parallel()
	j := doubtJournal(t) // 1 done, 1 pending, 1 held, 1 abandoned
	for name, c := range map[string]struct {
		args   []string
		status int
		found  string // a pattern
	}{
		"stuck, not for so long":  {[]string{"stuck", "--fail-over", "10m"}, exitOK, ""},
		"stuck, anything":         {[]string{"stuck", "--fail-over", "0s"}, exitFindings, `2 were not done for longer than 0s, the oldest for \d+s`},
		"stuck, of another place": {[]string{"stuck", "--fail-over", "0s", "--origin", "https://elsewhere:443"}, exitOK, ""},
		"stats, not for so long":  {[]string{"stats", "--fail-over", "3d", "--fail-held", "1", "--fail-pending", "1"}, exitOK, ""},
		"stats, anything":         {[]string{"stats", "--fail-over", "0s"}, exitFindings, `2 were not done for longer than 0s, the oldest for \d+s`},
		"stats, held":             {[]string{"stats", "--fail-held", "0"}, exitFindings, "1 was held, and --fail-held is 0"},
		"stats, both":             {[]string{"stats", "--fail-held", "0", "--fail-pending", "0"}, exitFindings, "1 was held, and --fail-held is 0; 1 was pending, and --fail-pending is 0"},
		"stats, nothing asked":    {[]string{"stats"}, exitOK, ""},
	} {
		args := append([]string{"journal"}, append(c.args, "--journal", j)...)
		loud, quiet := run(t, args...).want(t, c.status), run(t, append(args, "-q")...).want(t, c.status)
		if loud.out == "" || quiet.out != "" {
			t.Errorf("%s: stdout %q, with --quiet %q", name, loud.out, quiet.out)
		}
		for _, got := range []string{loud.err, quiet.err} {
			want := "^$"
			if c.found != "" {
				want = "^oncehttp: journal " + regexp.QuoteMeta(j) + ": " + c.found + "\n$"
			}
			if !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("%s: stderr %q, want %s", name, got, want)
			}
		}
	}
	run(t, "journal", "stats", "--journal", j, "--fail-held", "-2").usage(t, "oncehttp: --fail-held and --fail-pending must not be negative")
}

// The bound is an age: of just that age nothing is told.
func TestAlertAtItsBound(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for age, want := range map[time.Duration]int{time.Hour: 0, time.Hour + 1: 1} {
		a := alert{flags: &alertFlags{over: time.Hour, overSet: func() bool { return true }, held: -1, pending: -1}, now: now}
		a.add(&persist.Record{State: persist.StatePending, Created: now.Add(-age)})
		a.add(&persist.Record{State: persist.StateConfirmed, Created: now.Add(-48 * time.Hour)})
		if a.over != want || (a.conclude("j") != nil) != (want > 0) {
			t.Errorf("%v: %d over the bound, want %d", age, a.over, want)
		}
	}
}

// The file is sound, whole, and readable by the collector; a bad place is said.
func TestStatsPrometheus(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"2"`) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	})
	dir := t.TempDir()
	file := writeFile(t, dir+"/in.csv", "id,amount,currency\n1,0.10,EUR\n2,0.20,EUR\n")
	run(t, "batch", file, "--url", s.url, "--key", "o:{id}", "--workers", "1").want(t, exitUnknown)
	j, name := file+".oncehttp.db", filepath.Join(dir, "oncehttp.prom")
	writeFile(t, name, "an older one")
	args := []string{"journal", "stats", "--journal", j, "--sum", "/amount", "--currency", "/currency", "--quiet", "--prometheus"}
	run(t, append(args, name)...).want(t, exitOK)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sample := regexp.MustCompile(`^oncehttp_journal_[a-z_]+\{journal="[^"]*"(,[a-z]+="[^"]*")*\} [0-9.e+]+$`)
	helped := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if name, is := strings.CutPrefix(line, "# TYPE "); is {
			helped[strings.TrimSuffix(name, " gauge")] = true
		} else if !strings.HasPrefix(line, "# HELP ") && (!sample.MatchString(line) || !helped[line[:strings.IndexByte(line, '{')]]) {
			t.Errorf("no sample: %q", line)
		}
	}
	for _, want := range []string{
		`oncehttp_journal_operations{journal="in.csv.oncehttp.db",state="held"} 1`, `oncehttp_journal_operations{journal="in.csv.oncehttp.db",state="pending"} 0`,
		`oncehttp_journal_results{journal="in.csv.oncehttp.db",result="done"} 1`,
		`oncehttp_journal_amount{journal="in.csv.oncehttp.db",of="/amount",currency="EUR",class="held"} 0.20`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("the file lacks %s:\n%s", want, text)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if files, _ := filepath.Glob(dir + "/.oncehttp-*.tmp"); len(files) > 0 {
		t.Errorf("left are %q", files)
	}
	run(t, append(args, dir+"/none/x.prom")...).usage(t, "oncehttp: --prometheus "+dir+"/none/x.prom: no such file or directory")
	if got := labelText("a\"b\\c\nd"); got != `a\"b\\c\nd` {
		t.Errorf("label %q", got)
	}
}
