package audit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
)

// Every kind of difference is found, and what agrees is not: also where the requests
// and answers were pruned.
func TestAuditFindsEveryDifference(t *testing.T) {
	t.Parallel()
	export := commandtest.WriteFile(t, "export.csv", "order,amount,status,kind\n"+
		"1,100,succeeded,payment\n"+ // agrees
		"2,999,succeeded,payment\n"+ // other amount
		"3,300,succeeded,payment\n3,300,succeeded,payment\n"+ // twice
		"4,400,succeeded,payment\n"+ // declined here
		"5,500,succeeded,payment\n"+ // unknown here
		"6,600,failed,payment\n"+ // not done there either
		"8,800,succeeded,payment\n") // not ours; 7 is missing
	for name, pruned := range map[string]bool{"as it was": false, "pruned": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := commandtest.AuditJournal(t)
			if pruned {
				commandtest.Prune(t, j)
			}
			args := []string{"audit", "--journal", j, "--against", export, "--match", "order", "--reference", "/order", "--amount", "/amount", "--where", "status=succeeded"}
			got := commandtest.Run(t, args...).Want(t, terminal.ExitFindings)
			var kinds []string
			for line := range strings.Lines(got.Out) {
				kinds = append(kinds, strings.Join(strings.Fields(line)[:2], " "))
			}
			want := []string{"amount idemp:o:2", "twice idemp:o:3", "conflict idemp:o:4", "settle idemp:o:5", "unresolved idemp:o:6", "missing idemp:o:7", "foreign 8"}
			if !slices.Equal(kinds, want) {
				t.Errorf("got %q, want %q\n%s", kinds, want, got.Out)
			}
			if !strings.Contains(got.Out, "oncehttp journal settle idemp:o:5 --happened --journal "+j) {
				t.Errorf("stdout\n%s", got.Out)
			}
			if want := "7 operations here against 7 rows there: 1 missing, 1 unresolved, 1 twice, 1 amount, 1 settle, 1 conflict, 1 foreign; evidence as of the export\n" +
				"total /amount here: 2800 in 7 operations = 1300 in 4 done + 400 in 1 declined + 1100 in 2 pending\ntotal amount there: 3399 in 7 rows\n" +
				"foreign: 1 row of another journal or program; where a backup of this journal was put back, first say oncehttp journal restored --taken TIME --journal " + j + "\n"; got.Err != want {
				t.Errorf("stderr %q, want %q", got.Err, want)
			}
		})
	}
}

// An operation whose request is gone, and of which nothing or too little was kept, is
// no agreement: audit says what is missing, and which flag would have helped.
func TestAuditNotAuditable(t *testing.T) {
	t.Parallel()
	export := commandtest.WriteFile(t, "export.csv", "order,amount\n1,100\n2,200\n3,300\n")
	const none = "its request was pruned, and nothing is kept of %s: it had nothing there, or was sent without --keep-field %s"
	for name, c := range map[string]struct {
		batch, audit []string
		keys         string // of the operations that are not auditable
		why          string
	}{
		"no reference": {[]string{"--keep-field", "/amount"}, []string{"--reference", "/order"}, "1237", fmt.Sprintf(none, "/order", "/order")},
		"nothing":      {[]string{"--keep-field", "none"}, []string{"--reference", "/order"}, "1237", fmt.Sprintf(none, "/order", "/order")},
		"no amount":    {[]string{"--keep-field", "/order"}, []string{"--reference", "/order", "--amount", "/amount"}, "123", fmt.Sprintf(none, "/amount", "/amount")},
		"quoted":       {nil, []string{"--reference", "/order id"}, "1237", fmt.Sprintf(none, "/order id", "'/order id'")},
		"declined": {nil, []string{"--reference", "/order", "--declined", "/result=no"}, "7",
			"its answer was pruned, so that --declined cannot be looked up in it, and the exports do not have it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := commandtest.AuditJournal(t, c.batch...)
			commandtest.Prune(t, j)
			got := commandtest.Run(t, append([]string{"audit", "--json", "--journal", j, "--against", export, "--match", "order"}, c.audit...)...).Want(t, terminal.ExitFindings)
			keys := ""
			for line := range strings.Lines(got.Out) {
				var f audit.Finding
				if err := json.Unmarshal([]byte(line), &f); err != nil {
					t.Fatal(err)
				}
				if f.Finding != audit.NotAuditable || strings.ContainsAny(strings.TrimPrefix(f.Key, "idemp:o:"), "56") {
					continue
				}
				keys += strings.TrimPrefix(f.Key, "idemp:o:")
				if f.Why != c.why {
					t.Errorf("%s: why %q, want %q", f.Key, f.Why, c.why)
				}
			}
			if keys != c.keys {
				t.Errorf("not auditable are %q, want %q\n%s", keys, c.keys, got.Out)
			}
		})
	}
}

