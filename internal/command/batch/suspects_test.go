package batch_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestSuspects: rows that may be a mistake are named with their lines before anything is sent, and sent; --strict refuses them.
func TestSuspects(t *testing.T) {
	t.Parallel()
	created := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
	const ofID, ofAmount = "p:{id}", "p:{id}:{amount}"
	for name, c := range map[string]struct {
		rows, key, sum string
		want           []string
	}{
		"a row says that it is a total": {
			"id,note,amount\n1,\"a\nb\",10.00\n2,c,20.00\n3,Total:,30.00\n", ofID, "", []string{`row 3 (line 5): says "Total:"`},
		},
		"a total in other words": {
			"id,note,amount\n1,c,10.00\n2,Total EUR,20.00\n3,Sum (2 rows),30.00\n4,Total 2026: 3,1.00\n", ofID, "",
			[]string{`row 2 (line 3): says "Total EUR"`, `row 3 (line 4): says "Sum (2 rows)"`, `row 4 (line 5): says "Total 2026: 3"`},
		},
		"amounts of --sum": {
			"id,amount\n1,-10.00\n2,0.00\n3,1e3\n4,12.50\n", ofID, "amount",
			[]string{"row 1 (line 2): has the amount -10.00, which is negative", "row 2 (line 3): has the amount 0.00, which is zero", `row 3 (line 4): has the amount "1e3", which is 1000: a spreadsheet`},
		},
		"amounts without --sum": {
			"id,amount\n1,-10\n2,0\n3,1.5E+2\n4,12.50\n5,none\n", ofID, "",
			[]string{"row 1 (line 2): has the amount -10, which is negative", "row 2 (line 3): has the amount 0, which is zero", `row 3 (line 4): has the amount "1.5E+2", which is 150`, `row 5 (line 6): has the amount "none", which is no decimal number`},
		},
		"amounts that are no numbers": {
			"id,amount\n1,(5.00)\n2,\n3,12.50\n4,abc\n", ofID, "",
			[]string{`row 1 (line 2): has the amount "(5.00)", which is no decimal number`, "row 2 (line 3): has no amount", `row 4 (line 5): has the amount "abc", which is no decimal number`},
		},
		"amounts that are read in two ways": {
			"id,amount\n1,10.00\n2,1.234\n", ofID, "", []string{`row 2 (line 3): has the amount "1.234", which may be read in two ways; say --decimal . or --decimal ,; it would be sent as it is`},
		},
		"amounts that are all spelled otherwise": {
			"id,amount\n1,none\n2,\"1.234,50\"\n3,\"2,00\"\n", ofID, "", []string{`row 2 (line 3): has the amount "1.234,50", which is not a plain number; --decimal , reads it; it would be sent as it is (2 of the amounts are such)`},
		},
		"a column amount without numbers": {"id,amount\n1,small\n2,\n", ofID, "", nil},
		"amounts of NDJSON": {
			"{\"id\":1,\"amount\":-5}\n{\"id\":2,\"amount\":1e3}\n{\"id\":3,\"amount\":{\"value\":0}}\n", ofID, "",
			[]string{"row 1: has the amount -5", `row 2: has the amount "1e3"`},
		},
		"more decimals than the currency has": {
			"id,amount,currency\n1,1.2345,EUR\n2,10.5,jpy\n3,10.00,JPY\n4,1.2340,KWD\n5,1.2345,BTC\n", ofID, "",
			[]string{"row 1 (line 2): has the amount 1.2345, with more decimals than EUR, which has 2", "row 2 (line 3): has the amount 10.5, with more decimals than JPY, which has 0"},
		},
		"more decimals than the currency of --sum has": {
			"id,amount,unit\n1,1.2345,EUR\n2,1.25,EUR\n", ofID, "amount of unit", []string{"row 1 (line 2): has the amount 1.2345, with more decimals than EUR, which has 2"},
		},
		"another column is no amount":               {"id,balance\n1,-10\n2,0\n", ofID, "", nil},
		"the last amount is the sum, without --sum": {"id,amount\n1,10.00\n2,20.5\n3,30.50\n", ofID, "", []string{`row 3 (line 4): is the last, and its amount is the sum of all rows above`}},
		"a word in a text is no total":              {"id,note,amount\n1,the total of it,10.00\n2,Totally,20.00\n", ofID, "", nil},
		"the last amount is the sum": {
			"id,amount\n1,10.00\n2,20.5\n3,30.50\n", ofID, "amount", []string{"row 3 (line 4): is the last, and its amount is the sum of all rows above"},
		},
		"the last amount is the sum of several currencies": {
			"id,amount,currency\n1,10.00,EUR\n2,20.5,EUR\n3,5,USD\n4,35.50,EUR\n", ofID, "amount of currency", []string{"row 4 (line 5): is the last, and its amount is the sum of all rows above:"},
		},
		"the last amount is the sum of one currency of two": {
			"id,amount,currency\n1,10.00,EUR\n2,5,USD\n3,20.5,EUR\n4,30.50,EUR\n", ofID, "amount of currency", []string{"row 4 (line 5): is the last, and its amount is the sum of all rows above in its currency:"},
		},
		"an amount in the middle is the sum": {"id,amount\n1,10\n2,20\n3,30\n4,1\n", ofID, "amount", nil},
		"two rows are too few for a sum":     {"id,amount\n1,10\n2,10\n", ofID, "amount", nil},
		"keys alike": {
			"id,amount\nA1,1\nb2,1\na1,1\nA1 ,1\n", ofID, "",
			[]string{
				"row 3 (line 4): has a key that differs from that of row 1 (line 2) only in capitals, blanks, dashes or characters that Unicode takes for one", `row 4 (line 5): has "A1 " in its key, with blanks at an edge`,
				"row 4 (line 5): has a key that differs from that of row 1 (line 2)",
			},
		},
		"a key with blanks at its edges, and a cell of no key": {
			"id,note\n 1,a\n2, b\n\u00a03,c\n", ofID, "", []string{`row 1 (line 2): has " 1" in its key`, `row 3 (line 4): has "\u00a03" in its key`},
		},
		"characters that nobody sees, or that look alike": {
			"id,note\nA1,x\nA\u200b1,x\nA\uff11,x\ncaf\u00e9,x\ncafe\u0301,x\n\ufeffB,x\nC,\u200b\n", ofID, "",
			[]string{
				`row 2 (line 3): has "A\u200b1" in its key, with the character U+200B, which nobody sees`, "row 2 (line 3): has a key that differs from that of row 1 (line 2)",
				"row 3 (line 4): has a key that differs from that of row 1 (line 2)", "row 5 (line 6): has a key that differs from that of row 4 (line 5)", `row 6 (line 7): has "\ufeffB" in its key`,
			},
		},
		"two alphabets, and dashes": {
			"id\n\u041a1\nK\u04301\nK-1\nK\u20111\nK\u20131\n", ofID, "",
			[]string{
				"row 2 (line 3): has \"K\u04301\" in its key, with letters of two alphabets", "row 4 (line 5): has a key that differs from that of row 3 (line 4)", "row 5 (line 6): has a key that differs from that of row 3 (line 4)",
			},
		},
		"blanks and dashes": {
			"id\nDA-2\nDA2\nDA 2\n1-11\n11-1\n111\n1 11\n", ofID, "",
			[]string{
				"row 2 (line 3): has a key that differs from that of row 1 (line 2)", "row 3 (line 4): has a key that differs from that of row 1 (line 2)",
				"row 7 (line 8): has a key that differs from that of row 4 (line 5)",
			},
		},
		"sums of parts, with names": {
			"id,to,amount\n1,ACME,10.50\n2,ACME,20.00\n3,Subtotal ACME,30.50\n4,Bob,1.00\n5,Bob,2.00\n6,Bob total,3.00\n7,Total ACME and Bob,33.50\n8,Total Energies,4.00\n9,Total Wine,5.00\n", ofID, "",
			[]string{`row 3 (line 4): says "Subtotal ACME", and its amount is the sum of rows above`, `row 6 (line 7): says "Bob total"`, `row 7 (line 8): says "Total ACME and Bob"`},
		},
		"a row twice is a duplicate": {"id,amount\nA1,1\nA1,1\n", ofID, "", nil},
		"another amount": {
			"id,amount,note\n7,1.00,x\n8,1.00,x\n7,1.10,x\n7,1.20,y\n", ofAmount, "", []string{"row 3 (line 4): differs from row 1 (line 2) only in the amount"},
		},
		"NDJSON": {
			"{\"id\":1,\"amount\":5}\n{\"id\":1,\"amount\":6}\n\n{\"id\":2,\"amount\":6,\"note\":\"SUMME\"}\n", ofAmount, "",
			[]string{"row 2: differs from row 1 (line 1) only in the amount", `row 4: says "SUMME"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, created)
			file := commandtest.WriteFile(t, "in.csv", c.rows)
			args := []string{"batch", file, "--url", s.URL, "--key", c.key, "--quiet"}
			if sum, currency, _ := strings.Cut(c.sum, " of "); sum != "" {
				args = append(args, "--sum", sum, "--currency", currency)
			}
			status, sent := terminal.ExitOK, s.Sends.Load()
			if len(c.want) > 0 {
				status = terminal.ExitUsage
				refused := commandtest.Run(t, append(args, "--strict")...).Want(t, status)
				says(t, refused.Err, "oncehttp: ", file, c.want)
				if s.Sends.Load() != sent {
					t.Error("--strict has sent something")
				}
			}
			says(t, commandtest.Run(t, append(args, "--dry-run")...).Want(t, terminal.ExitOK).Err, "warning: ", file, c.want)
			says(t, commandtest.Run(t, args...).Want(t, terminal.ExitOK).Err, "warning: ", file, c.want)
			if s.Sends.Load() == 0 {
				t.Error("nothing was sent without --strict")
			}
		})
	}
}

// TestNoRows: a file with a header alone is refused in one line, unless --expect-rows 0 says that it is right.
func TestNoRows(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, rows := range []string{"id,amount\n", "id,amount", "id;amount\r\n\r\n"} {
		file := commandtest.WriteFile(t, "in.csv", rows)
		args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--sum", "amount", "--quiet"}
		for _, more := range [][]string{nil, {"--dry-run"}, {"--strict"}, {"--expect-sum", "0"}, {"--expect-rows", "1"}} {
			commandtest.Run(t, append(args, more...)...).Usage(t, "oncehttp: "+file+": has a header and no rows: there is nothing to send; where that is right, say --expect-rows 0")
		}
		if _, err := os.Stat(file + ".oncehttp.db"); err == nil {
			t.Error("a journal was made")
		}
		commandtest.Run(t, append(args, "--expect-rows", "0")...).Want(t, terminal.ExitOK)
	}
}

// TestSeveralCurrencies: sums over several currencies are warned about, where nobody has named the column with them.
func TestSeveralCurrencies(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	file := commandtest.WriteFile(t, "in.csv", "id,amount,currency\n1,5,EUR\n2,7,EUR\n3,8,USD\n")
	args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--sum", "amount"}
	text := file + ": --sum would add up EUR and USD; say --currency currency\n"
	commandtest.Run(t, append(args, "--strict")...).Usage(t, "oncehttp: "+strings.TrimSuffix(text, "\n"))
	if got := commandtest.Run(t, append(args, "--dry-run")...).Want(t, terminal.ExitOK); !strings.Contains(got.Err, "warning: "+text) {
		t.Errorf("stderr %q", got.Err)
	}
	if got := commandtest.Run(t, append(args, "--currency", "currency", "--strict")...).Want(t, terminal.ExitOK); strings.Contains(got.Err, "warning") {
		t.Errorf("stderr %q", got.Err)
	}
}

// TestDoubledBraces: a column in two braces, as other tools write it, is text, and that is said.
func TestDoubledBraces(t *testing.T) {
	t.Parallel()
	file := commandtest.WriteFile(t, "in.csv", "id\n1\n")
	for body, want := range map[string]string{
		`{"a":"{{id}}"}`:              `warning: --body has "{{id}}", which is sent as the text {id}; the cell of a column id is "{id}"` + "\n",
		`{"a":"{id}"}`:                "",
		`{"a":"{{ id }}"}`:            "", // as GraphQL
		`{"a":"{{ pay(id: {id}) }}"}`: "",
	} {
		got := commandtest.Run(t, "batch", file, "--url", "http://127.0.0.1:1/", "--key", "o:{id}", "--body", body, "--dry-run").Want(t, terminal.ExitOK).Err
		if strings.Contains(got, "warning") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: stderr %q", body, got)
		}
	}
}

// TestColumnMistyped: the fault names the flag that has the column, and the column that is most likely meant.
func TestColumnMistyped(t *testing.T) {
	t.Parallel()
	file := commandtest.WriteFile(t, "in.csv", "id,amount,currency\n1,5,EUR\n")
	const columns = `; the columns are "id", "amount", "currency"`
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--sum", "amuont"}, `column "amuont": named by --sum, is not there (is it "amount"?)` + columns},
		{[]string{"--sum", "amount", "--currency", "Curency"}, `column "Curency": named by --currency, is not there (is it "currency"?)` + columns},
		{[]string{"--ordered-by", "user"}, `column "user": named by --ordered-by, is not there` + columns},
		{[]string{"--number", "amout"}, `column "amout": named by --number, is not there (is it "amount"?)` + columns},
		{[]string{"--url", "http://127.0.0.1:1/{ids}"}, `column "ids": named by --url, is not there (is it "id"?)` + columns},
		{[]string{"--key", "o:{ID}"}, `column "ID": named by --key, is not there (is it "id"?)` + columns},
	} {
		args := append([]string{"batch", file, "--url", "http://127.0.0.1:1/", "--key", "o:{id}"}, c.args...)
		commandtest.Run(t, args...).Usage(t, "oncehttp: "+file+": "+c.want)
	}
	commandtest.Run(t, "batch", file, "--url", "http://127.0.0.1:1/", "--key", "o:{id}", "--decimal", ",").Usage(t,
		"oncehttp: "+file+": --decimal says how numbers are written, and no column is one: name it with --number or --sum, or as {column:number} in --body")
}

// says fails the test unless stderr has these findings of the file, in this order, and no other.
func says(t *testing.T, stderr, before, file string, want []string) {
	t.Helper()
	var found []string
	for line := range strings.Lines(stderr) {
		if text, is := strings.CutPrefix(line, before+file+": row "); is {
			found = append(found, "row "+text)
		}
	}
	if len(found) != len(want) {
		t.Fatalf("%q, want %d findings", stderr, len(want))
	}
	for i, text := range want {
		if !strings.HasPrefix(found[i], text) {
			t.Errorf("%q, want %q", found[i], text)
		}
	}
}
