package audit_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/profile"
)

// byKey runs an audit that matches by the key, and returns its findings.
func byKey(t *testing.T, journal, export string, args ...string) ([]audit.Finding, string) {
	t.Helper()
	got := commandtest.Run(t, append([]string{"audit", "--json", "--match", "key", "--journal", journal, "--against", commandtest.WriteFile(t, "export.csv", export), "--all-rows"}, args...)...)
	var all []audit.Finding
	for line := range strings.Lines(got.Out) {
		var f audit.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all, got.Err
}

// TestAuditOfReplaced: an operation that was settled as absent by mistake, and its next generation, both took effect: that is told as twice, and no refused
// command is advised.
func TestAuditOfReplaced(t *testing.T) {
	t.Parallel()
	var well atomic.Bool
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(map[bool]int{true: http.StatusCreated, false: http.StatusFound}[well.Load()])
	})
	file := commandtest.WriteFile(t, "in.csv", "order\n1\n")
	j := file + ".oncehttp.db"
	args := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{order}")
	commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "idemp:o:1"), "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	well.Store(true)
	commandtest.Run(t, append(args, "--generation", "2")...).Want(t, terminal.ExitOK)
	for name, c := range map[string]struct{ export, kind, key, next string }{
		"both":       {"key\nidemp:o:1\nidemp:o:1:gen=2\n", "twice", "idemp:o:1", "have the provider take one of them back (a refund); send neither again"},
		"the first":  {"key\nidemp:o:1\n", "conflict", "idemp:o:1", "ask the provider whether both took effect; where they did, have one taken back (a refund); send neither again"},
		"the second": {"key\nidemp:o:1:gen=2\n", "", "", ""},
	} {
		all, said := byKey(t, j, c.export)
		if c.kind == "" {
			if len(all) != 0 {
				t.Errorf("%s: %+v", name, all)
			}
			continue
		}
		if len(all) == 0 || all[0].Finding != c.kind || all[0].Key != c.key || all[0].Next != c.next || strings.Contains(said, "unsettle") {
			t.Errorf("%s: %+v, want %s", name, all, c.next)
		}
		if name == "the first" && (len(all) != 2 || all[1].Finding != "missing" || all[1].Next != "send it under no other key: it would take effect twice") {
			t.Errorf("%s: %+v", name, all)
		}
	}
	got := commandtest.Run(t, "journal", "unsettle", "idemp:o:1", "--reason", "r", "--journal", j)
	if got.Status == terminal.ExitOK || !strings.Contains(got.Err, `unsettle "idemp:o:1": it stays settled as absent: `) || strings.Contains(got.Err, "outcome unknown") {
		t.Errorf("unsettle: %d, %s", got.Status, got.Err)
	}
}

// TestAuditOfOtherSpelling: what is missing here and foreign there but for capitals, blanks or dashes is told so on both sides, and nothing advises to send it.
func TestAuditOfOtherSpelling(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, "in.csv", "order\nINV-1\nINV-2\nINV-3\ninv-4\nINV-4\n")
	j := file + ".oncehttp.db"
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{order}")...).Want(t, terminal.ExitOK)
	export := commandtest.WriteFile(t, "export.csv", "order\ninv-1\nInv 2\nINV\u20143\ninv-4\nINV-9\n")
	all, got := findings(t, terminal.ExitFindings, "--journal", j, "--against", export, "--all-rows")
	alike := map[string]string{}
	for _, x := range all {
		switch {
		case x.Why == "" && (x.Reference == "INV-9" || x.Reference == "INV-4"): // the alike row is that of inv-4
			continue
		case x.Finding == "missing":
			alike[x.Reference] = x.Why
			if strings.Contains(x.Next, "NEWKEY") || !strings.HasPrefix(x.Next, "send it under no other key: ") {
				t.Errorf("%s: next %q", x.Reference, x.Next)
			}
		case x.Finding == "foreign":
			alike[x.Reference] = x.Why
		default:
			t.Errorf("found %+v", x)
		}
	}
	if len(alike) != 6 || alike["INV-1"] != `the exports have "inv-1", which is it but for capitals, blanks, dashes, zeros in front, percent signs or the first word idemp:` || !strings.HasPrefix(alike["inv-1"], "an operation without a row here is alike") {
		t.Errorf("alike: %q", alike)
	}
	if !strings.Contains(got.Err, "3 operations here without a row, and rows there of no operation here, are alike") || !strings.Contains(got.Err, "foreign: 1 row of another") {
		t.Errorf("stderr %s", got.Err)
	}
	if all, _ := byKey(t, j, "key\nIDEMP:O:INV-1\n"); len(all) != 6 || !strings.Contains(all[0].Why, `"IDEMP:O:INV-1"`) {
		t.Errorf("by key: %+v", all)
	}
}

