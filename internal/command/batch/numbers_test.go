package batch_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// An amount is sent in the smallest unit of its currency, exactly, and numbers are read as --decimal says.
func TestBatchMinorUnits(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	file := commandtest.WriteFile(t, "in.csv", "id;amount;cur\na;1.234,50;EUR\nb;1.500;jpy\nc;0,005;KWD\nd;-7;USD\ne;12,5000;EUR\n")
	args := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--decimal", ",", "--currency", "cur", "--sum", "amount"}
	got := commandtest.Run(t, append(args, "--body", `{"minor":{amount:minor},"eur":{amount:number},"cur":"{cur}"}`)...).Want(t, terminal.ExitOK)
	want := map[string]string{
		"idemp:o:a": `{"minor":123450,"eur":1234.50,"cur":"EUR"}`,
		"idemp:o:b": `{"minor":1500,"eur":1500,"cur":"jpy"}`,
		"idemp:o:c": `{"minor":5,"eur":0.005,"cur":"KWD"}`,
		"idemp:o:d": `{"minor":-700,"eur":-7,"cur":"USD"}`,
		"idemp:o:e": `{"minor":1250,"eur":12.5000,"cur":"EUR"}`,
	}
	for key, body := range want {
		if s.bodies[key] != body {
			t.Errorf("%s: sent %s, want %s", key, s.bodies[key], body)
		}
	}
	if !strings.Contains(got.Err, "EUR: 1247.0000") {
		t.Errorf("stderr %q has no sum of the euros", got.Err)
	}

	dollars := commandtest.WriteFile(t, "usd.csv", "id,amount\nf,0.29\n")
	commandtest.Run(t, "batch", dollars, "--url", s.URL, "--key", "o:{id}", "--body", `{"cents":{amount:minor:USD}}`).Want(t, terminal.ExitOK)
	if body := s.bodies["idemp:o:f"]; body != `{"cents":29}` {
		t.Errorf("sent %s", body)
	}
	numbers := commandtest.WriteFile(t, "n.csv", "id;amount\ng;1 000,5\n")
	commandtest.Run(t, "batch", numbers, "--url", s.URL, "--key", "o:{id}", "--decimal", ",", "--number", "amount").Want(t, terminal.ExitOK)
	if body := s.bodies["idemp:o:g"]; body != `{"id":"g","amount":1000.5}` {
		t.Errorf("sent %s", body)
	}
}

// An amount that may be read in two ways, or has a part of the smallest unit, is refused with its line before anything is sent.
func TestBatchMinorRefused(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	file := commandtest.WriteFile(t, "in.csv", "id,amount,cur\na,1.234,EUR\nb,\"1,50\",EUR\nc,12.345,EUR\nd,1.0,Euro\n")
	row := "oncehttp: " + file + ": row "
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--body", `{"a":{amount:minor}}`, "--currency", "cur"}, []string{
			row + `1 (line 2), column "amount": "1.234" may be read in two ways; say --decimal . or --decimal ,`,
			row + `2 (line 3), column "amount": "1,50" is not a plain number; --decimal , reads it`,
			row + `3 (line 4), column "amount": "12.345" may be read in two ways; say --decimal . or --decimal ,`,
			row + `4 (line 5), column "amount": has an amount in "EURO", which is no currency of three letters`,
		}},
		{[]string{"--body", `{"a":{amount:minor:EUR}}`, "--decimal", "."}, []string{
			row + `1 (line 2), column "amount": "1.234" has more decimals than EUR, which has 2`,
			row + `2 (line 3), column "amount": "1,50" is no decimal number`,
			row + `3 (line 4), column "amount": "12.345" has more decimals than EUR, which has 2`,
		}},
		{[]string{"--body", `{"a":{amount:minor:XAU}}`, "--decimal", "."}, []string{row + `1 (line 2), column "amount": has an amount in "XAU", whose smallest unit ISO 4217 does not list`}},
		{[]string{"--body", `{"a":{amount:minor:BTC}}`, "--decimal", "."}, []string{row + `1 (line 2), column "amount": has an amount in "BTC", whose smallest unit ISO 4217 does not list`}},
		{[]string{"--sum", "amount"}, []string{
			row + `1 (line 2), column "amount": "1.234" is not a plain number, and neither --decimal . nor --decimal , reads all rows: write them alike; --sum adds it up`,
		}},
		{[]string{"--body", `{"a":{amount:minor}}`}, []string{"oncehttp: --body: {amount:minor} needs the currency: --currency COLUMN, or {amount:minor:EUR}"}},
		{[]string{"--decimal", ";"}, []string{`oncehttp: --decimal ";": want . or , as what stands before the decimals`}},
	} {
		got := commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}"}, c.args...)...).Want(t, terminal.ExitUsage)
		for _, line := range c.want {
			if !strings.Contains(got.Err, line+"\n") {
				t.Errorf("%q: stderr\n%swant\n%s", c.args, got.Err, line)
			}
		}
	}
	lines := commandtest.WriteFile(t, "in.ndjson", `{"id":"x","amount":1.234}`+"\n")
	commandtest.Run(t, "batch", lines, "--url", s.URL, "--key", "o:{id}", "--decimal", ",").Usage(t,
		"oncehttp: "+lines+": is NDJSON, whose lines are sent as they are; --decimal is for CSV")
	if n := s.Sends.Load(); n != 0 {
		t.Errorf("%d sends, want none", n)
	}
	got := commandtest.Run(t, "batch", lines, "--url", s.URL, "--key", "o:{id}", "--sum", "amount").Want(t, terminal.ExitOK)
	if !strings.Contains(got.Err, "total amount: 1.234 in 1 row") {
		t.Errorf("stderr %q: a number of JSON can be read in one way only", got.Err)
	}
}

