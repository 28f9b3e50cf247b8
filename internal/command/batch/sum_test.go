package batch_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/testrun"
)

// moody answers as its seed says, each key and attempt in its own way: every kind of answer that a batch may meet.
func moody(t *testing.T, seed int) *commandtest.Counted {
	t.Helper()
	seen := map[string]int{}
	return serveOneByOne(t, func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		seen[key]++
		h := fnv.New32a()
		_, _ = fmt.Fprint(h, seed, key, seen[key])
		said := func(status int) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"id":1}`)
		}
		switch h.Sum32() % 16 {
		case 0:
			said(http.StatusAccepted)
		case 1:
			said(http.StatusPaymentRequired)
		case 2:
			said(http.StatusUnprocessableEntity)
		case 3:
			said(http.StatusTooManyRequests)
		case 4:
			said(http.StatusUnauthorized)
		case 5:
			said(http.StatusInternalServerError)
		case 6:
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case 7:
			panic(http.ErrAbortHandler)
		case 8: // the key belongs to another request
			w.Header().Set("Link", `<https://example.com>; rel="describedby"`)
			said(http.StatusUnprocessableEntity)
		case 9:
			said(http.StatusConflict)
		case 11:
			w.WriteHeader(http.StatusForbidden)
		case 10: // a page before the API
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html></html>")
		default:
			said(http.StatusCreated)
		}
	})
}

// serveOneByOne serves one request at a time.
func serveOneByOne(t *testing.T, handle http.HandlerFunc) *commandtest.Counted {
	turn := make(chan struct{}, 1)
	return commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		turn <- struct{}{}
		defer func() { <-turn }()
		handle(w, r)
	})
}

// sumsOf adds up the amounts by the classes of what a run has printed: unknown stands for pending, too.
func sumsOf(t *testing.T, lines []results.Line, amounts []int, currencies []string) map[string]map[string][2]int {
	t.Helper()
	sums := map[string]map[string][2]int{}
	add := func(row int, class string) {
		c := currencies[row]
		if sums[c] == nil {
			sums[c] = map[string][2]int{}
		}
		was := sums[c][class]
		sums[c][class] = [2]int{was[0] + 1, was[1] + amounts[row]}
	}
	printed := map[int]bool{}
	for _, l := range lines {
		if printed[l.Row] {
			t.Errorf("row %d is printed twice", l.Row)
		}
		printed[l.Row] = true
		add(l.Row-1, string(l.Result))
	}
	for row := range amounts {
		if !printed[row+1] {
			add(row, "not looked at")
		}
	}
	return sums
}

// readTotals reads the lines "total amount EUR: 3.00 in 2 rows = 1.00 in 1 done + 2.00 in 1 held".
func readTotals(t *testing.T, text string) (parts map[string]map[string][2]int, wholes map[string][2]int) {
	t.Helper()
	parts, wholes = map[string]map[string][2]int{}, map[string][2]int{}
	for text := range strings.Lines(text) {
		if !strings.HasPrefix(text, "total amount ") {
			continue
		}
		var currency, sum, noun string
		var rows int
		head, tail, _ := strings.Cut(strings.TrimSpace(text), " = ")
		if _, err := fmt.Sscanf(head, "total amount %s %s in %d %s", &currency, &sum, &rows, &noun); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		currency = strings.TrimSuffix(currency, ":")
		wholes[currency], parts[currency] = [2]int{rows, cents(t, sum)}, map[string][2]int{}
		for _, part := range strings.Split(tail, " + ") {
			if tail == "" {
				break // of a dry run
			}
			var class string
			if _, err := fmt.Sscanf(part, "%s in %d %s", &sum, &rows, &class); err != nil {
				t.Fatalf("%v in %q", err, part)
			}
			if strings.HasSuffix(part, "not looked at") || strings.HasSuffix(part, "stopped before a send") { // no line tells them apart
				class = "not looked at"
			}
			if class == string(results.ClassPending) {
				class = string(results.ClassUnknown)
			}
			was := parts[currency][class]
			parts[currency][class] = [2]int{was[0] + rows, was[1] + cents(t, sum)}
		}
	}
	return parts, wholes
}

func cents(t *testing.T, text string) int {
	t.Helper()
	whole, fraction, _ := strings.Cut(text, ".")
	var n int
	if _, err := fmt.Sscan(whole+fraction, &n); err != nil || len(fraction) != 2 {
		t.Fatalf("%q is no sum of two decimals", text)
	}
	return n
}

