package audit_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// findings runs audit and gives what it found, in their order, without the amounts.
func findings(t *testing.T, status int, args ...string) ([]audit.Finding, commandtest.Ran) {
	t.Helper()
	got := commandtest.Run(t, append([]string{"audit", "--json", "--match", "order", "--reference", "/order"}, args...)...).Want(t, status)
	var all []audit.Finding
	for line := range strings.Lines(got.Out) {
		var f audit.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		f.Amounts = "" // TestAuditNamesAmounts has them
		all = append(all, f)
	}
	return all, got
}

// What is in doubt here and absent there is never "nothing found".
func TestAuditListsWhatIsUnresolved(t *testing.T) {
	t.Parallel()
	j := commandtest.DoubtJournal(t)
	export := commandtest.WriteFile(t, "export.csv", "order,amount,status,at\n1,1.00,succeeded,2020-01-01T00:00:00Z\n2,1.00,failed,2020-01-01T00:00:00Z\n")
	all, got := findings(t, terminal.ExitFindings, "--journal", j, "--against", export, "--where", "status=succeeded")
	want := []audit.Finding{
		{Finding: "unresolved", Key: "idemp:o:2", Reference: "2", Here: "pending", There: export + " row 2 (status=failed)", Next: "oncehttp journal resume idemp:o:2 --journal " + j},
		{Finding: "unresolved", Key: "idemp:o:3", Reference: "3", Here: "held (redirected)", Next: "oncehttp journal show idemp:o:3 --journal " + j},
		{Finding: "unresolved", Key: "idemp:o:4", Reference: "4", Here: "abandoned"},
	}
	if !slices.Equal(all, want) {
		t.Errorf("found\n%+v, want\n%+v", all, want)
	}
	if want := "4 operations here against 1 row there: 3 unresolved; evidence as of the export\n"; got.Err != want {
		t.Errorf("stderr %q, want %q", got.Err, want)
	}
	// Of another time than the exports', what nobody has ended is told all the same.
	all, _ = findings(t, terminal.ExitFindings, "--journal", j, "--against", export, "--where", "status=succeeded", "--time", "at", "--since", "2020-01-01T00:00:00Z", "--until", "2021-01-01T00:00:00Z")
	if len(all) != 2 || all[0].Key != "idemp:o:2" || all[1].Key != "idemp:o:3" {
		t.Errorf("found %+v", all)
	}
}

// A command to settle is printed for a row of something done, and for nothing else.
func TestAuditSettlesOnlyWhatIsDone(t *testing.T) {
	t.Parallel()
	j := commandtest.DoubtJournal(t)
	const head = "order,amount,currency,status\n1,1.00,EUR,ok\n3,1.00,EUR,ok\n4,1.00,EUR,ok\n"
	command := "oncehttp journal settle idemp:o:2 --happened --journal " + j
	amounts := []string{"--amount", "/amount", "--currency", "currency"}
	where := []string{"--where", "status=ok"}
	for name, c := range map[string]struct {
		rows            string
		args            []string
		kind, next, why string
	}{
		"nothing says which rows are done": {"2,1.00,EUR,ok\n", nil, "settle", "", "the row may be of a payment that failed; say --where, or --all-rows"},
		"its row says failed":              {"2,1.00,EUR,failed\n", []string{"--all-rows"}, "failed", "", "the row says that it is of nothing done"},
		"it failed":                        {"2,1.00,EUR,failed\n", where, "unresolved", "oncehttp journal resume idemp:o:2 --journal " + j, ""},
		"it is done":                       {"2,1.00,EUR,ok\n", where, "settle", command, ""},
		"all rows are done":                {"2,1.00,EUR,\n", []string{"--all-rows"}, "settle", command, ""},
		"failed, then done":                {"2,1.00,EUR,failed\n2,1.00,EUR, ok \n", where, "settle", command, ""},
		"another amount":                   {"2,1.01,EUR,ok\n", append(amounts, where...), "settle", "", "the amounts differ: 1.00 EUR here, 1.01 EUR there"},
		"another currency":                 {"2,1.00,USD,ok\n", append(amounts, where...), "settle", "", "the amounts differ: 1.00 EUR here, 1.00 USD there"},
		"the same amount":                  {"2,1.0,eur,ok\n", append(amounts, where...), "settle", command, ""},
		"two rows":                         {"2,1.00,EUR,ok\n2,1.00,EUR,ok\n", where, "settle", "", "there is more than one row"},
		"any of two values":                {"2,1.00,EUR,paid\n", append([]string{"--where", "status=paid"}, where...), "settle", command, ""},
		"all of two columns":               {"2,1.00,USD,ok\n", append([]string{"--where", "currency=EUR"}, where...), "unresolved", "oncehttp journal resume idemp:o:2 --journal " + j, ""},
	} {
		t.Run(name, func(t *testing.T) {
			export := commandtest.WriteFile(t, "export.csv", head+c.rows)
			all, _ := findings(t, terminal.ExitFindings, append([]string{"--journal", j, "--against", export}, c.args...)...)
			i := slices.IndexFunc(all, func(f audit.Finding) bool { return f.Key == "idemp:o:2" })
			if i < 0 || all[i].Finding != c.kind || all[i].Next != c.next || all[i].Why != c.why {
				t.Errorf("found %+v", all)
			}
			for _, f := range all {
				if f.Key == "idemp:o:4" && (f.Next != "" || f.Finding != "settle") {
					t.Errorf("abandoned, which is final: %+v", f)
				}
			}
		})
	}
}

