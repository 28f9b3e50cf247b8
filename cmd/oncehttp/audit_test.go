package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// auditJournal has the orders 1 to 7: 4 declined, 5 and 6 unknown, the rest done. args
// are more arguments of batch.
func auditJournal(t *testing.T, args ...string) string {
	t.Helper()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(b), `"4"`):
			http.Error(w, "declined", http.StatusPaymentRequired)
		case strings.Contains(string(b), `"5"`), strings.Contains(string(b), `"6"`):
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	})
	file := writeFile(t, "in.csv", "order,amount\n1,100\n2,200\n3,300\n4,400\n5,500\n6,600\n7,700\n")
	run(t, fast(append([]string{"batch", file, "--url", s.url, "--key", "o:{order}", "--number", "amount", "--workers", "1", "--max-attempts", "1"}, args...)...)...).
		want(t, exitUnknown)
	return file + ".oncehttp.db"
}

// prune drops all answers and requests of final operations.
func prune(t *testing.T, journal string) {
	t.Helper()
	if got := run(t, "journal", "prune", "--journal", journal, "--keep-answer", "-1s", "--yes").want(t, exitOK); got.out != "pruned: 5 records\n" {
		t.Fatalf("stdout %q, want five pruned records", got.out)
	}
}

// Every kind of difference is found, and what agrees is not: also where the requests
// and answers were pruned.
func TestAuditFindsEveryDifference(t *testing.T) {
	t.Parallel()
	export := writeFile(t, "export.csv", "order,amount,status,kind\n"+
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
			j := auditJournal(t)
			if pruned {
				prune(t, j)
			}
			args := []string{"audit", "--journal", j, "--against", export, "--match", "order", "--reference", "/order", "--amount", "/amount", "--where", "status=succeeded"}
			got := run(t, args...).want(t, exitFindings)
			var kinds []string
			for line := range strings.Lines(got.out) {
				kinds = append(kinds, strings.Join(strings.Fields(line)[:2], " "))
			}
			want := []string{"amount idemp:o:2", "twice idemp:o:3", "conflict idemp:o:4", "settle idemp:o:5", "unresolved idemp:o:6", "missing idemp:o:7", "foreign 8"}
			if !slices.Equal(kinds, want) {
				t.Errorf("got %q, want %q\n%s", kinds, want, got.out)
			}
			if !strings.Contains(got.out, "oncehttp journal settle idemp:o:5 --happened --journal "+j) {
				t.Errorf("stdout\n%s", got.out)
			}
			if want := "7 operations here against 7 rows there: 1 missing, 1 unresolved, 1 twice, 1 amount, 1 settle, 1 conflict, 1 foreign; evidence as of the export\n" +
				"total /amount here: 2800 in 7 operations = 1300 in 4 done + 400 in 1 declined + 1100 in 2 pending\ntotal amount there: 3399 in 7 rows\n"; got.err != want {
				t.Errorf("stderr %q, want %q", got.err, want)
			}
		})
	}
}

// An operation whose request is gone, and of which nothing or too little was kept, is
// no agreement: audit says what is missing, and which flag would have helped.
func TestAuditNotAuditable(t *testing.T) {
	t.Parallel()
	export := writeFile(t, "export.csv", "order,amount\n1,100\n2,200\n3,300\n")
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
			j := auditJournal(t, c.batch...)
			prune(t, j)
			got := run(t, append([]string{"audit", "--json", "--journal", j, "--against", export, "--match", "order"}, c.audit...)...).want(t, exitFindings)
			keys := ""
			for line := range strings.Lines(got.out) {
				var f finding
				if err := json.Unmarshal([]byte(line), &f); err != nil {
					t.Fatal(err)
				}
				if f.Finding != notAuditable || strings.ContainsAny(strings.TrimPrefix(f.Key, "idemp:o:"), "56") {
					continue
				}
				keys += strings.TrimPrefix(f.Key, "idemp:o:")
				if f.Why != c.why {
					t.Errorf("%s: why %q, want %q", f.Key, f.Why, c.why)
				}
			}
			if keys != c.keys {
				t.Errorf("not auditable are %q, want %q\n%s", keys, c.keys, got.out)
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
		if text, why := requestText(&c.rec, "/amount"); text != c.text || why != c.why {
			t.Errorf("%s: %q, %q; want %q, %q", name, text, why, c.text, c.why)
		}
	}
}