// Whatever a server does, each row is in one class, and the classes add up to the rows and to the sum, exactly and by
// currency: in the first run, in one that goes on, and in the journal.
func TestTotalsAddUp(t *testing.T) {
	t.Parallel()
	for seed := range testrun.N(4, 12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			var text strings.Builder
			var amounts []int
			var currencies, rows []string
			text.WriteString("id,amount,cur\n")
			for i := range 80 {
				amount, currency := random.IntN(1e6), []string{"EUR", "USD", "eur "}[random.IntN(3)]
				row := fmt.Sprintf("r%d,%d.%02d,%s\n", i, amount/100, amount%100, currency)
				if i > 0 && random.IntN(8) == 0 { // the same row again, which is one operation
					at := random.IntN(i)
					row, amount, currency = rows[at], amounts[at], currencies[at]
				}
				rows, amounts, currencies = append(rows, row), append(amounts, amount), append(currencies, strings.ToUpper(strings.TrimSpace(currency)))
				text.WriteString(row)
			}
			file := commandtest.WriteFile(t, "in.csv", text.String())
			s := moody(t, seed)
			args := commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--sum", "amount", "--currency", "cur", "--max-attempts", "2",
				"--max-errors", []string{"0", "1", "3"}[seed%3], "--max-retry-after", "1ns")
			for attempt := range 3 {
				got := commandtest.Run(t, args...)
				parts, wholes := readTotals(t, got.Err)
				want := sumsOf(t, got.Lines(t), amounts, currencies)
				if fmt.Sprint(parts) != fmt.Sprint(want) {
					t.Errorf("run %d: totals\n%v, want\n%v\n%s", attempt, parts, want, got.Err)
				}
				for currency, whole := range wholes {
					var sum [2]int
					for _, part := range parts[currency] {
						sum = [2]int{sum[0] + part[0], sum[1] + part[1]}
					}
					if sum != whole {
						t.Errorf("run %d: the classes of %s add up to %v, and the whole is %v", attempt, currency, sum, whole)
					}
				}
				statsAddUp(t, file+".oncehttp.db")
			}
			if _, wholes := readTotals(t, commandtest.Run(t, append(args, "--dry-run")...).Want(t, terminal.ExitOK).Err); len(wholes) == 0 {
				t.Error("no totals in --dry-run")
			}
		})
	}
}

// statsAddUp holds the totals of stats against the states that it counts.
func statsAddUp(t *testing.T, journal string) {
	t.Helper()
	if _, err := os.Stat(journal); err != nil {
		return
	}
	var st struct {
		Operations int
		States     map[string]int
		Totals     []results.TotalView
	}
	if err := json.Unmarshal([]byte(commandtest.Run(t, "journal", "stats", "--json", "--sum", "/amount", "--currency", "/cur", "--journal", journal).Want(t, terminal.ExitOK).Out), &st); err != nil {
		t.Fatal(err)
	}
	rows, held, pending := 0, 0, 0
	for _, v := range st.Totals {
		inClasses := 0
		for c, part := range v.Classes {
			inClasses += part.Rows
			switch c {
			case results.ClassHeld:
				held += part.Rows
			case results.ClassPending:
				pending += part.Rows
			}
		}
		if inClasses != v.Rows {
			t.Errorf("%+v does not add up", v)
		}
		rows += v.Rows
	}
	if rows != st.Operations || held != st.States["held"] || pending != st.States["pending"] {
		t.Errorf("totals of %d operations, %d held, %d pending; want %d, %v", rows, held, pending, st.Operations, st.States)
	}
}

// Totals survive a prune, are read by stats, report and audit, and are exact where floats are not.
func TestTotalsOfTheJournal(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), `"3"`) {
			w.WriteHeader(http.StatusPaymentRequired)
			_, _ = io.WriteString(w, `{"code":"declined"}`)
		}
	})
	file := commandtest.WriteFile(t, "in.csv", "id,net,cur\n1,0.10,EUR\n2,0.20,EUR\n3,9007199254740993.01,EUR\n")
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--sum", "net", "--currency", "cur").Want(t, terminal.ExitRefused)
	j := file + ".oncehttp.db"
	commandtest.Run(t, "journal", "prune", "--journal", j, "--keep-answer", "-1s", "--yes").Want(t, terminal.ExitOK)
	const sums = "9007199254740993.31 in 3 operations = 0.30 in 2 done + 9007199254740993.01 in 1 declined"
	if got := commandtest.Run(t, "journal", "stats", "--journal", j, "--sum", "/net", "--currency", "/cur").Want(t, terminal.ExitOK); !strings.Contains(got.Out, "\ntotal /net EUR: "+sums+"\n") {
		t.Errorf("stats %q", got.Out)
	}
	if got := commandtest.Run(t, "journal", "stats", "--journal", j, "--sum", "/none").Want(t, terminal.ExitOK); !strings.Contains(got.Out, "\ntotal /none: not known of 2 done, 1 declined\n") {
		t.Errorf("stats %q", got.Out)
	}
	page := j + ".html"
	commandtest.Run(t, "journal", "report", "--journal", j, "--sum", "/net", "--currency", "/cur", "--out", page).Want(t, terminal.ExitOK)
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(strings.ReplaceAll(string(text), "&#43;", "+"), "<li>total /net EUR: "+sums+"</li>") {
		t.Errorf("%v, report %s", err, text)
	}
	export := commandtest.WriteFile(t, "export.csv", "order,paid,cur\n1,0.1,EUR\n2,0.2,EUR\n")
	got := commandtest.Run(t, "audit", "--journal", j, "--against", export, "--match", "order", "--reference", "/id", "--amount", "/net", "--amount-column", "paid",
		"--currency", "cur", "--our-currency", "/cur").Want(t, terminal.ExitOK)
	if !strings.Contains(got.Err, "\ntotal /net here EUR: "+sums+"\ntotal paid there EUR: 0.3 in 2 rows\n") {
		t.Errorf("audit %q", got.Err)
	}
}