// What stood in a request but could not be kept is told from what was not asked for,
// and a request that is still there says for itself what it lacks.
func TestRequestText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rec       persist.Record
		text, why string
	}{
		"there":           {persist.Record{Body: []byte(`{"amount":1.50}`)}, "1.50", ""},
		"a form":          {persist.Record{Body: []byte("amount=7&x=y"), Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}, "7", ""},
		"not there":       {persist.Record{Body: []byte(`{}`)}, "", "its request has nothing at /amount"},
		"an object":       {persist.Record{Body: []byte(`{"amount":{}}`)}, "", "its request has no text, number or boolean at /amount"},
		"kept, and there": {persist.Record{Body: []byte(`{"amount":2}`), KeptFields: []persist.KeptField{{Pointer: "/amount", Value: "1"}}}, "2", ""},
		"kept":            {persist.Record{Swept: true, KeptFields: []persist.KeptField{{Pointer: "/order", Value: "0"}, {Pointer: "/amount", Value: "1"}}}, "1", ""},
		"could not be kept": {persist.Record{Swept: true, KeptFields: []persist.KeptField{{Pointer: "/amount", Omitted: true}}}, "",
			"its request was pruned, and what stood at /amount was too long to be kept, or no text, number or boolean"},
	} {
		if text, why := results.RequestText(&c.rec, "/amount"); text != c.text || why != c.why {
			t.Errorf("%s: %q, %q; want %q, %q", name, text, why, c.text, c.why)
		}
	}
}

// Keys can be matched instead of references; rows of other types are not twice;
// amounts in major units are compared by their currency; NDJSON is read too.
func TestAuditAgrees(t *testing.T) {
	t.Parallel()
	j := commandtest.AuditJournal(t)
	var rows strings.Builder
	for _, id := range []int{1, 2, 3, 7} {
		fmt.Fprintf(&rows, `{"ref":"idemp:o:%d","paid":%d.00,"cur":"eur","kind":"payment"}`+"\n", id, id)
	}
	rows.WriteString(`{"ref":"idemp:o:7","paid":7,"cur":"eur","kind":"refund"}` + "\n")
	export := commandtest.WriteFile(t, "export.ndjson", rows.String())
	got := commandtest.Run(t, "audit", "--journal", j, "--against", export, "--match", "ref", "--amount", "/amount", "--amount-column", "paid",
		"--unit", "major", "--currency", "cur", "--type", "kind").Want(t, terminal.ExitFindings)
	if n := strings.Count(got.Out, "\n"); n != 2 || strings.Count(got.Out, "unresolved ") != 2 || !strings.Contains(got.Err, ": 2 unresolved; evidence as of the export") {
		t.Errorf("stdout %q, stderr %q; want the two that are unknown here", got.Out, got.Err)
	}
}

// A wrong call or export is one clear line.
func TestAuditUsage(t *testing.T) {
	t.Parallel()
	j := commandtest.AuditJournal(t)
	export := commandtest.WriteFile(t, "export.csv", "order,amount,when\n1,ten,yesterday\n")
	base := []string{"audit", "--journal", j, "--against", export, "--match", "order"}
	for want, args := range map[string][]string{
		"--against is required": {"audit", "--journal", j},
		"--match is required: the export's column with the key, or with the reference":                                                       {"audit", "--journal", j, "--against", export},
		`--unit "x": want minor or major`:                                                                                                    append(base, "--unit", "x"),
		`--reference "order" is not a JSON pointer, such as /amount`:                                                                         append(base, "--reference", "order"),
		`--where "x": want COLUMN=VALUE`:                                                                                                     append(base, "--where", "x"),
		export + `: there is no column "kind" (--type), "state" (--where); the columns are "order", "amount", "when"`:                        append(base, "--where", "state=x", "--type", "kind"),
		export + `: row 1 (line 2), column "amount": "ten" is no amount`:                                                                     append(base, "--amount", "/amount"),
		`--our-unit "x": want minor or major`:                                                                                                append(base, "--our-unit", "x"),
		`--decimal ";": want . or , as what stands before the decimals`:                                                                      append(base, "--decimal", ";"),
		`--delimiter "ab": want one character, or TAB`:                                                                                       append(base, "--delimiter", "ab"),
		"--our-currency needs --currency, the export's column":                                                                               append(base, "--our-currency", "/currency"),
		"--all-rows and --where: say one":                                                                                                    append(base, "--all-rows", "--where", "when=x"),
		"--since and --until need --time, the column with the time of a row":                                                                 append(base, "--since", "2026-01-01T00:00:00Z"),
		`--since "monday": want a time with its zone, such as 2026-01-31T00:00:00Z`:                                                          append(base, "--since", "monday", "--time", "when"),
		export + `: row 1 (line 2), column "when": "yesterday" is no time with a zone, such as 2026-01-31T10:00:00Z, nor seconds since 1970`: append(base, "--time", "when"),
	} {
		commandtest.Run(t, args...).Usage(t, "oncehttp: "+want)
	}
}