// TestAuditSpellsFailedAsItStands: a cell that says failed is printed as the export has it, so that --where finds it.
func TestAuditSpellsFailedAsItStands(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 1)
	export := commandtest.WriteFile(t, "export.csv", "order,status\n1,Refunded\n")
	all, got := findings(t, terminal.ExitFindings, "--journal", j, "--against", export)
	if len(all) != 1 || !strings.HasSuffix(all[0].There, "(status=Refunded)") || !strings.Contains(got.Err, "with status=Refunded,") {
		t.Errorf("found %+v; stderr %s", all, got.Err)
	}
}

// TestAuditOfRestoredKeyless: after a restore, nothing is said of held operations where none is held as restored, nor of keys where the API knows none.
func TestAuditOfRestoredKeyless(t *testing.T) {
	t.Parallel()
	for profile, keyed := range map[string]bool{"none": false, "draft-07": true} {
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
		file := commandtest.WriteFile(t, "in.csv", "order\n1\n")
		j := file + ".oncehttp.db"
		commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{order}", "--profile", profile)...).Want(t, terminal.ExitOK)
		commandtest.Run(t, "journal", "restored", j, "--taken", nowText()).Want(t, terminal.ExitOK)
		export := commandtest.WriteFile(t, "export.csv", "order\n1\n2\n")
		_, got := findings(t, terminal.ExitFindings, "--journal", j, "--against", export, "--all-rows")
		if strings.Contains(got.Err, "resume --restored") || strings.Contains(got.Err, "while the server knows the key") != keyed || !strings.Contains(got.Err, "repeat none of them (1 row)") {
			t.Errorf("%s: stderr %s", profile, got.Err)
		}
	}
}

// TestAuditOfHeldKeyless: an operation that is held since a restore, and that no key protects, cannot be resumed: the audit names the command that settles it, and
// that command does so.
func TestAuditOfHeldKeyless(t *testing.T) {
	t.Parallel()
	for p, keyed := range map[*profile.Profile]bool{profile.None(): false, profile.Draft07(): true} {
		j := filepath.Join(t.TempDir(), "j.db")
		commandtest.EnqueueUnder(t, p, j, "http://127.0.0.1:1/payments", "idemp:o:1", `{"order":"1"}`)
		commandtest.Run(t, "journal", "restored", j, "--taken", nowText()).Want(t, terminal.ExitOK)
		all, _ := findings(t, terminal.ExitFindings, "--journal", j, "--against", commandtest.WriteFile(t, "export.csv", "order\n2\n"), "--all-rows")
		var next string
		for _, x := range all {
			if x.Finding == "unresolved" {
				next = x.Next
			}
		}
		if strings.Contains(next, "journal resume --restored idemp:o:1") != keyed || strings.Contains(next, "journal settle idemp:o:1@") == keyed {
			t.Errorf("%s: next %q of %+v", p.Name, next, all)
		}
		if _, command, _ := strings.Cut(next, ": oncehttp "); !keyed {
			words := append(strings.Fields(strings.ReplaceAll(strings.TrimSuffix(command, ", and then a new request"), "'", "")), "--yes")
			commandtest.Run(t, words...).Want(t, terminal.ExitOK)
			if out := commandtest.Run(t, "journal", "show", "idemp:o:1", "--journal", j).Want(t, terminal.ExitOK).Out; !strings.Contains(out, "absent") {
				t.Errorf("show says %q", out)
			}
		}
	}
}

// nowText is the time as --taken takes it.
func nowText() string { return time.Now().UTC().Format(time.RFC3339Nano) }