// What is not the expected file is refused before anything is sent, and before there is a journal; the expected one is sent.
func TestBatchExpects(t *testing.T) {
	t.Parallel()
	const text = "id,amount,cur\n1,10.50,EUR\n2,4.50,EUR\n3,1,USD\n"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"rows":              {[]string{"--expect-rows", "4"}, "FILE: has 3 rows, and --expect-rows says 4; nothing was sent"},
		"no rows":           {[]string{"--expect-rows", "0"}, "FILE: has 3 rows, and --expect-rows says 0; nothing was sent"},
		"sum":               {[]string{"--sum", "amount", "--expect-sum", "16.01"}, "FILE: adds up to 16.00, and --expect-sum says 16.01; nothing was sent"},
		"a currency":        {[]string{"--sum", "amount", "--currency", "cur", "--expect-sum", "eur=15", "--expect-sum", "USD=2"}, "FILE: adds up to 1 USD, and --expect-sum says 2; nothing was sent"},
		"one more currency": {[]string{"--sum", "amount", "--currency", "cur", "--expect-sum", "EUR=15"}, "FILE: has 1 USD in 1 row, of which --expect-sum says nothing; nothing was sent"},
		"one less":          {[]string{"--sum", "amount", "--currency", "cur", "--expect-sum", "EUR=15", "--expect-sum", "USD=1", "--expect-sum", "GBP=0"}, "FILE: has no GBP, and --expect-sum says 0; nothing was sent"},
		"both":              {[]string{"--sum", "amount", "--expect-sum", "1", "--expect-rows", "1"}, "FILE: has 3 rows, and --expect-rows says 1; adds up to 16.00, and --expect-sum says 1; nothing was sent"},
		"in a dry run":      {[]string{"--expect-rows", "4", "--dry-run"}, "FILE: has 3 rows, and --expect-rows says 4; nothing was sent"},
		"no --sum":          {[]string{"--expect-sum", "1"}, "--currency and --expect-sum need --sum, the amount"},
		"no number":         {[]string{"--sum", "amount", "--expect-sum", "1,5"}, `--expect-sum "1,5": is no decimal number; write it as 1234.50, whatever --decimal says of the file`},
		"no currency":       {[]string{"--sum", "amount", "--currency", "cur", "--expect-sum", "1"}, `--expect-sum "1": want 1234.50 or, with --currency, EUR=1234.50`},
		"no amount":         {[]string{"--sum", "cur"}, `FILE: row 1 (line 2), column "cur": "EUR" is no decimal number; --sum adds it up` + "\noncehttp: " + `FILE: row 3 (line 4), column "cur": "USD" is no decimal number; --sum adds it up` + "\noncehttp: FILE: 2 faults; nothing was sent"},
		"no column":         {[]string{"--sum", "net"}, `FILE: column "net": named by --sum, is not there; the columns are "id", "amount", "cur"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Refusing(t)
			file := commandtest.WriteFile(t, "in.csv", text)
			got := commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}"}, c.args...)...)
			if name == "no amount" {
				got.Err = strings.ReplaceAll(got.Err, " (1 more row alike)", "")
			}
			got.Usage(t, "oncehttp: "+strings.ReplaceAll(c.want, "FILE", file))
			if _, err := os.Stat(file + ".oncehttp.db"); err == nil {
				t.Error("there is a journal")
			}
		})
	}
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	commandtest.Run(t, "batch", commandtest.WriteFile(t, "in.csv", text), "--url", s.URL, "--key", "o:{id}", "--expect-rows", "3", "--sum", "amount", "--currency", "cur",
		"--expect-sum", "EUR=15", "--expect-sum", "USD=1.00").Want(t, terminal.ExitOK)
}
