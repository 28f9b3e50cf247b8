package journal_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// What cron asks is answered by a status and a line, and by nothing where all is well.
func TestFailOver(t *testing.T) {
	t.Parallel()
	j := commandtest.DoubtJournal(t) // 1 done, 1 pending, 1 held, 1 abandoned
	for name, c := range map[string]struct {
		args   []string
		status int
		found  string // a pattern
	}{
		"stuck, not for so long":  {[]string{"stuck", "--fail-over", "10m"}, terminal.ExitOK, ""},
		"stuck, anything":         {[]string{"stuck", "--fail-over", "0s"}, terminal.ExitFindings, `2 were not done for longer than 0s, the oldest for \d+s`},
		"stuck, of another place": {[]string{"stuck", "--fail-over", "0s", "--origin", "https://elsewhere:443"}, terminal.ExitOK, ""},
		"stats, not for so long":  {[]string{"stats", "--fail-over", "3d", "--fail-held", "1", "--fail-pending", "1"}, terminal.ExitOK, ""},
		"stats, anything":         {[]string{"stats", "--fail-over", "0s"}, terminal.ExitFindings, `2 were not done for longer than 0s, the oldest for \d+s`},
		"stats, held":             {[]string{"stats", "--fail-held", "0"}, terminal.ExitFindings, "1 was held, and --fail-held is 0"},
		"stats, both":             {[]string{"stats", "--fail-held", "0", "--fail-pending", "0"}, terminal.ExitFindings, "1 was held, and --fail-held is 0; 1 was pending, and --fail-pending is 0"},
		"stats, nothing asked":    {[]string{"stats"}, terminal.ExitOK, ""},
	} {
		args := append([]string{"journal"}, append(c.args, "--journal", j)...)
		loud, quiet := commandtest.Run(t, args...).Want(t, c.status), commandtest.Run(t, append(args, "-q")...).Want(t, c.status)
		if loud.Out == "" || quiet.Out != "" {
			t.Errorf("%s: stdout %q, with --quiet %q", name, loud.Out, quiet.Out)
		}
		for _, got := range []string{loud.Err, quiet.Err} {
			want := "^$"
			if c.found != "" {
				want = "^oncehttp: journal " + regexp.QuoteMeta(j) + ": " + c.found + "\n$"
			}
			if !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("%s: stderr %q, want %s", name, got, want)
			}
		}
	}
	commandtest.Run(t, "journal", "stats", "--journal", j, "--fail-held", "-2").Usage(t, "oncehttp: --fail-held, --fail-pending, --fail-rejected, --fail-refused and --fail-unknown must not be negative")
}

// The file is sound, whole, and readable by the collector; a bad place is said.
func TestStatsPrometheus(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"2"`) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	})
	dir := t.TempDir()
	file := commandtest.WriteFile(t, dir+"/in.csv", "id,amount,currency\n1,0.10,EUR\n2,0.20,EUR\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--workers", "1").Want(t, terminal.ExitUnknown)
	j, name := file+".oncehttp.db", filepath.Join(dir, "oncehttp.prom")
	commandtest.WriteFile(t, name, "# HELP oncehttp_journal_operations an older one\n")
	args := []string{"journal", "stats", "--journal", j, "--sum", "/amount", "--currency", "/currency", "--quiet", "--prometheus"}
	commandtest.Run(t, append(args, name)...).Want(t, terminal.ExitOK)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sample := regexp.MustCompile(`^oncehttp_(?:journal|operation|result)_[a-z_]+\{journal="[^"]*"(,[a-z_]+="[^"]*")*\} [0-9.e+]+$`)
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
		`oncehttp_operation_unfinished{journal="in.csv.oncehttp.db",state="pending",hold_reason=""} 0`,
		`oncehttp_operation_unfinished{journal="in.csv.oncehttp.db",state="held",hold_reason="redirected"} 1`,
		`oncehttp_operation_unfinished{journal="in.csv.oncehttp.db",state="held",hold_reason="expired"} 0`,
		`oncehttp_journal_results{journal="in.csv.oncehttp.db",result="done"} 1`,
		`oncehttp_journal_amount{journal="in.csv.oncehttp.db",of="/amount",currency="EUR",class="held"} 0.20`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("the file lacks %s:\n%s", want, text)
		}
	}
	server := commandtest.OwnRedis(t, commandtest.Durable()...).Journal()
	commandtest.EnqueueOne(t, server, s.URL, "k", "{}")
	onServer := filepath.Join(dir, "server.prom")
	commandtest.Run(t, "journal", "stats", "--journal", server, "--quiet", "--prometheus", onServer).Want(t, terminal.ExitOK)
	more, err := os.ReadFile(onServer)
	if err != nil {
		t.Fatal(err)
	}
	commandtest.WantMetrics(t, string(text)+string(more), "oncehttp_journal_", "oncehttp_operation_", "oncehttp_result_")
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if files, _ := filepath.Glob(dir + "/.oncehttp-*.tmp"); len(files) > 0 {
		t.Errorf("left are %q", files)
	}
	commandtest.Run(t, append(args, dir+"/none/x.prom")...).Usage(t, "oncehttp: --prometheus "+dir+"/none/x.prom: no such file or directory")
}