// One row is not the proof of two operations, and of two rows each has its own.
func TestAuditCountsARowOnce(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, "in.csv", "id,order\na,1\nb,1\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--workers", "1").Want(t, terminal.ExitOK)
	all, _ := findings(t, terminal.ExitFindings, "--journal", file+".oncehttp.db", "--against", commandtest.WriteFile(t, "one.csv", "order\n1\n"))
	if len(all) != 1 || all[0].Finding != "missing" || all[0].Key != "idemp:o:b" || all[0].Why != "its row is that of another operation here" {
		t.Errorf("found %+v", all)
	}
}

// Blanks, semicolons, a decimal comma and CR at the ends of lines are read as what they mean.
func TestAuditReadsWhatSpreadsheetsWrite(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, "in.csv", "order,amount,currency\nA1,123450,EUR\nA2,100,EUR\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{order}").Want(t, terminal.ExitOK)
	base := []string{"--journal", file + ".oncehttp.db", "--amount", "/amount", "--unit", "major", "--currency", "currency", "--where", "status=paid"}
	text := "order ; amount;currency;status\r A1 ; 1.234,50 ;eur ;paid \rA2;1,00;EUR;paid\r"
	export := commandtest.WriteFile(t, "export.csv", text)
	_, got := findings(t, terminal.ExitOK, append(base, "--against", export, "--decimal", ",")...)
	want := export + ": its lines end in CR alone\n" + export + ": its columns are parted by semicolons, as the header shows (--delimiter says otherwise)\n" +
		"2 operations here against 2 rows there: nothing found; evidence as of the export\n" +
		"total /amount here EUR: 1235.50 in 2 operations = 1235.50 in 2 done\ntotal amount there EUR: 1235.50 in 2 rows\n"
	if got.Err != want {
		t.Errorf("stderr %q, want %q", got.Err, want)
	}
	bars := commandtest.WriteFile(t, "bars.csv", strings.NewReplacer(";", "|", "\r", "\n").Replace(text))
	findings(t, terminal.ExitOK, append(base, "--against", bars, "--decimal", ",", "--delimiter", "|")...)
}

// All that is wrong with the exports is said at once, with its lines, and nothing is compared.
func TestAuditFaults(t *testing.T) {
	t.Parallel()
	j := commandtest.DoubtJournal(t)
	one := commandtest.WriteFile(t, "one.csv", "order,amount,currency\n1,1.00,EUR\n2,\"1,00\",EUR\n3,1.234,EUR\n4,1.00,\n5\n6,1/3,EUR\n")
	two := commandtest.WriteFile(t, "two.ndjson", `{"order":"7","amount":"1,00","currency":"EUR"}`+"\n{\n"+`{"order":"8","currency":"EUR"}`+"\n")
	got := commandtest.Run(t, "audit", "--journal", j, "--match", "order", "--reference", "/order", "--amount", "/amount", "--currency", "currency", "--against", one, "--against", two).Want(t, terminal.ExitUsage)
	want := "oncehttp: " + strings.Join([]string{
		one + `: row 2 (line 3), column "amount": "1,00" is not a plain number; --decimal , reads it`,
		one + `: row 3 (line 4), column "amount": "1.234" may be read in two ways; say --decimal . or --decimal ,`,
		one + `: row 4 (line 5), column "currency": "" is no currency of three letters; if the row is a total, take it out, or say --where for the others; --currency '' compares none`,
		one + `: row 5 (line 6): has another number of fields than the header`,
		one + `: row 6 (line 7), column "amount": "1/3" is no amount`,
		two + `: row 1, column "amount": "1,00" is no amount`,
		two + `: row 2: is not JSON: byte 1: unexpected end of JSON input`,
		two + `: row 3, column "amount": named by --amount-column, is not there`,
		one + ", " + two + ": 8 faults; nothing was compared",
	}, "\noncehttp: ") + "\n"
	if got.Out != "" || got.Err != want {
		t.Errorf("stdout %q, stderr\n%swant\n%s", got.Out, got.Err, want)
	}
}
