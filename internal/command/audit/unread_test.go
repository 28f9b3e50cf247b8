package audit_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestAuditOfUnreadAnswers: where --declined cannot be looked up in an answer over 1 MiB, the exports decide, and name the step that counts it as
// done. Nobody is told to settle what has ended.
func TestAuditOfUnreadAnswers(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		text := `{}`
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"big"`) {
			text = `{"padding":"` + strings.Repeat("x", 1<<20) + `"}`
		}
		_, _ = io.WriteString(w, text)
	})
	file := commandtest.WriteFile(t, "in.csv", "order,amount\nsmall,1.00\nbig,2.00\n")
	j := file + ".oncehttp.db"
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{order}", "--declined", "/status=failed")...).Want(t, terminal.ExitUnknown)
	const unread = "its answer was too long to be kept, so that --declined cannot be looked up in it, and "
	where := []string{"--where", "status=ok"}
	done := audit.Finding{
		Finding: "settle", Here: "unknown", There: "EXPORT row 1", Why: "its answer was too long to be kept, so that --declined was not looked for in it",
		Next: "to count it as done, and all else that --declined alone made unknown or declined: oncehttp journal declined --forget /status=failed --journal " + j,
	}
	for name, c := range map[string]struct {
		row  string
		args []string
		want []audit.Finding
	}{
		"it is done":      {"big,2.00,ok\n", where, []audit.Finding{done}},
		"done, all rows":  {"big,2.00,ok\n", []string{"--all-rows"}, []audit.Finding{done}},
		"another amount":  {"big,2.01,ok\n", where, []audit.Finding{done, {Finding: "amount", Here: "2.00", There: "2.01 in EXPORT row 1"}}},
		"twice":           {"big,2.00,ok\nbig,2.00,ok\n", where, []audit.Finding{{Finding: "twice", Here: "unknown", There: "EXPORT row 1 and EXPORT row 2", Next: "ask the provider; what took effect more than once, it takes back (a refund); if one of the rows is itself a refund, a fee or the like, name the column that says so: --type COLUMN"}}},
		"any row":         {"big,2.00,ok\n", nil, []audit.Finding{{Finding: "not-auditable", Here: "unknown", There: "EXPORT row 1", Why: unread + "the row may be of a payment that failed; say --where, or --all-rows"}}},
		"its row failed":  {"big,2.00,failed\n", where, []audit.Finding{{Finding: "not-auditable", Here: "unknown", There: "EXPORT row 1 (status=failed)", Why: unread + `the provider has it as "failed"`}}},
		"it says so":      {"big,2.00,failed\n", nil, []audit.Finding{{Finding: "failed", Here: "unknown", There: "EXPORT row 1 (status=failed)", Why: "the row says that it is of nothing done"}}},
		"it is not there": {"", where, []audit.Finding{{Finding: "not-auditable", Here: "unknown", Why: unread + "the exports do not have it"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			export := commandtest.WriteFile(t, "export.csv", "order,amount,status\n"+c.row+"small,1.00,ok\n")
			status := terminal.ExitOK
			if len(c.want) > 0 {
				status = terminal.ExitFindings
			}
			all, got := findings(t, status, append([]string{"--journal", j, "--against", export, "--amount", "/amount"}, c.args...)...)
			for i := range c.want {
				c.want[i].Key, c.want[i].Reference, c.want[i].There = "idemp:o:big", "big", strings.ReplaceAll(c.want[i].There, "EXPORT", export)
			}
			if !slices.Equal(all, c.want) || strings.Contains(got.Out, "journal settle") {
				t.Errorf("found\n%+v, want\n%+v", all, c.want)
			}
		})
	}
}

// TestAuditOfMissing: for an operation that is confirmed here and missing in the exports, audit names the next step. For one that a person has settled
// it names none: that person knows.
func TestAuditOfMissing(t *testing.T) {
	t.Parallel()
	j := commandtest.DoubtJournal(t)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "idemp:o:3"), "--happened", "--journal", j).Want(t, terminal.ExitOK)
	export := commandtest.WriteFile(t, "export.csv", "order,status\n9,ok\n")
	all, _ := findings(t, terminal.ExitFindings, "--journal", j, "--against", export)
	next := map[string]string{}
	for _, x := range all {
		if x.Finding == "missing" {
			next[x.Key] = x.Next
		}
	}
	const step = "its answer is final: if the API's own list lacks it, send it alone under a new key: send --key NEWKEY, or batch a file of such rows only, with another text in --key and --new-journal"
	if len(next) != 2 || next["idemp:o:1"] != step || next["idemp:o:3"] != "" {
		t.Errorf("the next steps are %q", next)
	}
}

// TestAuditOfMissingAccepted: what was answered with 202 may still be done by the API. Where the exports lack it, no new key is advised.
func TestAuditOfMissingAccepted(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"id":"1"}`))
	})
	j := commandtest.JournalIn(t)
	commandtest.Run(t, "send", "POST", s.URL, "-d", `{"order":"1"}`, "--key", "idemp:o:1", "--journal", j).Want(t, terminal.ExitOK)
	for name, row := range map[string]string{"missing": "9,ok", "not-done": "1,failed"} {
		export := commandtest.WriteFile(t, "export.csv", "order,status\n"+row+"\n8,ok\n")
		all, _ := findings(t, terminal.ExitFindings, "--journal", j, "--against", export, "--where", "status=ok")
		found := slices.IndexFunc(all, func(x audit.Finding) bool { return string(x.Finding) == name })
		if found < 0 || strings.Contains(all[found].Next, "is final") || !strings.Contains(all[found].Next, "its answer 202") {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// TestConflictHasANextStep: what counts as without effect here, and is done there, is not tried anew; who is asked depends on the cause.
func TestConflictHasANextStep(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch b, _ := io.ReadAll(r.Body); {
		case strings.Contains(string(b), `"402"`):
			w.WriteHeader(http.StatusPaymentRequired)
		case strings.Contains(string(b), `"absent"`):
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		}
		_, _ = io.WriteString(w, `{"status":"failed"}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "order\nword\n402\nabsent\n")
	j := file + ".oncehttp.db"
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{order}", "--declined", "/status=failed")...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "declined", "--forget", "/status=failed", "--journal", j).Want(t, terminal.ExitOK)
	commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "-d", `{"order":"other"}`, "--key", "other", "--journal", j, "--declined", "/status=failed")...).Want(t, terminal.ExitRefused)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, j, "idemp:o:absent"), "--absent", "--yes", "--journal", j).Want(t, terminal.ExitOK)
	export := commandtest.WriteFile(t, "export.csv", "order\nword\n402\nabsent\nother\n")
	const no = "do not try it anew (batch --generation): it may take effect twice; "
	for name, c := range map[string]struct{ args, want []string }{
		"by the journal": {nil, []string{"--declined counts it as declined: where that is a mistake, oncehttp journal declined --forget VALUE --journal " + j + " takes the value back"}},
		"by the audit": {[]string{"--declined", "/status=failed"}, []string{"--declined counts it as declined: where that is a mistake, leave that value out here, and take it back in the journal if it keeps it: " +
			"oncehttp journal declined --forget VALUE --journal " + j}},
	} {
		all, _ := findings(t, terminal.ExitFindings, append([]string{"--journal", j, "--against", export, "--all-rows"}, c.args...)...)
		want := map[string]string{
			"idemp:o:word": no + c.want[0], "other": no + c.want[0], "idemp:o:402": no + "ask the API what came of it",
			"idemp:o:absent": no + "ask the API; where it took effect: oncehttp journal unsettle idemp:o:absent --reason WHY --journal " + j + ", and settle it as happened",
		}
		for _, f := range all {
			if f.Finding != "conflict" || f.Next != want[f.Key] {
				t.Errorf("%s: %s %s: next %q, want %q", name, f.Finding, f.Key, f.Next, want[f.Key])
			}
		}
		if len(all) != len(want) {
			t.Errorf("%s: %d findings, want %d", name, len(all), len(want))
		}
	}
}
