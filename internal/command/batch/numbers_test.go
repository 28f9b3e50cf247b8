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
			row + `2 (line 3), column "amount": "1,50" is not a plain number; say --decimal ,`,
			row + `3 (line 4), column "amount": "12.345" may be read in two ways; say --decimal . or --decimal ,`,
			row + `4 (line 5), column "amount": has an amount in "EURO", which is no currency of three letters`,
		}},
		{[]string{"--body", `{"a":{amount:minor:EUR}}`, "--decimal", "."}, []string{
			row + `1 (line 2), column "amount": "1.234" has more decimals than EUR, which has 2`,
			row + `2 (line 3), column "amount": "1,50" is no decimal number`,
			row + `3 (line 4), column "amount": "12.345" has more decimals than EUR, which has 2`,
		}},
		{[]string{"--sum", "amount"}, []string{
			row + `1 (line 2), column "amount": "1.234" may be read in two ways; say --decimal . or --decimal ,; --sum adds it up`,
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