// TestBatchNumbersAdvice: the mark that is advised reads all rows; where none does, none is advised.
func TestBatchNumbersAdvice(t *testing.T) {
	t.Parallel()
	const none = "is not a plain number, and neither --decimal . nor --decimal , reads all rows: write them alike; --sum adds it up"
	for name, c := range map[string]struct {
		rows string
		want []string
	}{
		"commas":               {"a;1.234,50\nb;6532,59\n", []string{`"1.234,50" is not a plain number; --decimal , reads it; --sum`, `"6532,59" is not a plain number; --decimal , reads it; --sum`}},
		"points":               {"a;1,234.50\nb;12.50\n", []string{`"1,234.50" is not a plain number; --decimal . reads it; --sum`}},
		"both":                 {"a;1.234,50\nb;1,234.50\n", []string{`"1.234,50" ` + none, `"1,234.50" ` + none}},
		"a plain one between":  {"a;1.234,50\nb;12.50\n", []string{`"1.234,50" ` + none}},
		"a plain one of three": {"a;1.234\nb;7\n", []string{`"1.234" may be read in two ways; say --decimal . or --decimal ,; --sum`}},
	} {
		file := commandtest.WriteFile(t, "in.csv", "id;amount\n"+c.rows)
		got := commandtest.Run(t, "batch", file, "--url", "http://127.0.0.1:1/", "--key", "o:{id}", "--sum", "amount").Want(t, terminal.ExitUsage)
		for _, text := range c.want {
			if !strings.Contains(got.Err, text) {
				t.Errorf("%s: stderr\n%swant\n%s", name, got.Err, text)
			}
		}
	}
}

// TestBatchNamesNoOtherCell: the line about cells that are sent as they stand names one of the file, or none.
func TestBatchNamesNoOtherCell(t *testing.T) {
	t.Parallel()
	for rows, want := range map[string]string{
		"a,1234.50\nb,7\n":      "its cells are sent as they stand; --number amount sends them as numbers\n",
		"a,7\nb,\"1,234.50\"\n": "its cells are sent as they stand, such as 1,234.50; --number amount",
	} {
		file := commandtest.WriteFile(t, "in.csv", "id,amount\n"+rows)
		got := commandtest.Run(t, "batch", file, "--url", "http://127.0.0.1:1/", "--key", "o:{id}", "--sum", "amount", "--decimal", ".", "--dry-run").Want(t, terminal.ExitOK)
		if !strings.Contains(got.Err, want) {
			t.Errorf("stderr %q, want %q", got.Err, want)
		}
	}
}

// TestBatchSaysCellsAsTheyStand: cells that --decimal reads for --sum alone are sent as they stand, and that is said in one line.
func TestBatchSaysCellsAsTheyStand(t *testing.T) {
	t.Parallel()
	file := commandtest.WriteFile(t, "in.csv", "id;amount;fee\na;1.234,50;1\n")
	const said = "warning: --decimal reads the column \"amount\" for --sum alone: its cells are sent as they stand, such as 1.234,50; "
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"as text":                {nil, said + "--number amount sends them as numbers\n"},
		"another column":         {[]string{"--number", "fee"}, said + "--number amount sends them as numbers\n"},
		"as text in --body":      {[]string{"--body", `{"a":"{amount}","fee":{fee:number}}`}, said + "{amount:number} in --body sends them as numbers\n"},
		"as a number":            {[]string{"--number", "amount"}, ""},
		"as a number in --body":  {[]string{"--body", `{"a":{amount:number}}`}, ""},
		"in the smallest amount": {[]string{"--body", `{"a":{amount:minor:EUR}}`}, ""},
		"quiet":                  {[]string{"--quiet"}, ""},
	} {
		args := []string{"batch", file, "--url", "http://127.0.0.1:1/", "--key", "o:{id}", "--decimal", ",", "--sum", "amount", "--dry-run"}
		got := commandtest.Run(t, append(args, c.args...)...).Want(t, terminal.ExitOK).Err
		if strings.Contains(got, "warning") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: stderr %q, want %q", name, got, c.want)
		}
	}
}

// TestBatchSaysWhatFilesAre: a spreadsheet is called so, and a row that lacks its currency, and says that it is a total, may be one.
func TestBatchSaysWhatFilesAre(t *testing.T) {
	t.Parallel()
	args := func(file string) []string {
		return []string{"batch", file, "--url", "http://127.0.0.1:1/", "--key", "o:{id}", "--sum", "amount", "--currency", "currency"}
	}
	sheet := commandtest.WriteFile(t, "in.xlsx", "PK\x03\x04\x14\x00\x06\x00")
	commandtest.Run(t, args(sheet)...).Usage(t, "oncehttp: "+sheet+": is a spreadsheet or zip file: save it as CSV")
	for currency, why := range map[string]string{"": `is empty, and --currency needs it`, "-": `"-" is no currency of three letters`} {
		total := commandtest.WriteFile(t, "in.csv", "id,amount,currency\n1,5,EUR\nTotal,5,"+currency+"\n")
		commandtest.Run(t, args(total)...).Usage(t, "oncehttp: "+total+`: row 2 (line 3), column "currency": `+why+`; the row says "Total": it may be the total of others`)
	}
}
