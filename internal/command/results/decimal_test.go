package results_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/results"
)

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "12": "12", "12.50": "12.50", "-0.05": "-0.05", "+3": "3", "1e2": "100", "1.5E-3": "0.0015", "12.34e1": "123.4", "007": "7",
		"123456789012345678901234567890.12": "123456789012345678901234567890.12",
	} {
		if d, err := results.ParseDecimal(text); err != nil || d.String() != want {
			t.Errorf("%q: %s, %v; want %s", text, d.String(), err, want)
		}
	}
	for _, text := range []string{
		"", "-", ".", ".5", "5.", "1/3", "0x10", "1_000", "1,00", "NaN", "Inf", " 1", "1 ", "--1", "1e", "1e999999999", "1e-31", "1e+-1", "١", strings.Repeat("9", 61),
	} {
		if d, err := results.ParseDecimal(text); err == nil {
			t.Errorf("%q: %s, want none", text, d.String())
		}
	}
}

// TestCellDecimal: without --decimal the error names the marks that read the number, and says that there are two ways only where there are.
func TestCellDecimal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1.234": "may be read in two ways; say --decimal . or --decimal ,", "1,234": "may be read in two ways; say --decimal . or --decimal ,",
		"1.234,50": "is not a plain number; --decimal , reads it", "6532,59": "is not a plain number; --decimal , reads it", "1.234.567,8": "is not a plain number; --decimal , reads it",
		"1,234.50": "is not a plain number; --decimal . reads it", "5 000.00": "is not a plain number; --decimal . reads it",
		"1 000": "is not a plain number; --decimal . or --decimal , reads it",
		"1,2,3": "is no decimal number", "x": "is no decimal number", "1.5": "", "1234.567": "",
	} {
		_, err := results.CellDecimal(text, "")
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestLocalDecimal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, mark, want string }{
		{"1234.50", "", "1234.50"}, {" 1 ", "", "1"}, {"1234.567", "", "1234.567"}, {"0.125", "", "0.125"}, {"-5", "", "-5"},
		{"1.234", "", ""}, {"-1.234", "", ""}, {"1,5", "", ""}, {"1 000", "", ""}, {"1.234.567", "", ""},
		{"1.234", ",", "1234"}, {"1.234,50", ",", "1234.50"}, {"1,5", ",", "1.5"}, {"1 234 567,8", ",", "1234567.8"}, {"1\u00a0234,5", ",", "1234.5"}, {"-1.234,5", ",", "-1234.5"},
		{"1.5", ",", ""}, {"12.34", ",", ""}, {"1.234.56", ",", ""}, {"1,234,5", ",", ""}, {"1.234 567", ",", ""}, {"1234.567", ",", ""},
		{"1,234.50", ".", "1234.50"}, {"1.234", ".", "1.234"}, {"1'234'567.8", ".", "1234567.8"}, {"1,5", ".", ""}, {"1.234,5", ".", ""}, {",5", ".", ""}, {"1,,234", ".", ""},
		{"€1", ".", ""}, {"", ".", ""}, {"1e3", ",", "1000"},
	} {
		d, err := results.LocalDecimal(c.text, c.mark)
		if got := d.String(); c.want == "" && err == nil || c.want != "" && (err != nil || got != c.want) {
			t.Errorf("%q with %q: %s, %v; want %q", c.text, c.mark, got, err, c.want)
		}
	}
}
