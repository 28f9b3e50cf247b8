package audit_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

// TestAuditOfEmptyExports: exports without a row of something done say so first, and advise nobody to send anything under a new key.
func TestAuditOfEmptyExports(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 2)
	for name, c := range map[string]struct {
		rows string
		args []string
		said string
		want string
	}{
		"no rows":              {"", nil, ": has a header and no rows\n", "missing"},
		"no rows, and --where": {"", []string{"--where", "status=paid"}, ": has a header and no rows\n", "missing"},
		"nothing selected":     {"1,paid\n2,paid\n", []string{"--where", "status=piad"}, ": --where selects none of 2 rows; is it spelled as in the export?\n", audit.NotDone},
	} {
		export := commandtest.WriteFile(t, "export.csv", "order,status\n"+c.rows)
		all, got := findings(t, terminal.ExitFindings, append([]string{"--journal", j, "--against", export}, c.args...)...)
		if len(all) != 2 || all[0].Finding != c.want || strings.Contains(all[0].Next+all[1].Next, "new key") {
			t.Errorf("%s: found %+v", name, all)
		}
		if !strings.Contains(got.Err, export+c.said) {
			t.Errorf("%s: stderr %q", name, got.Err)
		}
	}
	// Beside another export an empty one is said, and what both lack is to be sent.
	empty, other := commandtest.WriteFile(t, "empty.csv", "order\n"), commandtest.WriteFile(t, "other.csv", "order\n1\n")
	all, got := findings(t, terminal.ExitFindings, "--journal", j, "--against", empty, "--against", other)
	if len(all) != 1 || all[0].Key != "idemp:o:2" || !strings.Contains(all[0].Next, "new key") || !strings.HasPrefix(got.Err, empty+": has a header and no rows\n") {
		t.Errorf("found %+v; stderr %q", all, got.Err)
	}
}

// TestAuditOfAnExportTwice: an export that is given twice, under whatever name, is refused. Those without rows are not the same.
func TestAuditOfAnExportTwice(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 2)
	one, same := commandtest.WriteFile(t, "one.csv", "order\n1\n2\n"), commandtest.WriteFile(t, "same.csv", "order\n1\n2\n")
	run := func(exports ...string) commandtest.Ran {
		args := []string{"audit", "--journal", j, "--match", "order", "--reference", "/order"}
		for _, name := range exports {
			args = append(args, "--against", name)
		}
		return commandtest.Run(t, args...)
	}
	run(one, same).Usage(t, "oncehttp: "+same+": has the same content as "+one+"; name an export once")
	run(one, one).Usage(t, "oncehttp: "+one+": has the same content as "+one+"; name an export once")
	run(one, commandtest.WriteFile(t, "jan.csv", "order\n"), commandtest.WriteFile(t, "feb.csv", "order\n")).Want(t, terminal.ExitOK)
}

// TestAuditTwiceNamesCauses: the next step of rows that seem to be twice names what makes two rows of one effect: a refund without --type, and exports that overlap.
func TestAuditTwiceNamesCauses(t *testing.T) {
	t.Parallel()
	url := commandtest.StartMock(t, mockserver.Config{}).URL() + "/payments"
	file := commandtest.WriteFile(t, "in.csv", "order,amount\nC-1,1.00\n")
	commandtest.Run(t, "batch", file, "--url", url, "--key", "o:{order}").Want(t, terminal.ExitOK)
	const refund, overlap = "--type COLUMN", "one row that several exports have"
	for name, c := range map[string]struct {
		exports []string
		args    []string
		has     []string
		not     string
	}{
		"in one export":  {[]string{"C-1,payment\nC-1,refund\n"}, nil, []string{refund}, overlap},
		"in two exports": {[]string{"C-1,payment\n", "C-2,payment\nC-1,payment\n"}, nil, []string{refund, overlap}, "\n\n"},
		"of one type":    {[]string{"C-1,payment\nC-1,payment\n"}, []string{"--type", "kind"}, nil, refund},
	} {
		args := append([]string{"audit", "--journal", file + ".oncehttp.db", "--match", "order", "--reference", "/order"}, c.args...)
		for _, rows := range c.exports {
			args = append(args, "--against", commandtest.WriteFile(t, "export.csv", "order,kind\n"+rows))
		}
		got := commandtest.Run(t, args...).Want(t, terminal.ExitFindings).Out
		for _, words := range append(c.has, "twice ") {
			if !strings.Contains(got, words) || strings.Contains(got, c.not) {
				t.Errorf("%s: want %q and not %q in\n%s", name, words, c.not, got)
			}
		}
	}
}

// TestAuditOfAnEmptyColumn: where --match is empty in every row, stderr says so, and no operation is to be sent anew; rows of nobody are still told.
func TestAuditOfAnEmptyColumn(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 2)
	for name, export := range map[string]string{"CSV": "id,key\n1,\n2, \n", "NDJSON": `{"id":"1","key":""}` + "\n"} {
		all, got := findings(t, terminal.ExitFindings, "--journal", j, "--against", commandtest.WriteFile(t, "export", export), "--match", "key", "--all-rows")
		if !strings.Contains(got.Err, `the column "key" (--match) is empty in every row`) {
			t.Errorf("%s: %q", name, got.Err)
		}
		kinds := map[string]int{}
		for _, x := range all {
			if kinds[x.Finding]++; x.Next != "" {
				t.Errorf("%s: %+v", name, x)
			}
		}
		if kinds["missing"] != 2 || kinds["foreign"] == 0 {
			t.Errorf("%s: %v", name, kinds)
		}
	}
}

// TestAuditNamesLoneTypes: where some operations have rows of one type alone, and others of another one, stderr says so: a refund alone proves no payment.
func TestAuditNamesLoneTypes(t *testing.T) {
	t.Parallel()
	j := doneJournal(t, 3)
	for name, c := range map[string]struct {
		export string
		said   string
	}{
		"a refund alone":   {"order,kind\n1,payment\n2,refund\n3,payment\n", "types: 2 operations with kind=payment alone, 1 operation with kind=refund alone, and the total there adds up all types; to compare one of them: --where kind=payment\n"},
		"beside a payment": {"order,kind\n1,payment\n2,payment\n2,refund\n3,payment\n", ""},
	} {
		_, got := findings(t, terminal.ExitOK, "--journal", j, "--against", commandtest.WriteFile(t, "export.csv", c.export), "--type", "kind", "--all-rows")
		if strings.Contains(got.Err, "types: ") != (c.said != "") || !strings.Contains(got.Err, c.said) {
			t.Errorf("%s: %q", name, got.Err)
		}
	}
}