// Keys can be matched instead of references; rows of other types are not twice;
// amounts in major units are compared by their currency; NDJSON is read too.
func TestAuditAgrees(t *testing.T) {
	t.Parallel()
	j := auditJournal(t)
	var rows strings.Builder
	for _, id := range []int{1, 2, 3, 7} {
		fmt.Fprintf(&rows, `{"ref":"idemp:o:%d","paid":%d.00,"cur":"eur","kind":"payment"}`+"\n", id, id)
	}
	rows.WriteString(`{"ref":"idemp:o:7","paid":7,"cur":"eur","kind":"refund"}` + "\n")
	export := writeFile(t, "export.ndjson", rows.String())
	got := run(t, "audit", "--journal", j, "--against", export, "--match", "ref", "--amount", "/amount", "--amount-column", "paid",
		"--unit", "major", "--currency", "cur", "--type", "kind").want(t, exitFindings)
	if n := strings.Count(got.out, "\n"); n != 2 || strings.Count(got.out, "unresolved ") != 2 || !strings.Contains(got.err, ": 2 unresolved; evidence as of the export") {
		t.Errorf("stdout %q, stderr %q; want the two that are unknown here", got.out, got.err)
	}
}

// What is missing near the edges of the exports is told apart.
func TestAuditEdges(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := &audit{flags: &auditFlags{edge: time.Hour}, from: now.Add(-24 * time.Hour), to: now}
	for name, c := range map[string]struct {
		at            time.Time
		outside, near bool
	}{
		"inside": {now.Add(-12 * time.Hour), false, false}, "before": {now.Add(-48 * time.Hour), true, false}, "after": {now.Add(2 * time.Hour), true, false},
		"first hour": {now.Add(-24*time.Hour + time.Minute), false, true}, "last hour": {now.Add(-time.Minute), false, true}, "no time": {time.Time{}, false, false},
	} {
		if outside, near := a.outside(c.at), a.nearEdge(c.at); outside != c.outside || near != c.near {
			t.Errorf("%s: outside %t, near %t", name, outside, near)
		}
	}
}

// Amounts are compared as numbers, in the currency's own decimals, whichever side has its smallest unit.
func TestSameAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ours, theirs     string
		ourUnit, theirOf string
		currency         string
		want             bool
	}{
		{"100", "100", "", "", "", true}, {"100", "100.00", "", "", "", true}, {"1e2", "100", "", "", "", true}, {"100", "101", "", "", "", false},
		{"100", "1.00", "", "major", "EUR", true}, {"100", "100", "", "major", "jpy", true}, {"1500", "1.5", "", "major", "KWD", true},
		{"100", "1.001", "", "major", "EUR", false}, {"100", "100", "", "major", "EUR", false},
		{"1.00", "100", "major", "minor", "EUR", true}, {"1.00", "1", "major", "minor", "JPY", true}, {"1.5", "1500", "major", "minor", "KWD", true},
		{"1.00", "1", "major", "minor", "EUR", false}, {"1.00", "1", "major", "", "EUR", true}, {"-1.00", "-100", "major", "minor", "", true},
		{"0.1", "0.10000000000000000001", "", "", "", false},
	} {
		u := units{theirs: c.theirOf, ours: c.ourUnit}
		if err := u.check(); err != nil {
			t.Fatal(err)
		}
		ours, err := parseDecimal(c.ours)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := parseDecimal(c.theirs)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.same(ours, theirs, c.currency); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// A wrong call or export is one clear line.
func TestAuditUsage(t *testing.T) {
	t.Parallel()
	j := auditJournal(t)
	export := writeFile(t, "export.csv", "order,amount,when\n1,ten,yesterday\n")
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
		run(t, args...).usage(t, "oncehttp: "+want)
	}
}
